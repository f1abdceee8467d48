"""python -m comm: look at collectives without running them."""

import argparse
import sys
import time

from comm.algorithms import ALGORITHMS
from comm.render import table
from comm.simulate import Broken, prove

EXAMPLES = """examples:
  python -m comm table ring_all_reduce --ranks 4              the article's table, step by step
  python -m comm table ring_all_reduce --ranks 4 --markdown   the same for a web page
  python -m comm prove                                        every algorithm for 1 to 33, 64 and 1024 ranks
  python -m comm prove ring_all_reduce --ranks 100            one algorithm at one size
"""


def sizes(text):
    """Ranks as a list: "4", or "1-33,64". Raises ArgumentTypeError for anything else."""
    try:
        found = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
        if not found or min(found) < 1:
            raise ValueError
        return found
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers from 1, as in 4 or 1-33,64") from None


def parser():
    top = argparse.ArgumentParser(prog="python -m comm", description=__doc__, epilog=EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    names = ", ".join(ALGORITHMS)

    sub = commands.add_parser("table", help="print what every rank holds after every step", epilog=EXAMPLES,
                              formatter_class=argparse.RawDescriptionHelpFormatter)
    sub.add_argument("algorithm", choices=ALGORITHMS, metavar="ALGORITHM", help=f"one of {names}")
    sub.add_argument("--ranks", type=int, default=4, metavar="N", help="how many ranks (default 4)")
    sub.add_argument("--markdown", action="store_true", help="print Markdown tables")

    sub = commands.add_parser("prove", help="check on paper that algorithms keep their promises",
                              epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub.add_argument("algorithm", nargs="?", choices=ALGORITHMS, metavar="ALGORITHM",
                     help=f"one of {names} (default: all)")
    sub.add_argument("--ranks", type=sizes, default=sizes("1-33,64,1024"), metavar="N",
                     help="sizes, as in 4 or 1-33,64 (default 1-33,64,1024)")
    return top


def main(arguments=None):
    """Returns the exit status: 0, or 1 if a proof fails."""
    chosen = parser().parse_args(arguments)
    if chosen.command == "table":
        if chosen.ranks < 1:
            parser().error(f"--ranks {chosen.ranks}: expected at least 1")
        print(table(chosen.algorithm, chosen.ranks, chosen.markdown), end="")
        return 0
    return prove_all([chosen.algorithm] if chosen.algorithm else list(ALGORITHMS), chosen.ranks)


def prove_all(names, ranks):
    """Print one line for each algorithm; returns 1 if any is broken."""
    failed = False
    for name in names:
        start = time.perf_counter()
        try:
            cost = [prove(name, size) for size in ranks][-1]
        except Broken as error:
            failed = True
            print(f"{name:<32}BROKEN: {error}")
            continue
        print(f"{name:<32}holds on {len(ranks)} sizes; on {ranks[-1]} ranks {cost.rounds} rounds, at most "
              f"{cost.sent.max() / ranks[-1]:.4g} M from a rank ({time.perf_counter() - start:.1f} s)")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
