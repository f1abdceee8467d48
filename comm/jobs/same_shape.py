"""Jobs whose result is shaped like their input: all_reduce, reduce, broadcast, barrier."""

import numpy as np

from comm import buffers
from comm.choose import Choice
from comm.device import device_of, host
from comm.jobs.base import SHORT, Base, check_op, copied, is_contiguous, nothing


class SameShape(Base):
    """Part of Group."""

    def _all_reduce(self, x, op, out, algorithm, flying=False):
        x = buffers.as_array(x)
        check_op(op, x.dtype)
        choice = self._choose("all_reduce", x.nbytes, algorithm, not flying)
        self._begin("all_reduce", x, op)
        return self._same_shape("all_reduce", choice, x, out, flying, op=op)

    def _reduce(self, x, root, op, out, algorithm, flying=False):
        x, root = buffers.as_array(x), self._peer(root)
        check_op(op, x.dtype)
        choice = self._choose("reduce", x.nbytes, algorithm, not flying)
        self._begin("reduce", x, f"{op}, root {root}")
        at_root = self.rank == root
        plan, finish = self._same_shape("reduce", choice, x, out if at_root else None, flying, op=op, root=root,
                                        promised=None if at_root else ())
        return plan, finish if at_root else nothing

    def _broadcast(self, x, root, out, algorithm, flying=False):
        x, root = buffers.as_array(x), self._peer(root)
        choice = self._choose("broadcast", x.nbytes, algorithm, not flying)
        self._begin("broadcast", x, f"root {root}")
        return self._same_shape("broadcast", choice, x, out, flying, root=root)

    def _barrier(self):
        token = np.zeros(1, np.uint8)
        self._begin("barrier", token)
        return self._same_shape("barrier", Choice("dissemination_barrier"), token, None, False, op="max")

    def _same_shape(self, operation, choice, x, out, flying, op="sum", **how):
        """A collective whose result is shaped like x."""
        if out is not None:
            buffers.check_out(out, x.shape, x.dtype)
        work = self._work_device(x, op)
        in_place = out is not None and device_of(out) is work and is_contiguous(out)
        if flying or work is not host or not (in_place or x.nbytes <= SHORT):
            return self._once(operation, choice, x, out, in_place, flying, op, how)
        if not in_place:
            plan = self._kept(operation, choice, None, x, op, how)
            plan.flat[...] = x.reshape(-1)
            if out is None:
                return plan, lambda: plan.flat.copy().reshape(x.shape)
            return plan, lambda: copied(host, out, plan.flat.reshape(x.shape))
        source = None if buffers.same_memory(x, out) else self._source(x, out)
        if source is None and not buffers.same_memory(x, out):
            np.copyto(out, x)
        plan = self._kept(operation, choice, out, x, op, how, source)
        return plan, lambda: out

    def _kept(self, operation, choice, flat, x, op, how, source=None):
        """A kept plan on the memory of `flat` (None: a buffer of its own) that reads the memory of `source`."""
        addresses = [array if array is None else buffers.address_of(array) for array in (flat, source)]
        key = (operation, choice.algorithm, *choice.options.items(), choice.window, x.size, x.dtype, op,
               *how.values(), *addresses)
        return self._plans.kept(key, lambda: self._plans.new(
            operation, choice, host.empty(x.size, x.dtype) if flat is None else buffers.memory_of(flat), op=op,
            source=source if source is None else buffers.memory_of(source), kept=True, **how))

    def _once(self, operation, choice, x, out, in_place, flying, op, how):
        """A job whose plan runs once: what is long has no overhead to speak of, and what flies is its own."""
        device, work = device_of(x), self._work_device(x, op)
        flat = out.reshape(-1) if in_place else work.empty(x.size, x.dtype)
        same = in_place and buffers.same_memory(x, out)
        source = self._source(x, flat) if work is host and not same else None
        if not same and source is None:
            device.copy(flat.reshape(x.shape), x)
        plan = self._new(operation, choice, flat, work, op=op, flying=flying, **how,
                         source=None if source is None else source.reshape(-1))
        if in_place:
            return plan, lambda: out
        result = flat.reshape(x.shape)
        if out is None and work is device:
            return plan, lambda: result
        return plan, lambda: copied(device, device.like(x.shape, x.dtype) if out is None else out, result)

    def _source(self, x, flat):
        """x, if a plan can read it while it writes `flat`; else None."""
        return x if x.flags.c_contiguous and not buffers.overlap(x, flat) else None
