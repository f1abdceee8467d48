"""Plans on a caller's own buffers, and the shared memory that suits them."""

from functools import partial

import numpy as np

from comm import buffers
from comm.device import device_of, host
from comm.jobs.base import Base, check_op, is_contiguous
from comm.point_to_point import shape_of
from comm.schedule import bounds

OPERATIONS = ("all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all")


class Planned(Base):
    """Part of Group."""

    def _plan(self, operation, buffer, op, root, out, algorithm):
        if operation not in OPERATIONS:
            raise ValueError(f"operation={operation!r}: expected one of {', '.join(OPERATIONS)}")
        buffers.check_writable(buffer, "buffer")
        buffer, root = buffers.as_array(buffer), self._peer(root)
        self._check_buffers(operation, buffer, out)
        if operation in ("all_reduce", "reduce", "reduce_scatter"):
            check_op(op, buffer.dtype)
        arrays = [array.reshape(-1) for array in (buffer, out) if array is not None]
        self._begin(f"plan({operation})", buffer, f"{op}, root {root}")
        block = self._common_block(arrays) if out is None or operation == "all_to_all" else None
        choice = self._choose(operation, buffer.nbytes, algorithm, placed=block is not None)
        plan = self._plans.new(operation, choice, **self._memory(operation, arrays, root, buffer), op=op,
                               device=device_of(buffer), root=root, kept=True, agreed=True,
                               block=block if choice.window else None)
        plan.flights = self._flights
        plan.buffer, plan.result = buffer, self._result(operation, buffer, out, root)
        if self._checker is not None:
            plan.announce(partial(self._begin, f"planned {operation}", buffer, f"{op}, root {root}"))
        return plan

    def _check_buffers(self, operation, buffer, out):
        if operation == "all_to_all" and out is None:
            raise ValueError("a plan for all_to_all sends from `buffer` into another array: pass out=")
        if operation in ("all_gather", "reduce_scatter") and out is not None:
            raise ValueError(f"a plan for {operation} works in place: copy your part into `buffer`, pass no out=")
        if operation in ("all_gather", "reduce_scatter", "all_to_all") and buffer.ndim == 0:
            raise ValueError(f"{operation} cuts the first axis; a single number has none")
        if operation == "all_to_all" and buffer.shape[0] % self.size:
            raise ValueError(f"{buffer.shape[0]} rows for {self.size} ranks: a plan for all_to_all needs as many "
                             "for each; use all_to_all or all_to_all_v")
        for array in (buffer, out):
            if array is None:
                continue
            buffers.check_out(array, buffer.shape, buffer.dtype)
            if not is_contiguous(array):
                raise ValueError("a plan works on contiguous arrays, as from group.empty; this one has strides")
        if out is not None and buffers.overlap(buffer, out):
            raise ValueError("buffer and out overlap: leave out= away to work in place")

    def _memory(self, operation, arrays, root, buffer):
        """The arguments of the plan that say what is where."""
        if operation == "all_to_all":
            cuts = [i * (buffer.size // self.size) for i in range(self.size + 1)]
            flat, out = arrays
            mine = slice(cuts[self.rank], cuts[self.rank + 1])
            return {"flat": flat, "cuts": cuts, "out": out, "out_cuts": cuts, "first": (out[mine], flat[mine])}
        if operation in ("all_gather", "reduce_scatter"):
            width = buffer.size // max(1, buffer.shape[0])
            promised = [self.rank] if operation == "reduce_scatter" else None
            return {"flat": arrays[0], "cuts": [row * width for row in bounds(buffer.shape[0], self.size)],
                    "promised": promised}
        promised = () if operation == "reduce" and self.rank != root else None
        if len(arrays) == 1:
            return {"flat": arrays[0], "promised": promised}
        source = arrays[0] if device_of(buffer) is host else None
        first = None if source is not None else arrays[::-1]
        return {"flat": arrays[1], "source": source, "promised": promised, "first": first}

    def _result(self, operation, buffer, out, root):
        if operation == "reduce" and self.rank != root:
            return None
        if operation == "reduce_scatter":
            rows = bounds(buffer.shape[0], self.size)
            return buffer[rows[self.rank]:rows[self.rank + 1]]
        return buffer if out is None else out

    def _empty(self, shape, dtype):
        shape = shape_of(shape)
        if dtype.hasobject or not dtype.itemsize:
            raise TypeError(f"dtype {dtype}: expected one whose elements are a fixed number of bytes")
        self._begin("empty", np.empty(0, dtype), f"shape {shape}")
        return self._plans.windows.empty(shape, dtype)

    def _all_agree(self, flags):
        """Which of these hold on all ranks."""
        table = self._run(self._all_gather_of("empty", np.array(flags, np.int64)))
        return table.reshape(self.size, -1).all(axis=0)

    def _common_block(self, arrays):
        """The shared block that holds these arrays, at the same places on every rank, or None."""
        if device_of(arrays[0]) is not host:
            return None
        mine = self._plans.windows.where(arrays)
        table = self._run(self._all_gather_of("plan", np.array(mine, np.int64))).reshape(self.size, -1)
        return self._plans.windows.block(mine[0]) if mine[0] >= 0 and (table == table[0]).all() else None
