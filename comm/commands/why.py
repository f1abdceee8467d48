"""python -m comm why: which algorithm Group takes for a collective and a size, and by what reckoning."""

import argparse
from difflib import get_close_matches
from itertools import pairwise

import comm
from comm.bench.contenders import COLLECTIVES, Arena, Field
from comm.bench.data import Data
from comm.bench.ranks import Ranks
from comm.choose import Chooser
from comm.commands.arguments import add_command, ranks
from comm.costs import costs_of
from comm.predict import DEFAULT, Model, crossovers, table
from comm.profile import MESSAGES, STAGED, WINDOW
from comm.threads import Board, Threads
from comm.transport import launched
from comm.units import read_bytes, read_rate, read_seconds, say_bytes, say_rate, say_seconds

EXAMPLES = """  python -m comm why all_reduce --bytes 1MiB --ranks 8                 by the costs of a host of today
  python -m comm why all_reduce --bytes 4 --ranks 64 --nodes 8 --preset infiniband
  python -m comm why broadcast --bytes 1G --ranks 100 --alpha 30us --beta 10Gb/s
  mpirun -n 4 python -m comm why all_reduce --bytes 1MiB               by what is measured here, or was and is kept
  mpirun -n 4 python -m comm why all_reduce --bytes 1MiB --measure     measured anew, with every algorithm's time"""

PRESETS = {
    "host": DEFAULT,
    "ethernet": Model.of(30e-6, 1 / 1.25e9, 1 / 12e9, "a 10 Gb/s Ethernet"),
    "infiniband": Model.of(2e-6, 1 / 50e9, 1 / 500e9, "a 400 Gb/s InfiniBand between GPUs"),
}
SAID = {"default": "of a host of today, in round numbers", "measured": "measured between these ranks, and kept",
        "cached": "measured between ranks on these hosts before (--measure: anew)", "given": "as given"}


def add(commands):
    parser = add_command(commands, "why", "say which algorithm is taken for a size, and why", run, EXAMPLES)
    parser.add_argument("collective", type=_collective, metavar="COLLECTIVE", help=", ".join(COLLECTIVES))
    parser.add_argument("--bytes", type=_read(read_bytes), required=True, metavar="M", help="4, 1K, 64KiB, 350G")
    parser.add_argument("--ranks", type=ranks, metavar="N", help="without mpirun: how many ranks (default 8)")
    parser.add_argument("--nodes", type=ranks, metavar="K", default=1, help="without mpirun: on how many nodes")
    parser.add_argument("--preset", choices=PRESETS, default="host", help="without mpirun: what messages cost")
    parser.add_argument("--alpha", type=_read(read_seconds), metavar="T", help="seconds a message, as in 2us")
    parser.add_argument("--beta", type=_read(read_rate), metavar="R", help="what a link carries, as in 400Gb/s")
    parser.add_argument("--gamma", type=_read(read_rate), metavar="R", help="what is added up, as in 12GB/s")
    parser.add_argument("--measure", action="store_true", help="under mpirun: measure costs and every algorithm now")
    parser.set_defaults(fail=parser.error)


def _collective(text):
    """The name of a collective. Raises ArgumentTypeError that names the nearest."""
    if text in COLLECTIVES:
        return text
    near = get_close_matches(text, COLLECTIVES, n=1)
    raise argparse.ArgumentTypeError(f"{text!r}: no such collective{f'; did you mean {near[0]}?' if near else '.'} "
                                     f"Known: {', '.join(COLLECTIVES)}")


def _read(reader):
    def read(text):
        try:
            return reader(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return read


def run(chosen):
    """Rank 0 prints; every rank takes part in what is measured."""
    given = [name for name in ("alpha", "beta", "gamma") if getattr(chosen, name) is not None]
    group = comm.world() if launched() else None
    if group is not None and (chosen.ranks not in (None, group.size) or chosen.nodes != 1 or given):
        chosen.fail("under mpirun the ranks, their nodes and what they cost are what they are: leave --ranks, "
                    "--nodes, --alpha, --beta and --gamma away, or start without mpirun")
    if group is None and chosen.measure:
        chosen.fail("--measure needs ranks: mpirun -n 4 python -m comm why ... --measure")
    measured = {}
    if group is None:
        chooser = Chooser(_on_paper(chosen), _costs(chosen))
    else:
        endpoint = group._endpoint
        chooser = Chooser(endpoint, costs_of(endpoint, afresh=True) if chosen.measure and group.size > 1 else None)
        if chosen.measure and group.size > 1:
            measured = _measured(group, chosen)
    model = chooser.model
    if group is None or group.rank == 0:
        _print(chosen, chooser, model, measured)
    return 0


def _on_paper(chosen):
    """An endpoint that nobody talks through: ranks in equal blocks on the nodes."""
    size = 8 if chosen.ranks is None else chosen.ranks
    if chosen.nodes > size:
        chosen.fail(f"{size} ranks cannot be on {chosen.nodes} nodes: choose at most one node for each")
    nodes = [rank * chosen.nodes // size for rank in range(size)]
    return Threads(Board(size), range(size), 0, nodes)


def _costs(chosen):
    model = PRESETS[chosen.preset]
    if chosen.alpha is None and chosen.beta is None and chosen.gamma is None:
        return model
    alpha = model.alpha if chosen.alpha is None else chosen.alpha
    beta = model.beta if chosen.beta is None else 1 / chosen.beta
    gamma = model.gamma if chosen.gamma is None else 1 / chosen.gamma
    return Model.of(alpha, beta, gamma)


def _measured(group, chosen):
    """{(algorithm, transport): seconds} of what can be measured."""
    step = 4 * group.size
    data = Data(chosen.collective, group.rank, group.size, max(1, -(-chosen.bytes // step)) * group.size)
    field = Field(group, data, Arena(group, 4 * data.count), _every_name(chosen, group)).contenders()
    for one in field:
        one.zero()
    times = Ranks(group._endpoint).clock([one.run for one in field], 0.02, 5)
    return {(one.name, one.transport): seconds for one, (seconds, _) in zip(field, times)}


def _every_name(chosen, group):
    return [row.algorithm for row in table(chosen.collective, group.size, chosen.bytes, DEFAULT, nodes=group.nodes)]


def _print(chosen, chooser, model, measured):
    size, nodes = chooser.size, chooser.nodes
    shared = size > 1 and len(set(nodes)) < size
    transports = (MESSAGES, WINDOW, STAGED) if shared else (MESSAGES,)
    place = f"{len(set(nodes))} nodes" if len(set(nodes)) > 1 else "one node"
    print(f"{chosen.collective} of {say_bytes(chosen.bytes)} on {size} ranks of {place}\n")
    print(f"costs: {SAID.get(model.source, f'of {model.source}')}")
    print(f"  messages: alpha {say_seconds(model.alpha)}, beta {_rate(model.beta)}, gamma {_rate(model.gamma)}")
    if shared:
        print(f"  shared memory: a meeting {say_seconds(model.meet)}, reading {_rate(model.read.slope)}, "
              f"adding {_rate(model.add.slope)}")
    if model.crowd > 1:
        print(f"  {model.crowd:g} ranks share a core")
    print(f"\n{'algorithm':<34}{'transport':<11}{'rounds':>7}{'sent/rank':>14}{'predicted':>12}"
          + f"{'measured':>12}" * bool(measured))
    for row in table(chosen.collective, size, chosen.bytes, model, transports, nodes):
        seconds = measured.get((row.algorithm, row.transport))
        segments = f"  {row.options['segments']} segments" if row.options.get("segments", 1) > 1 else ""
        print(f"{row.algorithm:<34}{row.transport:<11}{row.rounds:>7,}{say_bytes(round(row.sent)):>14}"
              f"{say_seconds(row.seconds):>12}{'' if seconds is None else say_seconds(seconds):>12}{segments}".rstrip())
    if "MPI" in {name for name, _ in measured}:
        print(f"{'MPI':<64}{'':>12}{say_seconds(measured['MPI', '']):>12}")
    _print_picks(chosen, chooser, transports)
    for title, which in _titles(transports):
        _print_crossovers(title, crossovers(chosen.collective, size, model, which, nodes))


def _titles(transports):
    """(for which arrays, over which transports)."""
    yield "by messages", (MESSAGES,)
    if WINDOW in transports:
        yield "for arrays of group.empty", (MESSAGES, WINDOW)
        yield "for other arrays", (MESSAGES, STAGED)


def _print_picks(chosen, chooser, transports):
    print("\nGroup takes (sizes around the same power of two share a choice)")
    for title, which in _titles(transports):
        pick = chooser.pick(chosen.collective, chosen.bytes, len(which) > 1, placed=WINDOW in which)
        how = which[1] if pick.window else MESSAGES
        print(f"  {title}: {pick.algorithm}, {how}")


def _print_crossovers(title, found):
    print(f"\nfastest {title}")
    for (start, row), (end, _) in pairwise([*found, (None, None)]):
        until = "on" if end is None else f"to {say_bytes(end)}"
        print(f"  from {say_bytes(start):>12} {until:<16} {row.algorithm}, {row.transport}")


def _rate(slope):
    return say_rate(1 / slope) if slope > 0 else "free"
