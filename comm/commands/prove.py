"""python -m comm prove: check on paper that algorithms keep their promises."""

import time

from comm.algorithms import ALGORITHMS
from comm.commands.arguments import add_command, algorithm, sizes
from comm.simulate import Broken, prove_all

EXAMPLES = """  python -m comm prove                              every algorithm for 1 to 33, 64, 100 and 1024 ranks
  python -m comm prove ring_all_reduce --ranks 100  one algorithm at one size"""


def add(commands):
    parser = add_command(commands, "prove", "check on paper that algorithms keep their promises", run, EXAMPLES)
    parser.add_argument("algorithm", nargs="?", type=algorithm, metavar="ALGORITHM", help="default: all of them")
    parser.add_argument("--ranks", type=sizes, default=sizes("1-33,64,100,1024"), metavar="N",
                        help="sizes, as in 4 or 1-33,64 (default 1-33,64,100,1024)")


def run(chosen):
    """Print one line for each algorithm; the status is 1 if any is broken."""
    failed = False
    for name in [chosen.algorithm] if chosen.algorithm else ALGORITHMS:
        start = time.perf_counter()
        try:
            cost = [prove_all(name, size) for size in chosen.ranks][-1]
        except Broken as error:
            failed = True
            print(f"{name:<34}BROKEN: {error}")
            continue
        size = chosen.ranks[-1]
        share = cost.sent.max() / ALGORITHMS[name].chunks(size, **ALGORITHMS[name].variants(size)[-1])
        print(f"{name:<34}holds on {len(chosen.ranks)} sizes; on {size} ranks {cost.rounds} rounds, at most "
              f"{share:.4g} M from a rank ({time.perf_counter() - start:.1f} s)")
    return int(failed)
