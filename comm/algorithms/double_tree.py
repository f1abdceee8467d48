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

from comm.algorithms.mirror import backwards
from comm.schedule import NONE, Algorithm, Recv, Send, span


def double_tree_all_reduce(rank, size, segments=1):
    """Sums climb both trees in segments that follow each other; then what the roots have goes down, last one first.

    With L = floor(log2 N): 2 (L + S - 1) rounds, in each at most M/S bytes out of a rank and in, 2 M in all: with many
    segments the bytes of the ring, in a number of rounds that grows with log N. For long messages on many ranks.
    Each chunk is added up along one tree and copied from its root: all ranks end with the same bits.
    """
    yield from _climb(rank, size, segments)
    yield from backwards(_climb, rank, size, reduce=False, segments=segments)


def _climb(rank, size, segments):
    """Up a link whose lower end is on level l goes segment t - l in round t: what comes from below came before."""
    levels = size.bit_length() - 1
    links = [link for shift in (0, 1) for link in _links(rank, size, shift)]
    for t in range(levels + segments - 1 if levels else 0):
        items = []
        for peer, level, shift, up in links:
            segment = t - level
            peer = np.where((segment >= 0) & (segment < segments), peer, NONE)
            chunks = span(segment + shift * segments, 1)  # the second tree has the second half of the message
            items.append(Send(peer, chunks) if up else Recv(peer, chunks, True))
        yield items


def _links(rank, size, shift):
    """(rank at the other end or NONE, level of the lower end, shift, does it go up?) of a rank's links in one tree."""
    number = (rank + shift) % size + 1
    for other, up in zip((_parent(number, size), _left(number), _right(number, size)), (True, False, False)):
        peer = np.where(other > 0, (other - 1 - shift) % size, NONE)
        yield peer, _level(number if up else other, size), shift, up


def _level(number, size):
    """How often 2 divides it."""
    return sum(number % (2 << k) == 0 for k in range(size.bit_length()))


def _parent(number, size):
    """One level up or, where that is cut off, the number without its lowest one bit; 0 for the root."""
    low = number & -number
    above = (number ^ low) | (low << 1)
    return np.where(above <= size, above, number ^ low)


def _left(number):
    low = number & -number
    return np.where(low > 1, number - low // 2, 0)


def _right(number, size):
    """The highest of those below on the right that is there, 0 if none is: the tree is cut off after `size`."""
    low, found = number & -number, 0 * number
    for step in (1 << k for k in range(size.bit_length())):
        found = np.where((step < low) & (number + step <= size), number + step, found)
    return found


def _rounds(n, segments=1):
    return 2 * (n.bit_length() - 2 + segments) if n > 1 else 0


ALGORITHMS = {
    "double_tree_all_reduce": Algorithm(
        double_tree_all_reduce, "all_reduce", _rounds,
        lambda n, segments=1: segments * (min(4, n) if n > 1 else 0),  # up both trees, down to two children
        lambda n, segments=1: 4 * segments * (n - 1), lambda n, segments=1: 2 * segments,
        variants=lambda n: [{"segments": s} for s in (1, 2, 5)]),
}
