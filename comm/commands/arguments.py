"""What the commands ask for on the command line, with errors that say what was expected."""

import argparse
from difflib import get_close_matches

from comm.algorithms import ALGORITHMS


def add_command(commands, name, help, run, examples):
    """A sub-parser whose `--help` ends with examples and which calls run(arguments) -> exit status."""
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.",
                                 epilog=f"examples:\n{examples}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(run=run)
    return parser


def algorithm(text):
    """The name of an algorithm. Raises ArgumentTypeError, naming the nearest, for anything else."""
    if text in ALGORITHMS:
        return text
    near = get_close_matches(text, ALGORITHMS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise argparse.ArgumentTypeError(f"{text!r}: no such algorithm; {hint}known are {', '.join(ALGORITHMS)}")


def ranks(text):
    """A number of ranks. Raises ArgumentTypeError for what is no number from 1."""
    try:
        if int(text) >= 1:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: expected a number of ranks, from 1")


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
