"""How long a collective will take: every algorithm's rounds, priced with what a message, a byte and an addition cost.

Hockney's alpha-beta model: a message costs alpha seconds and beta for each byte, and each byte that is combined
gamma. On one host the line bends, where messages stop being copied twice and where caches end, so each cost is a
`Curve` through measured points; alpha is where it starts, beta how it ends. A round takes as long as its slowest
rank; rounds follow one another. In shared memory (comm/shared.py) a round is a meeting of the ranks of a node,
who then read or add what their neighbours show.

The arithmetic is plain Python on floats, which gives the same bits on every machine: all ranks predict alike.

Hockney, "The communication challenge for MPP" (1994), https://doi.org/10.1016/S0167-8191(06)80021-9.
"""

from bisect import bisect_right
from functools import cache
from inspect import signature
from typing import NamedTuple

from comm.algorithms import ALGORITHMS
from comm.profile import MESSAGES, profile

SEGMENTS = tuple(1 << k for k in range(7))
SHORTEST = 2048  # bytes of a segment at least


class Curve(NamedTuple):
    """Seconds by bytes, through measured points: straight between them, and on from the last two."""

    sizes: tuple
    seconds: tuple

    def __call__(self, nbytes):
        i = bisect_right(self.sizes, nbytes)
        if i == 0:
            return self.seconds[0]
        if len(self.sizes) == 1:
            return self.seconds[0]
        i = min(i, len(self.sizes) - 1)
        low, high = self.sizes[i - 1], self.sizes[i]
        return self.seconds[i - 1] + (nbytes - low) * ((self.seconds[i] - self.seconds[i - 1]) / (high - low))

    @property
    def slope(self):
        """Seconds for each of many bytes."""
        return (self.seconds[-1] - self.seconds[-2]) / (self.sizes[-1] - self.sizes[-2])


def line(start, slope):
    """start + slope * bytes."""
    return Curve((0.0, 1.0e6), (start, start + slope * 1.0e6))


class Model(NamedTuple):
    """What it costs, in seconds, to move and to combine between the ranks of one group."""

    exchange: Curve  # a message out and one in at the same time
    send: Curve  # a message that only goes, or only comes
    post: float  # every further message of the same round
    combine: Curve  # adding what came as a message
    meet: float  # all ranks of a node wait for each other
    read: Curve  # copying from a neighbour's memory
    add: Curve  # adding what is in a neighbour's memory
    alone: Curve = line(0.0, 0.0)  # combining, when the other ranks only wait: counts where ranks share cores
    crowd: float = 1.0  # ranks that share a core
    source: str = "default"  # "measured" here, "cached" from an earlier job, "given"

    @classmethod
    def of(cls, alpha, beta, gamma=0.0, source="given"):
        """Straight lines: alpha seconds a message, beta a byte, gamma a combined byte; shared memory costs the same."""
        move, combine = line(alpha, beta), line(0.0, gamma)
        return cls(move, move, alpha, combine, alpha, line(0.0, beta), line(0.0, beta + gamma), source=source)

    @property
    def alpha(self):
        return self.exchange(0)

    @property
    def beta(self):
        return self.exchange.slope

    @property
    def gamma(self):
        return self.combine.slope


DEFAULT = Model.of(2e-6, 1 / 10e9, 1 / 12e9, "default")._replace(
    meet=3e-6, read=line(5e-7, 1 / 10e9), add=line(5e-7, 1 / 8e9))
"""A host of today, in round numbers: for ranks that are threads, where measuring would make runs differ."""


class Row(NamedTuple):
    """One line of a table of predictions."""

    seconds: float
    algorithm: str
    options: dict
    transport: str
    rounds: int
    sent: float  # bytes that leave the busiest rank


def parameters(name):
    """The options that the rule of `name` takes, beyond rank, size and root."""
    return _parameters(ALGORITHMS[name].rule)


@cache
def _parameters(rule):
    return [p for p in list(signature(rule).parameters)[2:] if p != "root"]


def predict(name, size, nbytes, model, transport=MESSAGES, nodes=None, **options):
    """Seconds that `name` takes for M = nbytes on `size` ranks; None if it cannot run on that transport.

    nodes: the node of every rank (None: one). M counts the whole message.
    """
    found = profile(name, size, transport, nodes and tuple(nodes), tuple(sorted(options.items())))
    return None if found is None else seconds_of(found, nbytes, model)


def seconds_of(found, nbytes, model):
    """Seconds of a Profile."""
    chunk = float(nbytes) / found.chunks
    total = sum(times * max(_seconds(load, chunk, model) for load in loads) for times, loads in found.phases)
    return total + model.meet * any(load.meets for _, loads in found.phases for load in loads)  # the last meeting


def _seconds(load, chunk, model):
    """What one rank's part of a round takes. Costs are those of all ranks at work; few are faster on few cores."""
    share = (1 + (model.crowd - 1) * load.busy) / model.crowd
    seconds = load.meets * model.meet
    if messages := max(load.sends, load.receives):
        curve = model.exchange if load.sends and load.receives else model.send
        longest = chunk * max(load.out, load.into) / messages
        seconds += curve(0) + (messages - 1) * model.post * share + messages * (curve(longest) - curve(0))
    if load.combines:
        each = chunk * load.combined / load.combines
        most = model.combine(each)
        least = min(most, model.alone(each)) if model.crowd > 1 else most
        seconds += load.combines * (least + (most - least) * load.busy)
    for curve, count, chunks in ((model.read, load.reads, load.read), (model.add, load.adds, load.added)):
        if count:
            seconds += count * curve(chunk * chunks / count) * share
    return seconds


def candidates(collective, size, nodes=None):
    """The names of everything that may be chosen: what gives all ranks the same bits and fits the group."""
    spread = nodes is not None and 1 < len(set(nodes)) < size
    return [name for name, algorithm in ALGORITHMS.items() if algorithm.collective == collective
            and not name.startswith("naive_") and (spread or "nodes" not in parameters(name))]


def best_row(name, size, nbytes, model, transport=MESSAGES, nodes=None):
    """The Row of an algorithm with the number of segments that is best; None if it cannot run on the transport."""
    takes, best, nodes = parameters(name), None, tuple(nodes or (0,) * size)
    options = {"nodes": nodes} if "nodes" in takes else {}
    for segments in SEGMENTS if "segments" in takes else (None,):
        if segments is not None:
            options = {**options, "segments": segments}
        found = profile(name, size, transport, nodes, tuple(sorted(options.items())))
        if found is None:
            break
        row = Row(seconds_of(found, nbytes, model), name, options, transport, found.rounds,
                  found.sent * nbytes / found.chunks)
        if best is not None and (row.seconds > best.seconds or segments * SHORTEST > nbytes):
            break  # more segments only pay until their messages cost more than waiting does
        best = row
    return best


def table(collective, size, nbytes, model, transports=(MESSAGES,), nodes=None):
    """A Row for each algorithm and transport, with the best number of segments; fastest first."""
    rows = [best_row(name, size, nbytes, model, transport, nodes)
            for name in candidates(collective, size, nodes) for transport in transports]
    return sorted(filter(None, rows), key=lambda row: (row.seconds, row.rounds, row.algorithm, row.transport))


def crossovers(collective, size, model, transports=(MESSAGES,), nodes=None, first=4, last=256 << 20):
    """[(bytes, Row)] from `first` to `last`: from how many bytes on which algorithm is the fastest."""
    def best(nbytes):
        return table(collective, size, nbytes, model, transports, nodes)[0]

    def same(a, b):
        return (a.algorithm, a.transport) == (b.algorithm, b.transport)

    found = [(first, best(first))]
    while first < last:
        step = min(2 * first, last)
        here = best(step)
        if not same(here, found[-1][1]):
            low, high = first, step
            while high - low > max(1, low // 16):
                middle = (low + high) // 2
                if same(best(middle), found[-1][1]):
                    low = middle
                else:
                    high = middle
            found.append((high, best(high)))
            if not same(found[-1][1], here):
                found.append((step, here))
        first = step
    return found
