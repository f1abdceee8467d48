"""python -m comm: look at collectives, prove, price and measure them."""

import argparse
import sys

from comm.commands import COMMANDS

EXAMPLES = """examples:
  python -m comm table ring_all_reduce --ranks 4   the article's table, step by step
  python -m comm draw ring_all_reduce -o ring.html a page that plays the steps
  python -m comm prove                             every algorithm on paper, up to 1024 ranks
  python -m comm simulate all_reduce --bytes 350G --ranks 64        what each costs on a cluster
  mpirun -n 2 python -m comm why all_reduce --bytes 1M --measure    which is taken here, and why
  mpirun -n 2 python -m comm bench                                  beside MPI's own, every result checked
`python -m comm COMMAND --help` shows more."""


def parser():
    top = argparse.ArgumentParser(prog="python -m comm", description=__doc__, epilog=EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(arguments=None):
    """Returns the exit status: 0, or 1 if something does not hold."""
    chosen = parser().parse_args(arguments)
    return chosen.run(chosen)


if __name__ == "__main__":
    sys.exit(main())
