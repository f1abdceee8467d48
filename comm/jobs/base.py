"""What the jobs of all collectives share."""

from functools import lru_cache

import numpy as np

from comm import buffers
from comm.algorithms import ALGORITHMS
from comm.bind import COMBINE, divide
from comm.choose import Choice
from comm.device import Staging, device_of, host

SHORT = 128 << 10  # bytes: for so little it is quicker to copy to a kept plan's own memory than to make a plan


class Base:
    """A Group has _endpoint, _plans, _chooser, _flights, _peer(rank) and
    _begin(operation, x, details)."""

    def _run(self, job):
        """Run a job's plan, while what is in flight goes on; its result."""
        plan, finish = job
        if self._flights:
            self._flights.run(plan)
        else:
            plan.run()
        return finish()

    def _choose(self, collective, nbytes, algorithm=None, window=True, placed=False):
        """The Choice for M = nbytes. window: may ranks of a node meet in shared memory? placed: is all in it?"""
        if algorithm is None:
            return self._chooser.pick(collective, nbytes, window, placed)
        return self._chooser.named(_name(collective, algorithm), nbytes, placed)

    def _work_device(self, x, op="sum"):
        """Where to work on x: its own device if the transport can read it there, else staged on the host."""
        device = device_of(x)
        if device is host or (self._endpoint.takes_devices and op == "sum"):
            return device
        device.synchronize()
        return Staging(device)

    def _new(self, operation, choice, flat, work, cuts=None, **how):
        device = host if isinstance(work, Staging) else work
        return self._plans.new(operation, choice, flat, cuts, device=device, **how)

    def _short(self, operation, choice, count, dtype, cuts, out_count=0, out_cuts=(), **how):
        """A plan that is kept for short host arrays, on memory of its own: what it holds must be copied."""
        key = (operation, choice.algorithm, *choice.options.items(), choice.window, count, dtype, *cuts, *out_cuts,
               *(tuple(value) if isinstance(value, list) else value for value in how.values()))
        return self._plans.kept(key, lambda: self._plans.new(
            operation, choice, host.empty(count, dtype), list(cuts), kept=True, out_cuts=out_cuts,
            out=host.empty(out_count, dtype) if out_cuts else None, **how))

    def _all_gather_of(self, operation, numbers):
        """The job that joins a few integers of every rank; its result is valid until the next one."""
        n = numbers.size
        plan = self._plans.kept(("integers", operation, n), lambda: self._plans.new(
            operation, Choice("bruck_all_gather"), host.empty(n * self.size, np.int64),
            [n * rank for rank in range(self.size + 1)], kept=True))
        plan.flat[n * self.rank:n * (self.rank + 1)] = numbers
        return plan, lambda: plan.flat


def _name(collective, algorithm):
    known = [name for name, entry in ALGORITHMS.items() if entry.collective == collective]
    for name in (algorithm, f"{algorithm}_{collective}"):
        if name in known:
            return name
    raise ValueError(f"algorithm={algorithm!r}: expected one of {', '.join(known)}")


def is_contiguous(array):
    """One run of memory? Waits for what a device has yet to do."""
    device_of(array).synchronize()
    return buffers.is_contiguous(array)


def copied(device, target, source):
    """`target`, after `source` has been copied there."""
    device.copy(target, source)
    return target


def own(device, array):
    """The array, or a copy of it on `device` if it is elsewhere."""
    return array if device_of(array) is device else copied(device, device.like(array.shape, array.dtype), array)


def nothing():
    """The result of a rank that gets none."""


def check_op(op, dtype):
    """Raise unless numbers of this dtype can be combined by `op`."""
    if op not in COMBINE:
        raise ValueError(f"op={op!r}: expected one of {', '.join(COMBINE)}")
    if dtype.kind == "b" and op not in ("max", "min"):
        raise TypeError(f"a {op} of bool is not defined: convert to integers, or take op='max' (any) or 'min' (all)")
    if op == "mean" and dtype.kind in "iu":
        raise TypeError(f"a mean of {dtype} is no {dtype}: convert to floats first, or take op='sum'")
    if not _combines(op, dtype):
        raise TypeError(f"arrays of dtype {dtype} can be moved, but not combined by {op!r}: expected numbers")


@lru_cache
def _combines(op, dtype):
    """Has NumPy what it takes? Tried before anything is sent, not when the first summand has come."""
    total = np.zeros(1, dtype)
    try:
        COMBINE[op](total, total, out=total)
        if op == "mean":
            divide(total, 2)
    except TypeError:
        return False
    return dtype.kind not in "US"


def check_rows(operation, x):
    """Raise unless x has a first axis to cut."""
    if x.ndim == 0:
        raise ValueError(f"{operation} cuts the first axis; a single number has none: use all_reduce or broadcast")
