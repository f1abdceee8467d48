"""Buffers that are kept from step to step.

A training step asks for the same shapes over and over.  `empty` hands out a view of a kept block;
the block is free again when nobody else refers to it, which its reference count tells (a view
refers to its base), so whatever a user still holds, logits, micro-batches in flight, a lazy
gradient's closure, is never handed out twice.  In steady state nothing large is allocated.
"""

import mmap
from math import prod
from sys import getrefcount

import numpy as np

from autograd.rank import rank

SMALL = 1 << 16             # bytes; below, malloc is quicker than looking for a free block
LINE, PAGE = 64, 4096       # bytes
SLAB = 1 << 25              # bytes that are mapped at a time
_holder = [object()]
FREE = getrefcount(_holder[0]) + 1         # held by its list and getrefcount's argument, and by the table


def _mapped(size):
    """Fresh memory, in large pages where the system has them: a pass over a tile then misses no page table."""
    memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


class Arena:
    """Blocks by size, 64-byte aligned; starts are staggered, so that equal sizes do not share cache sets."""

    def __init__(self):
        self.blocks = {}        # bytes -> list of blocks
        self.last = {}          # bytes -> the block that was handed out last
        self.start = {}         # id of a block -> (block, offset of its first aligned byte)
        self.scratch = {}       # slot -> the array that every twin uses as its scratch number `slot`
        self.bytes = 0
        self.slab, self.used = None, SLAB

    def empty(self, shape, dtype):
        """An uninitialised C-contiguous array, 64-byte aligned.

        The block handed out last comes first, if it is free again: it is still in the cache.  Then the
        first free one, so that few blocks are in turn.
        """
        size = prod(shape) * dtype.itemsize
        blocks = self.blocks.get(size)
        if blocks is None:
            blocks, self.last[size] = self.blocks.setdefault(size, []), 0
        elif getrefcount(blocks[self.last[size]]) == FREE:
            block = blocks[self.last[size]]
            return np.ndarray(shape, dtype, block, self.start[id(block)][1])
        for i in range(len(blocks)):
            if getrefcount(blocks[i]) == FREE:
                self.last[size], block = i, blocks[i]
                return np.ndarray(shape, dtype, block, self.start[id(block)][1])
        return self._grow(blocks, size, shape, dtype)

    def _grow(self, blocks, size, shape, dtype):
        block, offset = self._block(-(-size // PAGE) * PAGE + PAGE), len(self.start) * 17 * LINE % PAGE
        blocks.append(block)
        self.start[id(block)] = (block, offset)
        self.bytes += block.nbytes
        self.last[size] = len(blocks) - 1
        return np.ndarray(shape, dtype, block, offset)

    def _block(self, length):
        """`length` bytes of a slab, or of a mapping of their own if they are many."""
        if length > SLAB // 8:
            return np.frombuffer(_mapped(length), np.uint8)
        if self.used + length > SLAB:
            self.slab, self.used = _mapped(SLAB), 0
        self.used += length
        return np.frombuffer(self.slab, np.uint8, length, self.used - length)

    def owns(self, block):
        return id(block) in self.start


FLOAT32 = np.dtype(np.float32)


def empty(shape, dtype=FLOAT32):
    """An uninitialised host array: from this rank's arena if it is large, from NumPy if small."""
    if prod(shape) * dtype.itemsize < SMALL:
        return np.empty(shape, dtype)
    if rank.arena is None:
        rank.arena = Arena()
    return rank.arena.empty(shape, dtype)


def clear():
    """Give this rank's kept blocks back to the system (what is still in use lives on with its users)."""
    rank.arena = None


def resident():
    """Bytes that this rank's arena holds."""
    return 0 if rank.arena is None else rank.arena.bytes
