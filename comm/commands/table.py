"""python -m comm table: what every rank holds after every step."""

import os
import sys

from comm.commands.arguments import add_command, algorithm, ranks
from comm.commands.options import add_options, options_of
from comm.render import pages

EXAMPLES = """  python -m comm table ring_all_reduce --ranks 4              the article's table, step by step
  python -m comm table ring_all_reduce --ranks 4 --markdown   the same for a web page
  python -m comm table chain_broadcast --ranks 5 --root 2 --segments 3
  python -m comm table hierarchical_all_reduce --ranks 5 --nodes 0,0,0,1,1"""


def add(commands):
    parser = add_command(commands, "table", "print what every rank holds after every step", run, EXAMPLES)
    parser.add_argument("algorithm", type=algorithm, metavar="ALGORITHM", help="for example ring_all_reduce")
    parser.add_argument("--ranks", type=ranks, default=4, metavar="N", help="how many ranks (default 4)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    add_options(parser)


def run(chosen):
    try:
        options = options_of(chosen.algorithm, chosen.ranks, chosen)
    except ValueError as error:
        chosen.fail(str(error))
    gap = ""
    try:
        for page in pages(chosen.algorithm, chosen.ranks, chosen.markdown, **options):
            print(gap + page, flush=True)
            gap = "\n"
    except BrokenPipeError:  # `| head` has seen enough; nor is there anywhere to write what Python still holds
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
