"""Jobs in which every rank has something for every other: all_to_all, all_to_all_v."""

from itertools import accumulate, pairwise
from math import prod
from operator import index

import numpy as np

from comm import buffers
from comm.algorithms import ALGORITHMS
from comm.device import device_of, host
from comm.jobs.base import SHORT, Base, check_rows, own
from comm.schedule import bounds


class Exchange(Base):
    """Part of Group."""

    def _all_to_all(self, x, algorithm, flying=False):
        x = buffers.as_array(x)
        check_rows("all_to_all", x)
        self._begin("all_to_all", x)
        sent = [b - a for a, b in pairwise(bounds(x.shape[0], self.size))]
        came = [sent[self.rank]] * self.size
        return self._exchanged("all_to_all", x, sent, came, max(sent), algorithm, flying)

    def _all_to_all_v(self, x, counts, algorithm):
        x = buffers.as_array(x)
        check_rows("all_to_all_v", x)
        counts = [index(count) for count in counts]
        if len(counts) != self.size or min(counts) < 0 or sum(counts) != x.shape[0]:
            raise ValueError(f"counts={counts} for {x.shape[0]} rows on {self.size} ranks: expected {self.size} "
                             "numbers from 0 with that sum")
        self._begin("all_to_all_v", x, f"rows of {prod(x.shape[1:])}", even=False)
        table = self._run(self._all_gather_of("all_to_all_v", np.array(counts, np.int64)))
        table = table.reshape(self.size, self.size)
        came = table[:, self.rank].copy()
        plan, finish = self._exchanged("all_to_all_v", x, counts, came.tolist(), int(table.max()), algorithm, False)
        return plan, lambda: (finish(), came)

    def _exchanged(self, operation, x, sent, came, longest, algorithm, flying):
        """sent[d] rows go to rank d, came[s] come from rank s; no block of any rank is longer than `longest`."""
        width = prod(x.shape[1:])
        alike = operation == "all_to_all"  # the cuts of the input are the same on all ranks
        choice = self._choose("all_to_all", self.size * longest * width * x.dtype.itemsize, algorithm,
                              alike and not flying)
        padded = ALGORITHMS[choice.algorithm].even
        lengths = [[longest] * self.size] * 2 if padded else [sent, came]
        cuts, out_cuts = ([0, *accumulate(n * width for n in half)] for half in lengths)
        device, work = device_of(x), self._work_device(x)
        flat = self._blocks(x, work, sent, cuts)
        short = work is host and alike and flat.nbytes <= SHORT and not flying
        if short:
            plan = self._short(operation, choice, flat.size, x.dtype, cuts, out_cuts[-1], out_cuts)
            plan.flat[...] = flat
        else:
            plan = self._new(operation, choice, flat, work, cuts, flying=flying, out_cuts=out_cuts,
                             out=work.empty(out_cuts[-1], x.dtype))
        mine = plan.out[out_cuts[self.rank]:out_cuts[self.rank + 1]]
        device_of(mine).copy(mine, flat[cuts[self.rank]:cuts[self.rank + 1]])
        shape = (sum(came), *x.shape[1:])
        if not short and not padded:
            return plan, lambda: own(device, plan.out.reshape(shape))
        lengths = [n * width for n in came]
        return plan, lambda: own(device, _joined_blocks(plan.out, out_cuts, lengths, work).reshape(shape))

    def _blocks(self, x, work, sent, cuts):
        """The rows of x in flat memory where the block for each rank starts at its cut."""
        device, width = device_of(x), prod(x.shape[1:])
        if work is device and cuts[-1] == x.size and buffers.is_contiguous(x):
            return x.reshape(-1)
        flat = work.empty(cuts[-1], x.dtype)
        for (start, stop), at in zip(pairwise([0, *accumulate(sent)]), cuts):
            device.copy(flat[at:at + (stop - start) * width].reshape(stop - start, *x.shape[1:]), x[start:stop])
        return flat


def _joined_blocks(blocks, cuts, lengths, work):
    """Blocks that each start at a cut, one after the other; lengths: how many elements of each."""
    joined, at = work.empty(sum(lengths), blocks.dtype), 0
    for start, n in zip(cuts, lengths):
        device_of(blocks).copy(joined[at:at + n], blocks[start:start + n])
        at += n
    return joined
