"""mpirun -n N python -m comm bench: every collective and algorithm beside MPI's own, every result checked."""

import argparse
import math
import os
import sys
from difflib import get_close_matches

import comm
from comm.algorithms import ALGORITHMS
from comm.bench.contenders import COLLECTIVES
from comm.bench.gloo import Gloo
from comm.bench.ranks import Ranks
from comm.bench.report import MARKS, head, plot, row, write_csv
from comm.bench.sweep import FULL, QUICK, sweep
from comm.commands.arguments import add_command
from comm.transport import launched
from comm.units import read_bytes

EXAMPLES = """  mpirun -n 2 python -m comm bench            every collective, five sizes, under a minute
  mpirun -n 4 python -m comm bench all_reduce --sizes 4-256MiB --full --csv times.csv --plot times.png
  mpirun -n 3 python -m comm bench all_gather all_to_all --sizes 1KiB,1MiB --algorithms ring,bruck

Times are medians of the slowest rank, contenders taking turns. algbw is M / time, busbw what any algorithm must
move per rank / time, as nccl-tests defines it; sent/rank is what really left the busiest rank."""

QUICK_SIZES, FULL_SIZES = "4,1KiB,64KiB,1MiB,16MiB", "4-256MiB"
ARRAYS = 10  # of one message that a rank holds at most: contenders' buffers, scratch, results and what is expected
BUSY = 0.2  # cores that others use: from here on times are disturbed


def add(commands):
    parser = add_command(commands, "bench", "measure collectives beside MPI's own, under mpirun", run, EXAMPLES)
    parser.add_argument("collectives", nargs="*", type=collective, metavar="COLLECTIVE",
                        help=f"{', '.join(COLLECTIVES)} (default: all)")
    parser.add_argument("--sizes", type=sizes, metavar="M", help="bytes, as in 4,1KiB or 4-256MiB (in steps of four)")
    parser.add_argument("--algorithms", type=algorithms, metavar="NAMES",
                        help="only these, as in ring,recursive_doubling (default: all that are not slow by prediction)")
    parser.add_argument("--full", action="store_true", help="every algorithm, more sizes, longer: minutes")
    parser.add_argument("--without-gloo", action="store_true", help="do not start torch.distributed beside")
    parser.add_argument("--csv", metavar="FILE", help="write the table here too")
    parser.add_argument("--plot", metavar="FILE", help="draw time by size (needs matplotlib)")


def collective(text):
    """The name of a collective. Raises ArgumentTypeError that names the nearest."""
    if text in COLLECTIVES:
        return text
    near = get_close_matches(text, COLLECTIVES, n=1)
    raise argparse.ArgumentTypeError(f"{text!r}: no such collective{f'; did you mean {near[0]}?' if near else ''} "
                                     f"Known: {', '.join(COLLECTIVES)}")


def algorithms(text):
    """Names of algorithms, with or without the collective's. Raises ArgumentTypeError that names the nearest."""
    known = [*ALGORITHMS, *(name.removesuffix(f"_{entry.collective}") for name, entry in ALGORITHMS.items())]
    for name in text.split(","):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f" Known: {', '.join(ALGORITHMS)}"
            raise argparse.ArgumentTypeError(f"{name!r}: no such algorithm{hint}")
    return text.split(",")


def sizes(text):
    """Bytes: "4,1KiB" is a list, "4-256MiB" four times as much again and again. Raises ArgumentTypeError."""
    try:
        found = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            found.append(read_bytes(first))
            while last and 4 * found[-1] <= read_bytes(last):
                found.append(4 * found[-1])
        if min(found) < 1:
            raise ValueError(f"{text!r}: expected bytes, from 1")
        return found
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(chosen):
    """Rank 0 prints. The status is 1 if any result is wrong, 2 if what is asked for cannot be done."""
    group = comm.world() if launched() else None
    if group is None or group.size < 2:
        print("a benchmark needs ranks: mpirun -n 2 python -m comm bench", file=sys.stderr)
        return 2
    asked = chosen.sizes or sizes(FULL_SIZES if chosen.full else QUICK_SIZES)
    first, results, ranks = group.rank == 0, [], Ranks(group._endpoint)
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if first else (lambda text: None)
    fault = _fault(chosen, asked, group.size) if first else ""
    if ranks.worst(len(fault)):
        say(fault)
        return 2
    _warn_if_busy(ranks, say)
    gloo = None if chosen.without_gloo else Gloo(group)
    if gloo is not None and gloo.reason:
        say(f"without gloo: {gloo.reason}")
    names, effort = chosen.algorithms or ("all" if chosen.full else None), FULL if chosen.full else QUICK
    for result in sweep(group, chosen.collectives or COLLECTIVES, asked, names, effort, gloo, say):
        if first:
            _show(result, results, group)
        results.append(result)
    if first:
        print(f"\n{MARKS}")
    _warn_if_busy(ranks, say)
    if gloo is not None:
        gloo.close()
    if first:
        _keep(chosen, results, group)
    return int(any(result.wrong for result in results))


def _fault(chosen, asked, size):
    """What stands in the way, told before minutes have passed; "" if nothing does."""
    need, has = size * ARRAYS * max(asked), _memory()
    if need > has:
        return (f"{size} ranks with messages of {max(asked):,} bytes need {need / 1e9:,.1f} GB of memory, and this "
                f"host has {has / 1e9:,.1f} GB: choose smaller --sizes")
    for option, path in (("--csv", chosen.csv), ("--plot", chosen.plot)):
        try:
            if path:
                open(path, "a").close()
        except OSError as error:
            return f"{option}: cannot write {path} ({error.strerror}): choose another file"
    return ""


def _memory():
    """Bytes of memory of this host; infinite where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def _warn_if_busy(ranks, say):
    cores = ranks.disturbed()
    if cores > BUSY:
        say(f"other programs keep {cores:.1f} cores of this machine busy: times are disturbed, ratios less so")


def _show(result, results, group):
    if not results or results[-1].collective != result.collective:
        print(f"\n{result.collective} on {group.size} ranks\n{head()}")
    elif results[-1].nbytes != result.nbytes:
        print()
    print(row(result), flush=True)


def _keep(chosen, results, group):
    """Write what was asked for."""
    if chosen.csv:
        write_csv(chosen.csv, results)
        print(f"wrote {chosen.csv}")
    if chosen.plot:
        try:
            plot(chosen.plot, results, f"{group.size} ranks")
            print(f"wrote {chosen.plot}")
        except ImportError:
            print("no plot: matplotlib is not installed (pip install matplotlib)")
