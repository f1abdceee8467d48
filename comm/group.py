"""A group of ranks and what they can do together.

Collectives return new arrays and leave their input alone; `out=` takes the result (it may be the input itself).
Any shape, strides and dtype of fixed width; arrays of a registered device come back as arrays of that device.
"""

from collections import OrderedDict
from functools import partial
from itertools import accumulate
from math import prod

import numpy as np

from comm import buffers, check
from comm.algorithms import ALGORITHMS
from comm.device import device_of, host
from comm.execute import COLLECTIVE_TAG, COMBINE, Plan
from comm.ledger import Ledger
from comm.schedule import bounds, rounds

SHORT = 8 << 10  # bytes: up to here few rounds beat few bytes (MPI latency against bandwidth)
CACHED_PLANS = 64


class Group:
    """The ranks of one endpoint. `ranks` are their numbers in the world, `ledger` what this rank has sent here."""

    def __init__(self, endpoint, checked=None):
        self._endpoint = endpoint
        self.rank, self.size, self.ranks = endpoint.rank, endpoint.size, endpoint.ranks
        self.ledger = Ledger()
        self._plans = OrderedDict()
        self._checked = check.wanted() if checked is None else checked
        self._checker = check.Checker(endpoint) if self._checked and self.size > 1 else None

    def __repr__(self):
        return f"Group(rank {self.rank} of {self.size}, ranks in the world {list(self.ranks)})"

    # -- point to point ------------------------------------------------------------------------------------------

    def send(self, array, to, tag=0):
        """Send to rank `to`; returns when the array may be changed. It need not wait for the receiver, but may."""
        self._point_to_point("send", [(buffers.as_array(array), to)], None, None, tag)

    def recv(self, source, out=None, shape=None, dtype=None, tag=0):
        """The array that rank `source` sends with this tag, in `out`, or new with this shape and dtype."""
        out = _landing(out, shape, dtype)
        return self._point_to_point("recv", [], source, out, tag)

    def sendrecv(self, array, to, source, out=None, shape=None, dtype=None, tag=0):
        """Send `array` and receive at the same time; what comes is shaped like `array` unless told otherwise."""
        array = buffers.as_array(array)
        if out is None:
            shape = array.shape if shape is None else shape
            out = device_of(array).like(_shape(shape), array.dtype if dtype is None else dtype)
        return self._point_to_point("sendrecv", [(array, to)], source, out, tag)

    def _point_to_point(self, operation, out_going, source, out, tag):
        if not 0 <= tag < COLLECTIVE_TAG:
            raise ValueError(f"tag={tag}: expected 0 to {COLLECTIVE_TAG - 1}")
        sends = [(self._contiguous(x).reshape(-1), self._peer(to)) for x, to in out_going]
        receives, landing = [], None
        if out is not None:
            buffers.check_out(out, out.shape, out.dtype)
            landing = self._landing_for(out)
            receives.append((landing.reshape(-1), self._peer(source)))
        self._endpoint.operation = operation
        if self._endpoint.takes_devices:
            for array in [x for x, _ in out_going] + [out] * (out is not None):
                device_of(array).synchronize()
        self._endpoint.exchange(sends, receives, tag)()
        sent = sum(view.nbytes for view, _ in sends)
        self.ledger.add(operation, sum(self._endpoint.pieces(v) for v, _ in sends), sent, sent)
        if landing is not None and landing is not out:
            device_of(out).copy(out, landing)
        return out

    def _contiguous(self, x):
        """`x` in one run of memory that the transport can read."""
        device = device_of(x)
        if device is host or not self._endpoint.takes_devices:
            return buffers.to_host(x)
        device.synchronize()
        if buffers.is_contiguous(x):
            return x
        copy = device.like(x.shape, x.dtype)
        device.copy(copy, x)
        return copy

    def _landing_for(self, out):
        """`out` if the transport can write there, else something of its shape to copy from."""
        device = device_of(out)
        if device is not host and not self._endpoint.takes_devices:
            return device.pinned(out.size, out.dtype).reshape(out.shape)
        device.synchronize()
        return out if buffers.is_contiguous(out) else device.like(out.shape, out.dtype)

    def _peer(self, rank):
        if not 0 <= rank < self.size:
            raise ValueError(f"rank {rank} is not in this group: expected 0 to {self.size - 1}")
        return rank

    # -- collectives ---------------------------------------------------------------------------------------------

    def all_reduce(self, x, op="sum", out=None, algorithm=None):
        """The sum ("max", "min") over all ranks, on every rank with the same bits; x has the same shape everywhere.

        By the ring, 2 M (N-1)/N bytes leave each rank; short arrays go by recursive doubling. 16-bit floats travel
        in 16 bits, are added in float32 and rounded after each addition. Raises ValueError for an unknown op or an
        unfit out, TypeError for a sum of bool (use "max" for any, "min" for all, or convert).
        """
        x = buffers.as_array(x)
        _check_op(op, x.dtype)
        if algorithm is None:
            algorithm = "ring_all_reduce" if x.nbytes > SHORT else "recursive_doubling_all_reduce"
        self._begin("all_reduce", lambda: f"{op} of {x.size} {x.dtype}")
        return self._same_shape("all_reduce", algorithm, x, out, op)

    def broadcast(self, x, root=0, out=None):
        """The `x` of rank `root`, on every rank. The others pass an array of the same shape and dtype."""
        x = buffers.as_array(x)
        self._peer(root)
        self._begin("broadcast", lambda: f"{x.size} {x.dtype} from root {root}")
        return self._same_shape("broadcast", "binomial_broadcast", x, out, "sum", root=root)

    def all_gather(self, x, axis=0):
        """The ranks' arrays joined along `axis`, in order of rank; they may differ in length along it."""
        x = buffers.as_array(x)
        x = x.reshape(1) if x.ndim == 0 else x
        axis = _axis(axis, x.ndim)
        order = [axis, *(i for i in range(x.ndim) if i != axis)]
        width = prod(x.shape[i] for i in order[1:])
        self._begin("all_gather", lambda: f"arrays of {x.dtype}, {width} numbers for each place of axis {axis}")
        lengths = self._lengths(x.shape[axis])
        cuts = [0, *accumulate(n * width for n in lengths)]
        device, work = device_of(x), self._work_device(x)
        flat = work.empty(cuts[-1], x.dtype)
        front = x.transpose(order)  # the axis first, so that every rank's part is one run of memory
        device.copy(flat[cuts[self.rank]:cuts[self.rank + 1]].reshape(front.shape), front)
        self._run("all_gather", "ring_all_gather", flat, cuts, work, payload=flat.nbytes)
        whole = flat.reshape(sum(lengths), *front.shape[1:])
        if axis == 0 and work is device:
            return whole
        whole = whole.transpose([order.index(i) for i in range(x.ndim)])
        result = device.like(whole.shape, x.dtype)
        device.copy(result, whole)
        return result

    def reduce_scatter(self, x, op="sum"):
        """Rank r gets the sum over all ranks of rows bounds(n, size)[r] to [r+1] of x, which is (n, ...) on all."""
        x = buffers.as_array(x)
        _check_op(op, x.dtype)
        if x.ndim == 0:
            raise ValueError("reduce_scatter cuts the first axis and cannot cut a single number: use all_reduce")
        self._begin("reduce_scatter", lambda: f"{op} of {x.size} {x.dtype}")
        device, work = device_of(x), self._work_device(x, op)
        rows, width = bounds(x.shape[0], self.size), prod(x.shape[1:])
        flat = work.empty(x.size, x.dtype)
        device.copy(flat.reshape(x.shape), x)
        self._run("reduce_scatter", "ring_reduce_scatter", flat, [row * width for row in rows], work, op)
        mine = flat.reshape(x.shape)[rows[self.rank]:rows[self.rank + 1]]
        result = device.like(mine.shape, x.dtype)
        device.copy(result, mine)
        return result

    def barrier(self):
        """Returns when every rank has come."""
        self._begin("barrier", lambda: "")
        self._same_shape("barrier", "recursive_doubling_all_reduce", np.zeros(1, np.uint8), None, "max")

    def split(self, color, key=None):
        """The group of the ranks that gave the same color, ordered by key (then by rank); None for color None.

        color: an int from 0, or None to be in no group. Every rank of this group must call it.
        """
        if color is not None and color < 0:
            raise ValueError(f"color={color}: expected an int from 0, or None to be in no group")
        self._begin("split", lambda: "")
        mine = [-1 if color is None else color, self.rank if key is None else key]
        table = np.zeros((self.size, 2), np.int64)
        table[self.rank] = mine
        self._run("split", "ring_all_gather", table.reshape(-1), [2 * r for r in range(self.size + 1)], host)
        members = sorted((r for r in range(self.size) if table[r, 0] == mine[0]), key=lambda r: (table[r, 1], r))
        endpoint = self._endpoint.split(color, members)
        return None if endpoint is None else Group(endpoint, self._checked)

    # -- how -----------------------------------------------------------------------------------------------------

    def _begin(self, operation, details):
        self._endpoint.operation = operation
        if self._checker is not None:
            self._checker(f"{operation}({details()})")

    def _work_device(self, x, op="sum"):
        """Where the transport can work on `x`: on its own device, or staged on the host."""
        device = device_of(x)
        if device is host or (self._endpoint.takes_devices and op == "sum"):
            return device
        return _Staging(device)

    def _same_shape(self, operation, algorithm, x, out, op, **options):
        """A collective whose result is shaped like x: put x where the result goes, and run there."""
        if out is not None:
            buffers.check_out(out, x.shape, x.dtype)
        device, work = device_of(x), self._work_device(x, op)
        flat, fixed = self._place(x, out, work)
        if not (out is not None and fixed and buffers.same_memory(x, out)):
            device.copy(flat.reshape(x.shape), x)
        self._run(operation, algorithm, flat, bounds(x.size, self.size), work, op, cached=fixed, **options)
        if out is None:
            if work is device:
                return flat.reshape(x.shape).copy() if fixed else flat.reshape(x.shape)
            out = device.like(x.shape, x.dtype)
        elif fixed:
            return out
        device.copy(out, flat.reshape(x.shape))
        return out

    def _place(self, x, out, work):
        """(a flat buffer for x, may its plan be kept?): out's own memory, a short buffer of ours, or a new one."""
        if work is host and out is not None and out.flags.c_contiguous:
            return buffers.memory_of(out), True
        if work is host and out is None and x.nbytes <= SHORT:
            key = "short", x.size, x.dtype
            if key not in self._plans:
                self._remember(key, host.empty(x.size, x.dtype))
            return self._plans[key], True
        return work.empty(x.size, x.dtype), False

    def _run(self, operation, algorithm, flat, cuts, work, op="sum", cached=False, payload=None, **options):
        key = cached and (algorithm, buffers.address_of(flat), flat.size, flat.dtype, op, *options.values())
        plan = self._plans.get(key) if cached else None
        if plan is None:
            rule = partial(ALGORITHMS[algorithm].rule, **options)
            device = host if isinstance(work, _Staging) else work
            plan = Plan(self._endpoint, rounds(rule, self.rank, self.size), flat, cuts, op, device)
            if cached:
                self._remember(key, plan)
        plan.run()
        self.ledger.add(operation, plan.messages, plan.sent, flat.nbytes if payload is None else payload)

    def _lengths(self, length):
        """How long every rank's part is: uneven parts are the rule rather than the exception."""
        table = np.zeros(self.size, np.int64)
        table[self.rank] = length
        self._run("all_gather", "ring_all_gather", table, range(self.size + 1), host)
        return table.tolist()

    def _remember(self, key, value):
        self._plans[key] = value
        if len(self._plans) > CACHED_PLANS:
            self._plans.popitem(last=False)


class _Staging:
    """A device's arrays, worked on in host memory that it copies quickly, because MPI cannot read the device."""

    def __init__(self, device):
        self.empty = device.pinned


def _check_op(op, dtype):
    if op not in COMBINE:
        raise ValueError(f"op={op!r}: expected one of {', '.join(COMBINE)}")
    if op == "sum" and dtype == bool:
        raise TypeError("the sum of bool is not defined: convert to an integer, or take op='max' (any) or 'min' (all)")


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis}: the array has {ndim} axes")
    return axis % ndim


def _shape(shape):
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _landing(out, shape, dtype):
    if out is None and (shape is None or dtype is None):
        raise ValueError("recv needs to know what comes: pass out=, or shape= and dtype=")
    return host.like(_shape(shape), dtype) if out is None else out
