"""A group of ranks and what they can do together.

Collectives return new arrays and leave their input alone; `out=` takes the result, and may be the input.
Any shape, strides and dtype of fixed width. Arrays of a registered device come back as arrays of that device.
Every collective also has a form that only begins: `handle = group.all_reduce_async(x)`, see comm/flights.py.
"""

from operator import index

import numpy as np

from comm import check
from comm.choose import Chooser
from comm.flights import Flights
from comm.jobs import Jobs
from comm.ledger import Ledger
from comm.plans import Plans
from comm.point_to_point import PointToPoint


class Group(Jobs, PointToPoint):
    """`rank` of `size`; `ranks`, `nodes`: who they are in the world, and where; `name`: of the dimension;
    `ledger`: what this rank has sent here.
    """

    def __init__(self, endpoint, checked=None, name="world", parent=None):
        self._checked = check.wanted() if checked is None else checked
        doctor = self._checked and endpoint.size > 1
        endpoint = check.Watched(endpoint) if doctor else endpoint
        self._endpoint, self.name = endpoint, name
        self.rank, self.size, self.ranks, self.nodes = endpoint.rank, endpoint.size, endpoint.ranks, endpoint.nodes
        self.ledger = Ledger(name, parent and parent.ledger)
        self._flights = parent._flights if parent else Flights(doctor)
        self._plans = Plans(endpoint, self.ledger, self._all_agree)
        self._chooser = Chooser(endpoint)
        self._checker = check.Checker(endpoint, name, self._flights.progress) if doctor else None

    def __repr__(self):
        return f"Group({self.name!r}, rank {self.rank} of {self.size}, ranks in the world {list(self.ranks)})"

    def all_reduce(self, x, op="sum", out=None, algorithm=None):
        """The sum ("mean", "max", "min", "prod") over all ranks of x, which has one shape, on every rank.

        All ranks get the same bits (by every algorithm but naive). 16-bit floats travel in 16 bits, are added
        in float32 and rounded after each addition. algorithm: a name of comm.algorithms, "ring" or
        "ring_all_reduce"; None: comm/choose.py takes the fastest. Raises ValueError for an unknown op or
        algorithm or an unfit out, TypeError for what has no such sum.
        """
        return self._run(self._all_reduce(x, op, out, algorithm))

    def reduce(self, x, root=0, op="sum", out=None, algorithm=None):
        """The same on rank `root` only; None on the others."""
        return self._run(self._reduce(x, root, op, out, algorithm))

    def broadcast(self, x, root=0, out=None, algorithm=None):
        """The x of rank `root`, on every rank. The others pass an array of the same shape and dtype."""
        return self._run(self._broadcast(x, root, out, algorithm))

    def all_gather(self, x, axis=0, algorithm=None):
        """The ranks' arrays joined along `axis`, in order of rank; they may differ in length along it."""
        return self._run(self._all_gather(x, axis, algorithm))

    def gather(self, x, root=0, algorithm=None):
        """The ranks' arrays joined along the first axis on rank `root`; None on the others."""
        return self._run(self._gather(x, root, algorithm))

    def scatter(self, x=None, root=0, algorithm=None):
        """Rows bounds(n, size)[r] to [r+1] of the x of rank `root`, on rank r; the others need no x."""
        return self._run(self._scatter(x, root, algorithm))

    def reduce_scatter(self, x, op="sum", algorithm=None):
        """Rows bounds(n, size)[r] to [r+1] of the sum over all ranks, on rank r; x is (n, ...) everywhere.

        Raises ValueError for an unknown op or a single number, TypeError for a sum of bool.
        """
        return self._run(self._reduce_scatter(x, op, algorithm))

    def all_to_all(self, x, algorithm=None):
        """Rows bounds(n, size)[d] to [d+1] of x go to rank d; what came, joined in order of rank.

        x is (n, ...) on every rank. With one row for each rank this is the transpose.
        """
        return self._run(self._all_to_all(x, algorithm))

    def all_to_all_v(self, x, counts, algorithm=None):
        """counts[d] rows of x go to rank d, in order; (what came, in order of rank, how many rows from each).

        Raises ValueError if the counts are not those of the rows.
        """
        return self._run(self._all_to_all_v(x, counts, algorithm))

    def barrier(self):
        """Returns when every rank has come."""
        self._run(self._barrier())

    def all_reduce_async(self, x, op="sum", out=None, algorithm=None):
        """Begin `all_reduce`, with its arguments and errors; returns a Handle (comm/flights.py)."""
        return self._begin_flight(self._all_reduce(x, op, out, algorithm, flying=True))

    def reduce_async(self, x, root=0, op="sum", out=None, algorithm=None):
        """Begin `reduce`, with its arguments and errors; returns a Handle (comm/flights.py)."""
        return self._begin_flight(self._reduce(x, root, op, out, algorithm, flying=True))

    def broadcast_async(self, x, root=0, out=None, algorithm=None):
        """Begin `broadcast`, with its arguments and errors; returns a Handle (comm/flights.py)."""
        return self._begin_flight(self._broadcast(x, root, out, algorithm, flying=True))

    def all_gather_async(self, x, axis=0, algorithm=None):
        """Returns when every rank has begun it: they tell each other how long their parts are."""
        return self._begin_flight(self._all_gather(x, axis, algorithm, flying=True))

    def reduce_scatter_async(self, x, op="sum", algorithm=None):
        """Begin `reduce_scatter`, with its arguments and errors; returns a Handle (comm/flights.py)."""
        return self._begin_flight(self._reduce_scatter(x, op, algorithm, flying=True))

    def all_to_all_async(self, x, algorithm=None):
        """Begin `all_to_all`, with its arguments and errors; returns a Handle (comm/flights.py)."""
        return self._begin_flight(self._all_to_all(x, algorithm, flying=True))

    def progress(self):
        """Carry on what is in flight on this rank a little; how many collectives still are?"""
        return self._flights.progress()

    def plan(self, operation, buffer, op="sum", root=0, out=None, algorithm=None):
        """A collective on one buffer, made once, to be run many times: `plan.run()`, or start, poll and wait.

        operation: "all_reduce", "reduce", "broadcast" (in place, or into `out`), "reduce_scatter" (in place:
        this rank's rows are plan.result), "all_gather" (this rank's rows of `buffer` are there already),
        "all_to_all" (from `buffer` into `out`). buffer: a contiguous array, of the same shape on every rank,
        best from `empty`: then ranks of a node read each other's memory. plan.result, plan.algorithm, plan.sent
        and plan.messages (of one run), plan.peers. Raises ValueError for an unknown operation or a buffer that
        is not contiguous.
        """
        return self._plan(operation, buffer, op, root, out, algorithm)

    def empty(self, shape, dtype=np.float32):
        """A new array with undefined contents in memory that the ranks of a node share, for `plan`.

        Every rank must ask for it, with the same shape. It is 64-byte aligned, and given back at a later call
        of `empty` when no rank uses it any more.
        """
        return self._empty(shape, np.dtype(dtype))

    def split(self, color, key=None, name=None):
        """The group of the ranks that gave the same color, in order of key, then of rank.

        color: an int from 0, or None to be in no group and get None. name: for reports. Every rank of this
        group must call it.
        """
        if color is not None and index(color) < 0:
            raise ValueError(f"color={color}: expected an int from 0, or None to be in no group")
        mine = [-1 if color is None else index(color), self.rank if key is None else index(key)]
        if not all(-1 << 63 <= number < 1 << 63 for number in mine):
            raise ValueError(f"color={color}, key={key}: expected integers of 64 bits")
        mine = np.array([mine], np.int64)
        self._begin("split", mine)
        colors, keys = self._run(self._all_gather(mine, 0, None)).T
        members = sorted((r for r in range(self.size) if colors[r] == mine[0, 0]), key=lambda r: (keys[r], r))
        endpoint = self._endpoint.split(color, members)
        if endpoint is None:
            return None
        return Group(endpoint, self._checked, name or f"{self.name}.{color}", self)

    def farewell(self):
        """This rank makes no more calls. With checks on, others hear of it instead of waiting for ever."""
        if self._checker is not None:
            self._checker.farewell()

    def _begin_flight(self, job):
        return self._flights.begin(*job)

    def _begin(self, operation, x, details="", even=True):
        """Say what comes, for reports; with checks on, make sure that all ranks say the same."""
        self._endpoint.operation = operation
        if self._checker is not None:
            count = x.size if even else "any number of"
            self._checker(f"{operation}({count} {x.dtype}{details and ', '}{details})")

