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
from functools import lru_cache
from inspect import signature
from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, Send, everyone
from comm.shared import fits

MESSAGES, WINDOW, STAGED = "messages", "window", "staged"
"""How chunks travel: as messages; read from arrays that lie in shared memory; copied there first."""

WALKED = 512  # ranks: from here on the registry's formulas speak, as walking through all rounds takes seconds
SAMPLE = 64  # ranks: where the share of what is added is looked up for those formulas
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
    source: str = "default"  # "measured" here, "cached" from an earlier job, "given"

    @classmethod
    def of(cls, alpha, beta, gamma=0.0, source="given"):
        """Straight lines: alpha seconds a message, beta a byte, gamma a combined byte; shared memory costs the same."""
        move, combine = line(alpha, beta), line(0.0, gamma)
        return cls(move, move, alpha, combine, alpha, line(0.0, beta), line(0.0, beta + gamma), source)

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


class Load(NamedTuple):
    """What one rank does in one round; counts of chunks."""

    sends: int
    receives: int
    out: int
    into: int
    combined: int
    meets: int
    read: int  # copied out of, or to, shared memory
    added: int  # added from shared memory


class Profile(NamedTuple):
    """An algorithm at one size: [(how many such rounds, the different Loads of its ranks)]."""

    rounds: int
    sent: float  # chunks that leave the busiest rank
    phases: tuple
    chunks: int  # C: a chunk is M/C bytes


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
    return [p for p in list(signature(ALGORITHMS[name].rule).parameters)[2:] if p != "root"]


def predict(name, size, nbytes, model, transport=MESSAGES, nodes=None, **options):
    """Seconds that `name` takes for M = nbytes on `size` ranks; None if it cannot run on that transport.

    nodes: the node of every rank (None: one). M counts the whole message, as in the contract of the collectives.
    """
    found = profile(name, size, transport, nodes and tuple(nodes), tuple(sorted(options.items())))
    return None if found is None else seconds_of(found, nbytes, model)


def seconds_of(found, nbytes, model):
    """Seconds of a Profile."""
    chunk = nbytes / found.chunks
    total = sum(times * max(_seconds(load, chunk, model) for load in loads) for times, loads in found.phases)
    return total + model.meet * any(load.meets for _, loads in found.phases for load in loads)  # the last meeting


def _seconds(load, chunk, model):
    seconds = 0.0
    messages = max(load.sends, load.receives)
    if messages:
        curve = model.exchange if load.sends and load.receives else model.send
        seconds += curve(chunk * max(load.out, load.into)) + (messages - 1) * model.post
    for curve, count in ((model.combine, load.combined), (model.read, load.read), (model.add, load.added)):
        if count:
            seconds += curve(chunk * count)
    return seconds + load.meets * model.meet


@lru_cache(4096)
def profile(name, size, transport=MESSAGES, nodes=None, options=()):
    """The Profile of an algorithm, or None if it cannot run on this transport. options: sorted pairs."""
    algorithm, options = ALGORITHMS[name], dict(options)
    chunks = algorithm.chunks(size, **options)
    if size >= WALKED:
        return _by_formula(name, size, options, chunks) if transport == MESSAGES else None
    all_rounds = everyone(algorithm.rule, size, **options)
    if transport != MESSAGES:
        all_rounds = list(all_rounds)
        if not fits(all_rounds, staged=transport == STAGED):
            return None
    nodes, phases, sent, count = np.array(nodes or (0,) * size), {}, np.zeros(size, int), 0
    for items in all_rounds:
        table = _loads(items, size, transport, nodes)
        sent += sum((item.to != NONE) * item.chunks.shape[1] for item in items if isinstance(item, Send))
        loads = tuple(Load(*row) for row in sorted(set(map(tuple, table.tolist()))))
        phases[loads] = phases.get(loads, 0) + 1
        count += 1
    return Profile(count, int(sent.max(initial=0)), tuple((times, loads) for loads, times in phases.items()), chunks)


def _loads(items, size, transport, nodes):
    """(size, 8) the Load of every rank in one round."""
    table, shown = np.zeros((size, 8), int), []
    for item in items:
        there, count, sends = item[0] != NONE, item.chunks.shape[1], isinstance(item, Send)
        near = there & (nodes == nodes[item[0]]) if transport != MESSAGES else np.zeros(size, bool)
        far = there & ~near
        table[:, 0 if sends else 1] += far
        table[:, 2 if sends else 3] += far * count
        if sends:
            table[np.isin(nodes, nodes[near]), 5] = 1
            shown.append(np.where(near[:, None], item.chunks, NONE))
            continue
        table[:, 4] += far * (count if item.reduce else 0)
        table[:, 7 if item.reduce else 6] += near * count
    if transport == STAGED and shown:
        shown = np.hstack(shown)
        table[:, 6] += [len(set(shown[rank].tolist()) - {NONE}) for rank in range(size)]
    return table


def _by_formula(name, size, options, chunks):
    """The Profile that the registry's formulas give, as if every round were the average one.

    Somebody waits for a whole chunk in every round of whole messages; the root of a gather for everyone's.
    """
    algorithm = ALGORITHMS[name]
    rounds, sent = algorithm.rounds(size, **options), algorithm.sent(size, **options)
    path = max(sent, rounds if chunks != size else 0, size - 1 if algorithm.collective == "gather" else 0)
    small = {**options, "nodes": options["nodes"][:SAMPLE]} if "nodes" in options else options
    sample = profile(name, SAMPLE, MESSAGES, None, tuple(sorted(small.items())))
    combined, moved = (sum(times * max(load[field] for load in loads) for times, loads in sample.phases)
                       for field in (4, 3))
    share = combined / moved if moved else 0
    load = Load(1, 1, path / rounds, path / rounds, share * path / rounds, 0, 0, 0)
    return Profile(rounds, sent, ((rounds, (load,)),), chunks)


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
