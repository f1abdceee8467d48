"""Add up inside the nodes first: between nodes goes what is left, once, over all of their links side by side.

Two-level all-reduce as in Cho, Finkler, Kung and Hunter, "BlueConnect" (2019),
https://proceedings.mlsys.org/paper_files/paper/2019/hash/0c8abcf158ed12d0dd94480681186fda-Abstract.html
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.schedule import NONE, Algorithm, Recv, Send, span


def hierarchical_all_reduce(rank, size, nodes=None):
    """Reduce-scatter inside a node, ring all-reduce between nodes, all-gather inside.

    nodes: the number of each rank's node, in any order (None: two, the first and the second half of the ranks). With
    K nodes, the smallest of L ranks, the message is cut into L lanes: the l-th rank of every node adds up lane l of
    its node (one round), the l-th ranks of all nodes add those up round a ring (2 (K-1) rounds), and tell their
    nodes (one round). Between nodes 2 (K-1)/K M/L bytes leave a rank that has a lane: for long messages, where links
    inside a node are the faster ones. Each chunk is completed by one rank: all end with the same bits.
    """
    places = _Places(rank, size, nodes)
    yield from _inside(rank, size, places)
    for k in range(2 * (places.count - 1)):
        yield _between(places, k, reduce=k < places.count - 1)
    yield from backwards(_inside, rank, size, reduce=False, places=places)


def _inside(rank, size, places):
    """One round: everybody hands every lane to the rank of its node that adds it up."""
    items, lanes = [], places.lanes
    for far in range(1, places.longest):
        after, before = (places.place + far) % places.length, (places.place - far) % places.length
        there = far < places.length  # in smaller nodes nobody is that far away
        items += [Send(np.where(there & (after < lanes), places.members[places.node, after], NONE),
                       places.lane(after)),
                  Recv(np.where(there & (places.place < lanes), places.members[places.node, before], NONE),
                       places.lane(places.place), True)]
    if items:
        yield items


def _between(places, k, reduce):
    """Step k of the ring of nodes, in every lane."""
    count, first, works = places.count, places.place * places.count, places.place < places.lanes
    right, left = (np.where(works, places.members[(places.node + step) % count, places.place], NONE)
                   for step in (1, -1))
    return [Send(right, span(first + (places.node - k) % count, 1)),
            Recv(left, span(first + (places.node - k - 1) % count, 1), reduce)]


class _Places:
    """Where rank (or all) is: `node`, of `length` ranks, and `place` in it; who is at each place: `members`.

    count: nodes. lanes: ranks of the smallest one. longest: ranks of the largest one.
    """

    def __init__(self, rank, size, nodes):
        node, lengths = _numbered(size, nodes)
        self.count, self.lanes, self.longest = len(lengths), int(min(lengths)), int(max(lengths))
        order = np.argsort(node, kind="stable")
        starts = np.cumsum(lengths) - lengths
        place = np.empty(size, int)
        place[order] = np.arange(size) - starts[node[order]]
        self.members = np.full((self.count, self.longest), NONE)
        self.members[node, place] = np.arange(size)
        self.node, self.place, self.length = node[rank], place[rank], lengths[node[rank]]

    def lane(self, number):
        """The chunks of a lane: one for each node."""
        return span(number * self.count, self.count)


def _numbered(size, nodes):
    """(the node of each rank, numbered from 0; how many ranks each has)."""
    if nodes is None:
        nodes = np.arange(size) * min(2, size) // size
    if len(nodes) != size:
        raise ValueError(f"nodes={tuple(nodes)}: expected the node of each of {size} ranks")
    _, numbers, lengths = np.unique(np.asarray(nodes), return_inverse=True, return_counts=True)
    return numbers, lengths


def _shape(n, nodes):
    """(nodes, ranks of the smallest, ranks of the largest)."""
    _, lengths = _numbered(n, nodes)
    return len(lengths), int(min(lengths)), int(max(lengths))


def _rounds(n, nodes=None):
    count, _, longest = _shape(n, nodes)
    return 2 * (count - 1) + 2 * (longest > 1)


def _sent(n, nodes=None):
    """Of the ranks that have a lane: the other lanes, the ring, and the lane to the whole of the largest node."""
    count, lanes, longest = _shape(n, nodes)
    return count * (lanes - 1) + 2 * (count - 1) + count * (longest - 1)


def _total(n, nodes=None):
    """Every lane climbs out of N - K ranks and back, and goes twice round the ring of K nodes but one."""
    count, lanes, _ = _shape(n, nodes)
    return 2 * count * lanes * (n - 1)


def _chunks(n, nodes=None):
    count, lanes, _ = _shape(n, nodes)
    return count * lanes


def _variants(n):
    if n > 100:
        return [{"nodes": tuple(r // 8 for r in range(n))}]
    placed = [[0] * n, range(n), [r * 2 // n for r in range(n)], [r % 3 for r in range(n)],
              [int(r ** 0.5) for r in range(n)]]  # one node, one rank each, halves, interleaved, uneven
    return [{"nodes": nodes} for nodes in dict.fromkeys(map(tuple, placed))]


ALGORITHMS = {
    "hierarchical_all_reduce": Algorithm(
        hierarchical_all_reduce, "all_reduce", _rounds, _sent, _total, _chunks, variants=_variants),
}
