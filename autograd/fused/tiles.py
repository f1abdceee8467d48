"""Tools of the tuned CPU twins: tiles of rows, scratch, vectors of ones.

A chain of elementwise steps runs over a tile that stays in the core's second-level cache, with
`out=`, instead of over the whole array once per step (README, "Speed").  Everything here is float32
and C-contiguous; a twin's `when` sees to it.
"""

from functools import lru_cache

import numpy as np

from autograd import arena
from autograd.rank import rank

FLOAT32 = np.dtype(np.float32)
TILE = 1 << 15              # elements: 128 KiB, a sixteenth of a 2 MiB cache
SMALL = 1 << 13             # elements that broadcasting costs less for than a copy
UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def contiguous(*arrays):
    """Whether all are non-empty C-contiguous float32 arrays (None counts as one)."""
    for x in arrays:
        if x is not None and not (type(x) is np.ndarray and x.dtype == FLOAT32 and x.size
                                  and x.flags.c_contiguous):
            return False
    return True


def rows_per_tile(width):
    return max(1, TILE // width)


def scratch(slot, size):
    """This rank's scratch number `slot`, `size` float32 elements; its content is lost at the next call."""
    if rank.arena is None:
        rank.arena = arena.Arena()
    kept = rank.arena.scratch.get(slot)
    if kept is None or kept.size < size:
        rank.arena.scratch[slot] = kept = rank.arena.empty((max(size, TILE),), FLOAT32)
    return kept[:size]


def spread(slot, row, rows):
    """A row copied to `rows` rows of scratch: ufuncs that broadcast short rows run 2-3 times slower.

    What is small stays a row: there, another call costs more than broadcasting.
    """
    if rows * row.size < SMALL:
        return row
    tile = scratch(slot, rows * row.size).reshape(rows, row.size)
    np.copyto(tile, row)
    return tile


def first(tile, rows):
    """The first `rows` rows of what `spread` returned."""
    return tile if tile.ndim == 1 else tile[:rows]


_ones = np.ones(1 << 12, np.float32)


def ones(size):
    """A vector of ones: a matrix product with it sums rows or columns at the speed of memory."""
    global _ones
    if size > _ones.size:
        _ones = np.ones(1 << (size - 1).bit_length(), np.float32)
    return _ones[:size]


@lru_cache(64)
def averaging(size):
    """A vector whose product with a row is the row's mean."""
    return np.full(size, 1 / size, np.float32)


def column_sums(x):
    """sum over rows of x (n, m) -> (m,)"""
    return np.dot(ones(x.shape[0]), x)


def within(ids, size):
    """Whether all ids are rows of a table of `size`, in two passes; which one is not, the formula's check says."""
    return ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < size
