"""Data parallelism: every rank holds the whole model and reads other samples; gradients are summed by the ring."""

import hashlib

import numpy as np

from autograd.backend import to_host

BUCKET = 16 << 20           # bytes that one all-reduce sums: bounds the scratch memory of the ring
# Which algorithm is the fastest is measured, and may come out differently tomorrow. A run that is resumed must add in
# the order of the unbroken one, so here it is fixed.
LONG, SHORT = "ring", "recursive_doubling"


class DataParallel:
    """`sync(gradient)` for `train_step`: the sum over all ranks, in place, with the same bits everywhere.

    Losses are divided by the count of tokens of all ranks before backward, so a sum is all that is wanted.
    The weights of rank 0 become everyone's. Every rank of `group` makes one at the same time.
    """

    def __init__(self, group, flat):
        self.group, self.flat = group, flat
        self.ring = group.split(0, name="dp")   # its ledger counts the gradients' bytes and nothing else
        group.broadcast(flat.data, root=0, out=flat.data)

    def __call__(self, gradient):
        if self.group.size > 1:
            width = BUCKET // gradient.itemsize
            for start in range(0, gradient.size, width):
                bucket = gradient[start:start + width]
                self.ring.all_reduce(bucket, out=bucket, algorithm=LONG)

    def traffic(self):
        """(bytes that left this rank for gradients, bytes that the formula of the all-reduce allows).

        The ring's is 2 M (N-1)/N for M bytes of gradients, with chunks rounded up to whole cache lines.
        """
        entry = self.ring.ledger["all_reduce"]
        return entry.sent, entry.formula

    def check_copies(self, step):
        """Raise RuntimeError if the weights of two ranks differ in a single bit after `step`."""
        digest = hashlib.blake2b(to_host(self.flat.data), digest_size=8).digest()
        mine = np.frombuffer(digest, np.int64)
        if self.group.all_reduce(mine, "min") != self.group.all_reduce(mine, "max"):
            raise RuntimeError(f"after step {step} the copies of the weights differ between ranks: "
                               "an update did not come from the summed gradient")


def sum_over_ranks(group, *numbers):
    """The sums of these host numbers over all ranks, as floats (exact for counts up to 2^53)."""
    return group.all_reduce(np.array(numbers, np.float64), algorithm=SHORT).tolist()
