"""`minigpt bench`: ours beside PyTorch eager, alternating in one run, median of several rounds."""

import argparse
import json
import sys
from importlib.util import find_spec

from minigpt.bench.cases import BY_NAME, CASES

EXAMPLES = """examples:
  minigpt bench                          every case, 7 rounds
  minigpt bench char small --rounds 9    two of them, longer
  minigpt bench --json bench.json        the figures as JSON, too

Without PyTorch (pip install torch) our own figures are shown alone.
Two ranks need mpirun and two free cores; close what else is running.
"""


def main(argv=None):
    """Race the named cases, print a table, write JSON on demand; returns the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    for name in arguments.cases:
        if name not in BY_NAME:
            parser.error(f"no case {name!r}: choose from {', '.join(BY_NAME)}")
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: expected at least 1")
    from minigpt.bench.duel import race
    peer = find_spec("torch") is not None
    if not peer:
        print("PyTorch is not installed: our figures alone (pip install torch to race)", file=sys.stderr)
    rows = []
    print(_head(), flush=True)
    for case in [case for case in CASES if not arguments.cases or case.name in arguments.cases]:
        rows.append(race(case, arguments.rounds, peer))
        print(_line(rows[-1]), flush=True)
    _scaling(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="minigpt bench", description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(BY_NAME))
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each competitor (default 7, at least 5)")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    return parser


def _head():
    return (f"{'case':14} {'ours':>10} {'peer':>10} {'unit':9} {'ratio':>6} {'(range)':>13} {'must':>5}   "
            f"{'peak MB':>8} {'peer MB':>8} {'ratio':>5} {'must':>5}")


def _line(row):
    if "peer" not in row:
        return f"{row['case']:14} {row['ours']:10,.0f} {'-':>10} {row['unit']:9} {'':32}{row['ours_peak_mb']:8,.0f}"
    spread, must = f"({row['ratio_low']:.2f}-{row['ratio_high']:.2f})", row["memory_must"]
    return (f"{row['case']:14} {row['ours']:10,.0f} {row['peer']:10,.0f} {row['unit']:9} {row['ratio']:6.2f} "
            f"{spread:>13} {row['must']:5.2f}   {row['ours_peak_mb']:8,.0f} {row['peer_peak_mb']:8,.0f} "
            f"{row['memory']:5.2f} {'' if must is None else f'{must:5.2f}'}")


def _scaling(rows):
    """From one rank to two, where both were measured in this run."""
    figures = {row["case"]: row["ours"] for row in rows}
    for name, must in (("char", 1.80), ("small", 1.75)):
        if name in figures and f"{name}-2-ranks" in figures:
            print(f"{name}: {figures[name + '-2-ranks'] / figures[name]:.2f} times from 1 to 2 ranks (must {must:.2f})")
