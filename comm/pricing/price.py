"""What a collective costs on a described cluster: alpha-beta-gamma, with contention on shared links.

The schedule that MPI executes and `simulate` proves is priced round by round. In a round every rank sends its
messages at once; they share links by max-min fairness (comm/pricing/sharing.py). A rank then has

    the end of its last message  +  alpha for each message, one after another  +  gamma for each byte it combines,

and the round ends with its last rank. alpha is the latency of the message's route (Topology.latency), gamma is
0 by default, since adding can overlap moving. Rounds that begin late on some ranks only are not told apart.

A chunk counts M/C bytes, also where M/C is no whole number: a long and a short chunk take turns on every link, and
bytes in all are exact. Rounds in which the same ranks exchange the same numbers of chunks cost the same, so a
ring of ten thousand ranks is priced once, not twenty thousand times.

Hockney, "The communication challenge for MPP" (1994), https://doi.org/10.1016/S0167-8191(06)80021-9.
"""

import inspect
from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.pricing.effort import check_effort
from comm.pricing.pricer import Recording, phases, totals
from comm.schedule import NONE
from comm.topology import Topology

BUS_FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
    "reduce": lambda n: 1,
    "barrier": lambda n: 0,
}
"""busbw / algbw as nccl-tests defines it: what any algorithm must move per rank, not what this one does (CASE 106).

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""


class Price(NamedTuple):
    """What one collective costs on one cluster. N ranks, L links."""

    name: str
    message: int  # M, bytes
    options: dict
    topology: Topology
    phases: list  # of Phase
    sent: np.ndarray  # (N,) bytes that leave each rank
    messages: np.ndarray  # (N,) messages that leave each rank
    carried: np.ndarray  # (L,) bytes over each link
    priced: int  # messages that were really looked at: the rest were alike

    @property
    def time(self):
        """Seconds."""
        return sum(phase.rounds * phase.each for phase in self.phases)

    @property
    def rounds(self):
        return sum(phase.rounds for phase in self.phases)

    @property
    def algbw(self):
        """M / time, bytes per second; 0 if it takes no time."""
        return self.message / self.time if self.time else 0.0

    @property
    def busbw(self):
        """algbw times nccl-tests' factor of the collective."""
        return self.algbw * BUS_FACTORS[ALGORITHMS[self.name].collective](len(self.sent))

    @property
    def tiers(self):
        """{tier: bytes over all its links}, from the GPU outwards."""
        sums = np.bincount(self.topology.tier, self.carried, len(self.topology.tiers))
        return dict(zip(self.topology.tiers, sums.tolist()))

    @property
    def busiest(self):
        """(the link that is busy longest, its bytes, the share of the time it is busy); None if nothing moves."""
        return self.busiest_of(range(len(self.topology.tiers)))

    def busiest_of(self, tiers):
        """The same among the links of these tiers (numbers)."""
        busy = np.where(np.isin(self.topology.tier, list(tiers)), self.carried / self.topology.bandwidth, 0)
        link = int(busy.argmax()) if len(busy) else NONE
        if link == NONE or not busy[link]:
            return None
        return link, float(self.carried[link]), float(busy[link] / self.time)


def price(name, message, ranks, topology, placement=None, gamma=0.0, progress=None, **options):
    """The Price of the algorithm `name` for `message` bytes.

    placement (ranks,): the GPU of each rank (default: rank r on GPU r). gamma: seconds per byte that is combined.
    options: the algorithm's own (segments, root, nodes). progress(done, rounds) is called now and then.
    Raises ValueError for more ranks than GPUs, a GPU given twice, an option that the algorithm does not take, and
    TooMuch (a ValueError) where the pricing itself would take too long.
    """
    return prices(name, message, ranks, topology, [placement], gamma, progress, **options)[0]


def prices(name, message, ranks, topology, placements, gamma=0.0, progress=None, **options):
    """A list of Price, one for each placement: the schedule is gone through only once. As `price` otherwise."""
    algorithm, formula = ALGORITHMS[name], {key: value for key, value in options.items() if key != "root"}
    placements = [_checked(placement, ranks, topology) for placement in placements]
    if message < 0 or gamma < 0:
        raise ValueError(f"message={message}, gamma={gamma}: expected nothing below 0")
    _check_options(name, options)
    check_effort(name, ranks, **options)
    rounds = algorithm.rounds(ranks, **formula)
    recording = Recording(algorithm.rule(np.arange(ranks), ranks, **options), ranks,
                          progress and (lambda done: progress(done, rounds)))
    chunk = message / algorithm.chunks(ranks, **formula)
    chunks, messages = totals(recording)
    found = []
    for placement in placements:
        parts, carried = phases(recording, topology, placement, chunk, gamma)
        found.append(Price(name, message, options, topology, parts, chunks * chunk, messages, carried,
                           sum(len(kind.source) for kind in recording.messages)))
    return found


def options_of(name):
    """The options that the rule of `name` takes, beyond rank and size."""
    return list(inspect.signature(ALGORITHMS[name].rule).parameters)[2:]


def _check_options(name, options):
    for key in options.keys() - set(options_of(name)):
        raise ValueError(f"{name} takes no {key}; it takes {', '.join(options_of(name)) or 'no options'}")


def _checked(placement, ranks, topology):
    if ranks < 1:
        raise ValueError(f"ranks={ranks}: expected 1 or more")
    if ranks > topology.gpus:
        raise ValueError(f"{ranks} ranks on {topology.gpus} GPUs ({topology.title}): choose at most so many ranks, "
                         "or more nodes")
    if placement is None:
        return np.arange(ranks)
    placement = np.asarray(placement)
    if placement.shape != (ranks,):
        raise ValueError(f"placement of shape {placement.shape}: expected a GPU for each of {ranks} ranks")
    if len(np.unique(placement)) < ranks:
        raise ValueError("placement: two ranks share a GPU; every rank needs its own")
    return placement


def default_options(name, topology, placement):
    """What the algorithm must be told about the cluster: {"nodes": (N,) node of each rank}, or nothing."""
    if "nodes" not in options_of(name):
        return {}
    _, nodes = np.unique(topology.node[placement], return_inverse=True)
    return {"nodes": tuple(nodes.tolist())}
