"""Dropout whose mask is a function of where it falls, never of who drew before."""

from autograd import ops, streams
from minigpt.module import Module


class Dropout(Module):
    """Sets each number to 0 with probability p and divides the others by 1 - p.

    The mask is drawn by (seed, this layer's name, step, sample, position, channel), the coordinates that the
    batch carries, so recomputed blocks and any layout of ranks see the same one (CASES 63, 64). A batch without
    a step is not training: nothing is dropped.
    """

    def __init__(self, p, seed=0):
        if not 0 <= p < 1:
            raise ValueError(f"dropout={p}: expected a probability of at least 0 and below 1")
        self.p, self.seed = p, seed

    def forward(self, x, batch):
        if self.p == 0 or batch.step is None:
            return x
        keep = streams.keep_mask(self.p, self.seed, self.name, step=batch.step, samples=batch.samples,
                                 positions=batch.positions, channels=x.shape[-1])
        return ops.dropout(x, self.p, keep)
