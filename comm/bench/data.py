"""What the arrays of a measurement hold, and what they must hold afterwards: numbers whose sums are exact.

Element i of rank r is a whole number below 251 that repeats after 251 elements, so that a chunk in the wrong
place is seen, and a sum over thousands of ranks is still exact in float32. As nccl-tests does, results are
compared number by number: an algorithm that is fast because it is wrong is no record.
"""

import numpy as np

PERIOD = 251
JUNK = -1.0  # where a result has yet to come


class Data:
    """Of one collective on `count` float32 per rank: M = 4 * count bytes, the whole message, as everywhere."""

    def __init__(self, collective, rank, size, count, root=0):
        self.collective, self.rank, self.size, self.count, self.root = collective, rank, size, count, root

    def fill(self, buffer):
        """Write what this rank has before a collective in place."""
        if self.collective == "all_gather" or self.collective == "gather":
            buffer.fill(JUNK)
            self.part(buffer)[...] = self._pattern(self.rank, self.rank)
        elif self.collective in ("broadcast", "scatter") and self.rank != self.root:
            buffer.fill(JUNK)
        else:
            _repeat(self._tile(self.rank), buffer)

    def part(self, array, rank=None):
        """The elements of one rank; of this one by default."""
        return array.reshape(self.size, -1)[self.rank if rank is None else rank]

    def wrong(self, result):
        """How many elements of this rank's result are not what was promised. None: nothing was."""
        if result is None:
            return 0
        result = np.asarray(result).reshape(-1)
        expected = self._expected()
        if result.shape != expected.shape:
            return max(result.size, expected.size)
        return int(np.count_nonzero(result != expected))

    def _expected(self):
        kind, everyone = self.collective, range(self.size)
        if kind in ("all_gather", "gather"):
            return np.concatenate([self._pattern(rank, rank) for rank in everyone])
        if kind == "all_to_all":
            return np.concatenate([self._pattern(rank, self.rank) for rank in everyone])
        if kind == "scatter":
            return self._pattern(self.root, self.rank)
        tile = self._tile(self.root) if kind == "broadcast" else sum(self._tile(rank) for rank in everyone)
        whole = _repeat(tile, np.empty(self.count, np.float32))
        return self.part(whole) if kind == "reduce_scatter" else whole

    def _tile(self, rank):
        """One period of the numbers of a rank."""
        return ((np.arange(PERIOD) * 7 + 13 * rank) % PERIOD).astype(np.float32)

    def _pattern(self, rank, part):
        """The numbers of `rank` in the part that belongs to rank `part`."""
        n = self.count // self.size
        return np.resize(np.roll(self._tile(rank), -(part * n % PERIOD)), n)


def _repeat(tile, array):
    """Fill `array` with a tile again and again."""
    flat = array.reshape(-1)
    whole = flat.size // PERIOD * PERIOD
    flat[:whole].reshape(-1, PERIOD)[...] = tile
    flat[whole:] = tile[:flat.size - whole]
    return array
