"""Jobs that cut arrays, or join them: all_gather, gather, scatter, reduce_scatter."""

import pickle
from itertools import accumulate
from math import prod

import numpy as np

from comm import buffers
from comm.choose import Choice
from comm.device import Staging, device_of, host
from comm.jobs.base import SHORT, check_op, check_rows, copied, nothing
from comm.jobs.same_shape import SameShape
from comm.schedule import bounds

ANNOUNCED = 1024  # bytes in which the root of a scatter says what it has


class Parts(SameShape):
    """Part of Group."""

    def _all_gather(self, x, axis, algorithm, flying=False):
        x = buffers.as_array(x)
        x = x.reshape(1) if x.ndim == 0 else x
        axis = _axis(axis, x.ndim)
        order = [axis, *(i for i in range(x.ndim) if i != axis)]
        front = x.transpose(order)  # the axis first, so that every rank's part is one run of memory
        width = prod(front.shape[1:])
        self._begin("all_gather", x, f"axis {axis}, rows of {width}", even=False)
        lengths = self._lengths(x.shape[axis])
        plan = self._joined("all_gather", front, lengths, algorithm, flying)
        shape, back = (sum(lengths), *front.shape[1:]), [order.index(i) for i in range(x.ndim)]
        return plan, lambda: self._taken(plan, shape, device_of(x), back)

    def _joined(self, operation, x, lengths, algorithm, flying=False, **how):
        """The plan that joins the ranks' arrays along the first axis, with mine in its place."""
        width = prod(x.shape[1:])
        cuts = [0, *accumulate(n * width for n in lengths)]
        nbytes = cuts[-1] * x.dtype.itemsize
        choice = self._choose(operation, nbytes, algorithm, not flying)
        device, work = device_of(x), self._work_device(x)
        if work is host and nbytes <= SHORT and not flying:
            plan = self._short(operation, choice, cuts[-1], x.dtype, cuts, **how)
        else:
            plan = self._new(operation, choice, work.empty(cuts[-1], x.dtype), work, cuts, flying=flying, **how)
        device.copy(plan.flat[cuts[self.rank]:cuts[self.rank + 1]].reshape(x.shape), x)
        return plan

    def _taken(self, plan, shape, device, order=None):
        """What a plan holds, as a new array of `device` with its axes in this order."""
        whole = plan.flat.reshape(shape)
        if order not in (None, list(range(len(shape)))):
            whole = whole.transpose(order)
        elif device_of(whole) is device and whole.nbytes > SHORT:
            return whole
        return copied(device, device.like(whole.shape, whole.dtype), whole)

    def _gather(self, x, root, algorithm):
        x, root = buffers.as_array(x), self._peer(root)
        x = x.reshape(1) if x.ndim == 0 else x
        self._begin("gather", x, f"rows of {prod(x.shape[1:])}, root {root}", even=False)
        lengths = self._lengths(x.shape[0])
        plan = self._joined("gather", x, lengths, algorithm, root=root)
        shape = (sum(lengths), *x.shape[1:])
        return plan, (lambda: self._taken(plan, shape, device_of(x))) if self.rank == root else nothing

    def _scatter(self, x, root, algorithm):
        root = self._peer(root)
        self._begin("scatter", np.empty(0, np.uint8), f"root {root}", even=False)
        shape, dtype, device = self._announced(x, root)
        choice = self._choose("scatter", prod(shape) * dtype.itemsize, algorithm)
        rows, width = bounds(shape[0], self.size), prod(shape[1:])
        work = host if device is host else Staging(device)
        flat = work.empty(prod(shape), dtype)
        if self.rank == root:
            device.copy(flat.reshape(shape), buffers.as_array(x))
        plan = self._new("scatter", choice, flat, work, [row * width for row in rows], root=root)
        mine = flat.reshape(shape)[rows[self.rank]:rows[self.rank + 1]]
        return plan, lambda: copied(device, device.like(mine.shape, dtype), mine)

    def _announced(self, x, root):
        """(shape, dtype, device) of the root's x, on every rank. Raises on all of them if it cannot be cut."""
        fault, shape, dtype, device = "", (), np.dtype("u1"), host
        if self.rank == root:
            try:
                x = buffers.as_array(x)
                shape, dtype, device = x.shape, x.dtype, device_of(x)
                fault = "" if shape else "scatter cuts the first axis; a single number has none: use broadcast"
            except TypeError as error:
                fault = str(error)[:ANNOUNCED // 2]
        told = pickle.dumps((fault, shape, dtype))
        if len(told) > ANNOUNCED:
            told = pickle.dumps((f"its dtype has a description of more than {ANNOUNCED} bytes", (), np.dtype("u1")))
        told = np.frombuffer(told.ljust(ANNOUNCED, b"."), np.uint8)
        told = self._run(self._same_shape("scatter", Choice("binomial_broadcast"), told, None, False, root=root))
        fault, shape, dtype = pickle.loads(told.tobytes())
        if fault:
            raise ValueError(f"rank {root}, the root, cannot scatter: {fault}")
        return shape, dtype, device

    def _reduce_scatter(self, x, op, algorithm, flying=False):
        x = buffers.as_array(x)
        check_op(op, x.dtype)
        check_rows("reduce_scatter", x)
        choice = self._choose("reduce_scatter", x.nbytes, algorithm, not flying)
        self._begin("reduce_scatter", x, op)
        rows, width = bounds(x.shape[0], self.size), prod(x.shape[1:])
        cuts, device, work = [row * width for row in rows], device_of(x), self._work_device(x, op)
        if work is host and x.nbytes <= SHORT and not flying:
            plan = self._short("reduce_scatter", choice, x.size, x.dtype, cuts, op=op, promised=[self.rank])
            plan.flat.reshape(x.shape)[...] = x
            return plan, lambda: plan.flat.reshape(x.shape)[rows[self.rank]:rows[self.rank + 1]].copy()
        plain = work is host and x.flags.c_contiguous
        reused = work is host and not flying
        flat = self._plans.scratch(x.size, x.dtype) if reused else work.empty(x.size, x.dtype)
        if not plain:
            device.copy(flat.reshape(x.shape), x)
        plan = self._new("reduce_scatter", choice, flat, work, cuts, op=op, flying=flying,
                         source=x.reshape(-1) if plain else None, promised=[self.rank])
        mine = flat.reshape(x.shape)[rows[self.rank]:rows[self.rank + 1]]
        return plan, lambda: copied(device, device.like(mine.shape, x.dtype), mine)

    def _lengths(self, length):
        """How long every rank's part is."""
        return self._run(self._all_gather_of("all_gather", np.array([length]))).tolist()


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis}: the array has {ndim} axes")
    return axis % ndim
