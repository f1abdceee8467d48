"""Add up inside the nodes first: between nodes goes what is left, once, over all of their links side by side.

Two-level all-reduce as in Cho, Finkler, Kung and Hunter, "BlueConnect" (2019),
https://proceedings.mlsys.org/paper_files/paper/2019/hash/0c8abcf158ed12d0dd94480681186fda-Abstract.html
"""

import numpy as np

from comm.schedule import NONE, Algorithm, Recv, Send, span


def hierarchical_all_reduce(rank, size, nodes=None):
    """Reduce-scatter inside a node, ring all-reduce between nodes, all-gather inside.

    nodes: the number of each rank's node (None: two, the first and the second half of the ranks). With K nodes the
    smallest of which has L ranks, the message is cut into L lanes: the l-th rank of every node adds up lane l of
    its node (one round), the l-th ranks of all nodes add those up round a ring (2 (K-1) rounds), and tell their
    nodes (one round). Between nodes M/L bytes leave a rank twice, however many ranks a node has.
    """
    plan = _Plan(rank, size, nodes)
    if plan.longest > 1:
        yield plan.inside(adding=True)
    for k in range(2 * (plan.count - 1)):
        yield plan.between(k, adding=k < plan.count - 1)
    if plan.longest > 1:
        yield plan.inside(adding=False)


class _Plan:
    """Who is where: `node` and `place` in it of this rank (or of all), `lanes`, `count` of nodes."""

    def __init__(self, rank, size, nodes):
        node, lengths = _numbered(size, nodes)
        self.count, self.lanes, self.longest = len(lengths), int(min(lengths)), int(max(lengths))
        order = np.argsort(node, kind="stable")
        starts = np.concatenate([[0], np.cumsum(lengths)])
        place = np.empty(size, int)
        place[order] = np.arange(size) - starts[node[order]]
        self.members = np.full((self.count, self.longest), NONE)
        self.members[node, place] = np.arange(size)
        self.node, self.place, self.length = node[rank], place[rank], lengths[node[rank]]

    def inside(self, adding):
        """Everybody gives every lane to the rank that adds it up, or gets it from there."""
        items = []
        for far in range(1, self.longest):
            after, before = (self.place + far) % self.length, (self.place - far) % self.length
            there = far < self.length
            if adding:
                items += [Send(self._rank(after, there & (after < self.lanes)), self._lane(after)),
                          Recv(self._rank(before, there & (self.place < self.lanes)), self._lane(self.place), True)]
            else:
                items += [Send(self._rank(after, there & (self.place < self.lanes)), self._lane(self.place)),
                          Recv(self._rank(before, there & (before < self.lanes)), self._lane(before), False)]
        return items

    def between(self, k, adding):
        """Step k of the ring of nodes, in every lane."""
        first, works = self.place * self.count, self.place < self.lanes
        right, left = (np.where(works, self.members[(self.node + step) % self.count, self.place], NONE)
                       for step in (1, -1))
        return [Send(right, span(first + (self.node - k) % self.count, 1)),
                Recv(left, span(first + (self.node - k - 1) % self.count, 1), adding)]

    def _rank(self, place, there):
        return np.where(there, self.members[self.node, place], NONE)

    def _lane(self, lane):
        """The chunks of a lane: one for each node."""
        return span(lane * self.count, self.count)


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
