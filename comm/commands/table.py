"""python -m comm table: what every rank holds after every step."""

from comm.commands.arguments import add_command, algorithm, ranks
from comm.render import table

EXAMPLES = """  python -m comm table ring_all_reduce --ranks 4              the article's table, step by step
  python -m comm table ring_all_reduce --ranks 4 --markdown   the same for a web page"""


def add(commands):
    parser = add_command(commands, "table", "print what every rank holds after every step", run, EXAMPLES)
    parser.add_argument("algorithm", type=algorithm, metavar="ALGORITHM", help="for example ring_all_reduce")
    parser.add_argument("--ranks", type=ranks, default=4, metavar="N", help="how many ranks (default 4)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")


def run(chosen):
    print(table(chosen.algorithm, chosen.ranks, chosen.markdown), end="")
    return 0
