"""Who takes part: MPI, our algorithms over messages and in shared memory, plain calls, gloo."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.device import host
from comm.predict import best_row, candidates
from comm.profile import MESSAGES, STAGED, WINDOW

PLANNED = ("all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all")
COLLECTIVES = (*PLANNED, "gather", "scatter", "barrier")
SLOW = 6  # times as long as the best prediction: not measured unless asked for by name


def nothing():
    return None


class Contender(NamedTuple):
    """run() is what is timed. fill() writes the input first; result() is what came out, or None."""

    name: str  # of an algorithm, or "MPI", "gloo", "plain call"
    transport: str
    run: Callable
    fill: Callable = nothing
    result: Callable = nothing
    zero: Callable = nothing  # clears the input, so that sums of sums stay finite
    sent: float | None = None  # bytes that leave this rank in one run, None: not known
    chosen: str = ""  # for which buffers Group takes it


class Arena:
    """The memory of one sweep, for messages of at most `most` bytes: made once, cut as needed.

    Two arrays each that lie in shared memory, that are private and aligned, and one as NumPy makes it.
    """

    def __init__(self, group, most):
        n = -(-most // 4) + group.size
        self.window = group.empty((2, n))
        self.private = host.like((2, n), np.float32)
        self.plain = np.empty(n, np.float32)


class Field:
    """The contenders for one collective and size.

    data: a Data. asked: names of algorithms, with or without the collective's; None: all but those that are
    predicted to be slow, whose names are `slow` then; "all": really all.
    """

    def __init__(self, group, data, arena, asked=None):
        self.group, self.data, self.arena, self.asked, self.slow = group, data, arena, asked, []
        self.kind, self.nbytes, self.chooser = data.collective, 4 * data.count, group._chooser
        self.private, self.out = (row[:data.count] for row in arena.private)

    def contenders(self):
        """MPI first."""
        if self.kind == "barrier":
            return [self.native(), Contender("dissemination_barrier", MESSAGES, self.group.barrier)]
        called = [self.plain()] if self.kind in PLANNED else [self.plain(name) for name in (*self.names(), None)]
        return [self.native(), *(self.planned() if self.kind in PLANNED else []), *called]

    def names(self):
        """The algorithms to be measured."""
        known = [name for name, entry in ALGORITHMS.items() if entry.collective == self.kind]
        if self.asked == "all":
            return known
        if self.asked:
            return [name for name in known if {name, name.removesuffix(f"_{self.kind}")} & set(self.asked)]
        size, nodes = self.group.size, self.group.nodes
        rows = {name: best_row(name, size, self.nbytes, self.chooser.model, nodes=nodes) for name in known}
        best = min(row.seconds for row in rows.values())
        self.slow = [name for name in known if rows[name].seconds > SLOW * best]
        fit = candidates(self.kind, size, nodes)
        return [name for name in fit if name not in self.slow]

    def native(self):
        """MPI's own, on aligned private memory."""
        data, buffer, out = self.data, self.private, self.out
        part = out[:data.count // data.size]
        run = self.group._endpoint.native(self.kind, buffer, part if self.kind == "reduce_scatter" else out)
        where = {"reduce_scatter": part, "all_to_all": out, "barrier": None}
        result = data.part(buffer) if self.kind == "scatter" else where.get(self.kind, buffer)
        silent = self.kind in ("reduce", "gather") and data.rank != data.root
        return Contender("MPI", "", run, lambda: data.fill(buffer), nothing if silent else lambda: result,
                         lambda: buffer.fill(0))

    def planned(self):
        """Every algorithm as a plan, on private memory and in the window; and what Group takes if it is another."""
        picks = {"window": self.chooser.pick(self.kind, self.nbytes, True, placed=True),
                 "messages": self.chooser.pick(self.kind, self.nbytes)}
        found = [self.plan(name, memory, transport) for name in self.names()
                 for memory, transport in ((self.arena.private, MESSAGES), (self.arena.window, WINDOW))]
        found.append(self.plan(None, self.arena.private, STAGED))
        found = [one for one in found if one is not None]
        for label, pick in picks.items():
            if not any(pick[::2] == (one.name, one.transport == WINDOW) for one in found):
                found.append(self.plan(pick.algorithm, *(
                    (self.arena.window, WINDOW) if pick.window else (self.arena.private, MESSAGES))))
            found = [one._replace(chosen=" ".join([one.chosen, label]).strip())
                     if one.transport != STAGED and pick[::2] == (one.name, one.transport == WINDOW) else one
                     for one in found]
        return found

    def plan(self, name, memory, transport):
        """A contender, or None if the plan that Group makes of it travels another way."""
        buffer, out = (row[:self.data.count] for row in memory)
        plan = self.group.plan(self.kind, buffer, algorithm=name, out=out if self.kind == "all_to_all" else None)
        if plan.window != (transport != MESSAGES):
            return None
        return Contender(plan.algorithm, transport, plan.run, lambda: self.data.fill(buffer), lambda: plan.result,
                         lambda: buffer.fill(0), plan.sent, "private" if transport == STAGED else "")

    def plain(self, name=None):
        """A call that takes an array as it is and returns a new one."""
        data, buffer, came = self.data, self.arena.plain[:self.data.count], [None]
        x = data.part(buffer) if self.kind in ("all_gather", "gather") else buffer
        call, pick = getattr(self.group, self.kind), self.chooser.pick(self.kind, self.nbytes, True)
        how = {} if name is None else {"algorithm": name}
        taken = f"takes {pick.algorithm}{', staged' * pick.window}"
        chosen = taken if name is None else "private" * (pick[::2] == (name, False))

        def run():
            came[0] = call(x, **how)

        return Contender(name or "plain call", MESSAGES if name else "", run, lambda: data.fill(buffer),
                         lambda: came[0], lambda: buffer.fill(0), chosen=chosen)
