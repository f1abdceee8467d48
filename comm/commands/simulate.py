"""python -m comm simulate: what collectives cost on a described cluster."""

import argparse
import sys
import time
from difflib import get_close_matches

from comm.algorithms import ALGORITHMS
from comm.commands.arguments import add_command, ranks
from comm.commands.simulated import compare, detail, loss, losses
from comm.pricing.placement import ORDERS
from comm.pricing.price import BUS_FACTORS
from comm.topology import KEYS, KINDS, PRESETS, describe, say_links
from comm.units import read_bytes

EXAMPLES = """  python -m comm simulate all_reduce --bytes 350G --ranks 64
      every algorithm on the article's cluster: 1,411,200 GB for copies to everyone, 44,100 GB for the ring
  python -m comm simulate all_reduce --bytes 350G --ranks 64 --cluster dgx-h100 --algorithm ring
      one algorithm in detail: phases, tiers of links, orders of the ranks
  python -m comm simulate all_gather --bytes 64MiB --cluster "nodes=8,gpus=8,nic=ndr,leaf=16,oversubscription=2"
  python -m comm simulate all_reduce --bytes 1G --ranks 512 --cluster torus,sides=8x8x8 --order shuffled
  python -m comm simulate all_reduce --bytes 1M --ranks 16 --lost 0    what the loss of rank 0 does
  python -m comm simulate --links                                      what links carry, in both conventions

clusters (--cluster NAME, or NAME,key=value,... or key=value,...):
{presets}

keys:
{keys}

kinds: {kinds}"""


def _examples():
    return EXAMPLES.format(presets="\n".join(f"  {name:<11} {said}" for name, (_, said) in PRESETS.items()),
                           keys="\n".join(f"  {key:<17} {said}" for key, said in KEYS.items()), kinds=", ".join(KINDS))


def add(commands):
    parser = add_command(commands, "simulate", "price collectives on a described cluster", run, _examples())
    parser.add_argument("collective", nargs="?", type=collective, metavar="COLLECTIVE", help=", ".join(BUS_FACTORS))
    parser.add_argument("--bytes", type=_bytes, metavar="M", help="of one rank's message: 4, 1K, 350G, 64MiB")
    parser.add_argument("--ranks", type=ranks, metavar="N", help="default: all GPUs of the cluster, or 64")
    parser.add_argument("--cluster", default="article", metavar="TEXT", help="see below (default: article)")
    parser.add_argument("--algorithm", metavar="NAME", help="one algorithm in detail: ring, or ring_all_reduce")
    parser.add_argument("--order", choices=[*ORDERS, "fitted"], default="packed",
                        help="which GPU each rank runs on; fitted: the order that suits each algorithm best")
    parser.add_argument("--segments", type=_segments, metavar="S", help="for pipelined algorithms (default: several)")
    parser.add_argument("--gamma", type=float, default=0.0, metavar="S",
                        help="seconds per byte that is added up, e.g. 1e-12 for 3 TB/s of HBM that is read twice and "
                             "written once (default 0: adding overlaps moving)")
    parser.add_argument("--lost", type=int, metavar="RANK", help="what the loss of this rank does, instead of prices")
    parser.add_argument("--links", action="store_true", help="print what links carry, and end")
    parser.set_defaults(fail=parser.error)


def collective(text):
    """The name of a collective. Raises ArgumentTypeError that names the nearest."""
    if text in BUS_FACTORS:
        return text
    near = get_close_matches(text, BUS_FACTORS, n=1)
    raise argparse.ArgumentTypeError(f"{text!r}: no such collective{f'; did you mean {near[0]}?' if near else '.'} "
                                     f"Known: {', '.join(BUS_FACTORS)}")


def _bytes(text):
    try:
        return read_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _segments(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of segments, from 1")
    return int(text)


def run(chosen):
    """Prints the answer; ends with status 2 and what was expected if the question makes no sense."""
    if chosen.links:
        print(say_links())
        return 0
    report = Progress()
    try:
        for line in _answer(chosen, report):
            report.clear()
            print(line, flush=True)
    except ValueError as error:
        report.clear()
        chosen.fail(str(error))
    return 0


def _answer(chosen, report):
    if chosen.collective is None:
        raise ValueError(f"expected a collective: {', '.join(BUS_FACTORS)}")
    names = _names(chosen.collective, chosen.algorithm)
    if chosen.bytes is None and chosen.collective != "barrier" and chosen.lost is None:
        raise ValueError("expected --bytes, as in --bytes 350G")
    if not 0 <= chosen.gamma < float("inf"):
        raise ValueError(f"--gamma {chosen.gamma}: expected seconds per byte, from 0, as in 1e-12")
    topology = describe(chosen.cluster, chosen.ranks)
    size = chosen.ranks or topology.gpus
    if chosen.lost is not None:
        order = "packed" if chosen.order == "fitted" else chosen.order  # nothing is priced, so nothing is fitted
        question = (size, chosen.lost, topology, order, chosen.segments)
        return loss(names[0], *question) if chosen.algorithm else losses(names, *question)
    question = (chosen.bytes or 0, size, topology, chosen.order, chosen.gamma, chosen.segments, report)
    return detail(names[0], *question) if chosen.algorithm else compare(names, *question)


def _names(wanted, algorithm):
    """The algorithms of a collective, or the one that was asked for by its short or its full name."""
    known = [name for name in ALGORITHMS if ALGORITHMS[name].collective == wanted]
    if algorithm is None:
        return known
    for name in (algorithm, f"{algorithm}_{wanted}"):
        if name in known:
            return [name]
    short = [name.removesuffix(f"_{wanted}") for name in known]
    near = get_close_matches(algorithm, [*short, *known], n=1)
    raise ValueError(f"--algorithm {algorithm}: no such {wanted}{f'; did you mean {near[0]}?' if near else '.'} "
                     f"Known: {', '.join(short)}")


class Progress:
    """A line on stderr, once something takes longer than a second; on a terminal it is rewritten in place."""

    def __init__(self, seconds=1.0):
        self.next = time.monotonic() + seconds
        self.in_place = sys.stderr.isatty()
        self.width = 0

    def __call__(self, text):
        now = time.monotonic()
        if now < self.next:
            return
        if self.in_place:
            print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
            self.width, self.next = len(text), now + 0.2
        else:
            print(f"{text} ...", file=sys.stderr, flush=True)
            self.next = now + 5

    def clear(self):
        """Wipe the line, so that an answer can be printed where it stood."""
        if self.width:
            print(f"\r{'':<{self.width}}\r", end="", file=sys.stderr, flush=True)
        self.width = 0
