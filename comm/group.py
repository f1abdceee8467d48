"""A group of ranks and what they can do together.

Collectives return new arrays and leave their input alone; `out=` takes the result, and may be the input.
Any shape, strides and dtype of fixed width. Arrays of a registered device come back as arrays of that device.
"""

from itertools import accumulate
from math import prod
from operator import index

import numpy as np

from comm import buffers, check
from comm.algorithms import ALGORITHMS
from comm.device import Staging, device_of, host
from comm.execute import COMBINE, Plans
from comm.ledger import Ledger
from comm.point_to_point import PointToPoint
from comm.schedule import bounds

ALL_REDUCES = [name for name, algorithm in ALGORITHMS.items() if algorithm.collective == "all_reduce"]
SHORT = 8 << 10  # bytes: up to here few rounds matter more than few bytes


class Group(PointToPoint):
    """`rank` of `size`; `ranks`: who they are in the world; `ledger`: what this rank has sent here."""

    def __init__(self, endpoint, checked=None):
        self._endpoint = endpoint
        self.rank, self.size, self.ranks = endpoint.rank, endpoint.size, endpoint.ranks
        self.ledger = Ledger()
        self._plans = Plans(endpoint)
        self._checked = check.wanted() if checked is None else checked
        self._checker = check.Checker(endpoint) if self._checked and self.size > 1 else None

    def __repr__(self):
        return f"Group(rank {self.rank} of {self.size}, ranks in the world {list(self.ranks)})"

    def all_reduce(self, x, op="sum", out=None, algorithm=None):
        """The sum ("max", "min") over all ranks of x, which has one shape; on every rank, with the same bits.

        By the ring, 2 M (N-1)/N bytes leave each rank; short arrays go by recursive doubling. 16-bit floats
        travel in 16 bits, are added in float32 and rounded after each addition. algorithm: a name of
        comm.algorithms. Raises ValueError for an unknown op, algorithm or an unfit out, TypeError for what
        has no such sum.
        """
        x = buffers.as_array(x)
        _check_op(op, x.dtype)
        if algorithm is None:
            algorithm = "ring_all_reduce" if x.nbytes > SHORT else "recursive_doubling_all_reduce"
        elif algorithm not in ALL_REDUCES:
            raise ValueError(f"algorithm={algorithm!r}: expected one of {', '.join(ALL_REDUCES)}")
        self._begin("all_reduce", x, op)
        return self._same_shape("all_reduce", algorithm, x, out, op)

    def broadcast(self, x, root=0, out=None):
        """The x of rank `root`, on every rank. The others pass an array of the same shape and dtype."""
        x = buffers.as_array(x)
        root = self._peer(root)
        self._begin("broadcast", x, f"root {root}")
        return self._same_shape("broadcast", "binomial_broadcast", x, out, root=root)

    def all_gather(self, x, axis=0):
        """The ranks' arrays joined along `axis`, in order of rank; they may differ in length along it."""
        x = buffers.as_array(x)
        x = x.reshape(1) if x.ndim == 0 else x
        axis = _axis(axis, x.ndim)
        order = [axis, *(i for i in range(x.ndim) if i != axis)]
        front = x.transpose(order)  # the axis first, so that every rank's part is one run of memory
        width = prod(front.shape[1:])
        self._begin("all_gather", x, f"axis {axis}, rows of {width}", even=False)
        lengths = self._lengths(x.shape[axis])
        cuts = (0, *accumulate(n * width for n in lengths))
        device, work = device_of(x), self._work_device(x)
        keep = work is host and cuts[-1] * x.dtype.itemsize <= SHORT
        plan = (self._plans.kept("ring_all_gather", cuts[-1], x.dtype, cuts) if keep else
                self._new("ring_all_gather", work.empty(cuts[-1], x.dtype), work, cuts))
        device.copy(plan.flat[cuts[self.rank]:cuts[self.rank + 1]].reshape(front.shape), front)
        self._run("all_gather", plan)
        whole = plan.flat.reshape(sum(lengths), *front.shape[1:])
        if axis == 0 and work is device and not keep:
            return whole
        whole = whole.transpose([order.index(i) for i in range(x.ndim)])
        result = device.like(whole.shape, x.dtype)
        device.copy(result, whole)
        return result

    def reduce_scatter(self, x, op="sum"):
        """Rows bounds(n, size)[r] to [r+1] of the sum over all ranks, on rank r; x is (n, ...) everywhere.

        Raises ValueError for an unknown op or a single number, TypeError for a sum of bool.
        """
        x = buffers.as_array(x)
        _check_op(op, x.dtype)
        if x.ndim == 0:
            raise ValueError("reduce_scatter cuts the first axis; a single number has none: use all_reduce")
        self._begin("reduce_scatter", x, op)
        rows, width = bounds(x.shape[0], self.size), prod(x.shape[1:])
        device, work = device_of(x), self._work_device(x, op)
        flat = work.empty(x.size, x.dtype)
        device.copy(flat.reshape(x.shape), x)
        self._run("reduce_scatter",
                  self._new("ring_reduce_scatter", flat, work, [row * width for row in rows], op))
        mine = flat.reshape(x.shape)[rows[self.rank]:rows[self.rank + 1]]
        result = device.like(mine.shape, x.dtype)
        device.copy(result, mine)
        return result

    def barrier(self):
        """Returns when every rank has come: an all-reduce of one byte."""
        token = np.zeros(1, np.uint8)
        self._begin("barrier", token)
        self._same_shape("barrier", "recursive_doubling_all_reduce", token, None, "max")

    def split(self, color, key=None):
        """The group of the ranks that gave the same color, in order of key, then of rank.

        color: an int from 0, or None to be in no group and get None. Every rank of this group must call it.
        """
        if color is not None and index(color) < 0:
            raise ValueError(f"color={color}: expected an int from 0, or None to be in no group")
        mine = np.array([[-1 if color is None else color, self.rank if key is None else index(key)]])
        self._begin("split", mine)
        colors, keys = self.all_gather(mine).T
        members = sorted((r for r in range(self.size) if colors[r] == mine[0, 0]), key=lambda r: (keys[r], r))
        endpoint = self._endpoint.split(color, members)
        return None if endpoint is None else Group(endpoint, self._checked)

    def farewell(self):
        """This rank makes no more calls. With checks on, others hear of it instead of waiting for ever."""
        if self._checker is not None:
            self._checker("nothing more: its program has ended")

    def _begin(self, operation, x, details="", even=True):
        """Say what comes, for reports; with checks on, make sure that all ranks say the same."""
        self._endpoint.operation = operation
        if self._checker is not None:
            count = x.size if even else "any number of"
            self._checker(f"{operation}({count} {x.dtype}{details and ', '}{details})")

    def _run(self, operation, plan):
        plan.run()
        self.ledger.add(operation, plan.messages, plan.sent, plan.flat.nbytes)

    def _new(self, algorithm, flat, work, cuts=None, op="sum", **options):
        device = host if isinstance(work, Staging) else work
        return self._plans.new(algorithm, flat, cuts, op, device, **options)

    def _work_device(self, x, op="sum"):
        """Where to work on x: its own device if the transport can read it there, else staged on the host."""
        device = device_of(x)
        if device is host or (self._endpoint.takes_devices and op == "sum"):
            return device
        device.synchronize()
        return Staging(device)

    def _same_shape(self, operation, algorithm, x, out, op="sum", **options):
        """A collective whose result is shaped like x: put x where the plan works, and run it there."""
        if out is not None:
            buffers.check_out(out, x.shape, x.dtype)
        device, work = device_of(x), self._work_device(x, op)
        in_place = out is not None and device_of(out) is work and self._contiguous(out, work)
        if work is host and (in_place or (out is None and x.nbytes <= SHORT)):
            plan = self._plans.kept(algorithm, x.size, x.dtype, None, op, out, **options)
        else:
            flat = out.reshape(-1) if in_place else work.empty(x.size, x.dtype)
            plan = self._new(algorithm, flat, work, None, op, **options)
        if not (in_place and buffers.same_memory(x, out)):
            device.copy(plan.flat.reshape(x.shape), x)
        self._run(operation, plan)
        if in_place:
            return out
        result = plan.flat.reshape(x.shape)
        if out is None and work is device and x.nbytes > SHORT:
            return result
        out = device.like(x.shape, x.dtype) if out is None else out
        device.copy(out, result)
        return out

    def _contiguous(self, out, work):
        work.synchronize()
        return buffers.is_contiguous(out)

    def _lengths(self, length):
        """How long every rank's part is."""
        plan = self._plans.kept("ring_all_gather", self.size, np.dtype(np.int64), tuple(range(self.size + 1)))
        plan.flat[self.rank] = length
        self._run("all_gather", plan)
        return plan.flat.tolist()


def _check_op(op, dtype):
    if op not in COMBINE:
        raise ValueError(f"op={op!r}: expected one of {', '.join(COMBINE)}")
    if op == "sum" and dtype.kind == "b":
        raise TypeError("a sum of bool is not defined: convert to integers, or take op='max' (any) or "
                        "'min' (all)")
    if dtype.kind in "USM" or dtype.names:
        raise TypeError(f"arrays of dtype {dtype} can be moved, but not combined by {op!r}: expected numbers")


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis}: the array has {ndim} axes")
    return axis % ndim
