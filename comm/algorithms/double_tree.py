"""Two binary trees at once, so that every rank works in one of them and is a leaf in the other.

Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009),
https://doi.org/10.1016/j.parco.2009.09.001; in NCCL since version 2.4. In a single tree the leaves, half of all
ranks, only ever send their own summand up and hear the result: half of the links idle. Two trees take half of the
message each; whoever is an inner node of one is a leaf of the other.

The trees number the ranks from 1. A number's level is how often 2 divides it; odd numbers are leaves:

            4                The first tree gives rank r the number r + 1, the second one r + 2 (the last rank: 1),
        2       6            so that, but for a last odd number, even and odd change places.
      1   3   5   7
"""

import numpy as np

from comm.schedule import NONE, Algorithm, Recv, Send, span


def double_tree_all_reduce(rank, size, segments=1):
    """Sums climb both trees, then come down them, in segments that follow each other.

    With L = floor(log2 N): 2 (L + S - 1) rounds of M/2S bytes, at most 2 M bytes from a rank: with many segments the
    bytes of the ring, in a number of rounds that grows with log N. For long messages on many ranks.
    """
    levels = size.bit_length() - 1
    trees = [_Tree((rank + shift) % size + 1, size) for shift in (0, 1)]
    for t in range(levels + segments - 1 if levels else 0):
        yield [item for shift, tree in enumerate(trees) for item in _climb(tree, shift, size, t, segments)]
    for t in range(levels + segments - 1 if levels else 0):
        yield [item for shift, tree in enumerate(trees) for item in _descend(tree, shift, size, t, segments)]


class _Tree:
    """Where number `i` of a tree of `size` hangs: level, parent and children as numbers, 0 for none."""

    def __init__(self, i, size):
        low = i & -i
        self.level = _level(i)
        above = (i ^ low) | (low << 1)
        self.parent = np.where(above <= size, above, i ^ low)
        self.children = [np.where(low > 1, i - low // 2, 0), self._right(i, low, size)]

    @staticmethod
    def _right(i, low, size):
        """The highest number that is there of those which would hang below on the right."""
        found = 0 * i
        for step in (1 << k for k in range(size.bit_length())):
            found = np.where((step < low) & (i + step <= size), i + step, found)
        return found


def _level(i):
    return np.log2(i & -i).astype(int)


def _climb(tree, shift, size, t, segments):
    """Round t on the way up: a node of level l sends segment t - l, when its children have sent theirs."""
    yield _send(tree.parent, t - tree.level, shift, size, segments)
    for child in tree.children:
        yield _recv(child, t - _level(np.maximum(child, 1)), shift, size, segments, True)


def _descend(tree, shift, size, t, segments):
    """Round t on the way down: a node of level l sends segment t - (L - l), which it has heard by then."""
    levels = size.bit_length() - 1
    for child in tree.children:
        yield _send(child, t - levels + tree.level, shift, size, segments)
    yield _recv(tree.parent, t - levels + _level(np.maximum(tree.parent, 1)), shift, size, segments, False)


def _send(number, segment, shift, size, segments):
    return Send(_peer(number, segment, shift, size, segments), _chunk(segment, shift, segments))


def _recv(number, segment, shift, size, segments, reduce):
    return Recv(_peer(number, segment, shift, size, segments), _chunk(segment, shift, segments), reduce)


def _peer(number, segment, shift, size, segments):
    """The rank with this number, if there is one and it is the turn of a segment."""
    return np.where((number > 0) & (segment >= 0) & (segment < segments), (number - 1 - shift) % size, NONE)


def _chunk(segment, shift, segments):
    """The chunk of a segment: the second tree has the second half of the message."""
    return span(segment + shift * segments, 1)


def _rounds(n, segments=1):
    return 2 * (n.bit_length() - 2 + segments) if n > 1 else 0


ALGORITHMS = {
    "double_tree_all_reduce": Algorithm(
        double_tree_all_reduce, "all_reduce", _rounds,
        lambda n, segments=1: segments * (min(4, n) if n > 1 else 0),  # up both trees, down to two children
        lambda n, segments=1: 4 * segments * (n - 1), lambda n, segments=1: 2 * segments,
        variants=lambda n: [{"segments": s} for s in (1, 2, 5)]),
}
