"""python -m comm draw: an algorithm as a picture (SVG) or as a page that plays its steps (HTML)."""

import argparse
from pathlib import Path

from comm.commands.arguments import add_command, algorithm, ranks
from comm.commands.options import add_options, options_of
from comm.player import player
from comm.space_time import space_time
from comm.units import read_bytes

EXAMPLES = """  python -m comm draw ring_all_reduce --ranks 8                 a diagram, ring_all_reduce.svg
  python -m comm draw ring_all_reduce --ranks 8 -o ring.html    a page that plays the steps, forwards and backwards
  python -m comm draw double_tree_all_reduce --ranks 16 --segments 4 -o tree.html --bytes 350G"""

WRITERS = {".svg": space_time, ".html": player}


def add(commands):
    parser = add_command(commands, "draw", "draw an algorithm (SVG), or make a page that plays it (HTML)", run,
                         EXAMPLES)
    parser.add_argument("algorithm", type=algorithm, metavar="ALGORITHM", help="for example ring_all_reduce")
    parser.add_argument("--ranks", type=ranks, default=4, metavar="N", help="how many ranks (default 4; HTML up to 64)")
    parser.add_argument("-o", "--output", type=_output, metavar="FILE",
                        help="FILE.svg or FILE.html (default: ALGORITHM.svg)")
    parser.add_argument("--bytes", type=_bytes, metavar="M",
                        help="HTML: of one whole message, to show bytes instead of parts of M: 350G, 64MiB")
    add_options(parser)


def _output(text):
    if Path(text).suffix.lower() not in WRITERS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a name that ends in {' or '.join(WRITERS)}")
    return Path(text)


def _bytes(text):
    try:
        return read_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(chosen):
    """Writes the file and says so; ends with status 2 if what is asked for cannot be drawn or written."""
    path = chosen.output or Path(f"{chosen.algorithm}.svg")
    kind = path.suffix.lower()
    try:
        options = options_of(chosen.algorithm, chosen.ranks, chosen)
        if chosen.bytes is not None:
            if kind != ".html":
                raise ValueError("--bytes is shown by a page: expected -o FILE.html")
            options["bytes"] = chosen.bytes
        path.write_text(WRITERS[kind](chosen.algorithm, chosen.ranks, **options), encoding="utf-8")
    except ValueError as error:
        chosen.fail(str(error))
    except OSError as error:
        chosen.fail(f"cannot write {path}: {error.strerror}")
    print(f"{path}: {chosen.algorithm} on {chosen.ranks} rank{'s' * (chosen.ranks != 1)}")
    return 0
