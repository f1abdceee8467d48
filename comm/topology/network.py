"""Vertices (GPUs, NICs, switches) joined by links, and the links that a message takes from one GPU to another.

A cable is two links, one each way. Routes are found for thousands of pairs at once: arithmetic on arrays, as the
rules of the collectives are.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NONE = -1  # no link in this place of a route


class Topology(NamedTuple):
    """A cluster as a graph. V vertices, of which the first G are the GPUs; L links; H the longest route."""

    title: str
    node: np.ndarray  # (G,) the server of each GPU
    tails: np.ndarray  # (L,) the vertex where each link begins
    heads: np.ndarray  # (L,) and where it ends
    bandwidth: np.ndarray  # (L,) bytes per second
    software: np.ndarray  # (L,) seconds from software to software, paid once by a message
    wire: np.ndarray  # (L,) seconds that each link of this kind adds
    tier: np.ndarray  # (L,) index into tiers
    tiers: list  # names of the kinds of links, from the GPU outwards
    path: Callable  # (source, target), (P,) GPUs of pairs that differ -> list of (P,) links or NONE
    walk: np.ndarray  # (G,) the place of each GPU on a walk round the cluster whose steps are short
    blocks: np.ndarray  # (G,) the place of each GPU in an order whose runs of 2, 4, 8, ... lie close together
    vertices: list  # (first, count, name) of each kind

    @property
    def gpus(self):
        """G."""
        return len(self.node)

    def routes(self, source, target):
        """(P, H) numbers of the links from source to target (P,), in order; NONE anywhere stands for no link.

        Raises ValueError for a GPU that the cluster does not have. From a GPU to itself there is no link.
        """
        source, target = np.atleast_1d(np.asarray(source, np.int64)), np.atleast_1d(np.asarray(target, np.int64))
        for ends in (source, target):
            if len(ends) and not 0 <= ends.min() <= ends.max() < self.gpus:
                raise ValueError(f"GPU {ends.min() if ends.min() < 0 else ends.max()}: expected 0 to {self.gpus - 1}")
        links = np.stack(self.path(source, target), axis=1)
        links[source == target] = NONE
        return links

    def latency(self, routes):
        """(P,) seconds for the first byte: the slowest software on the way once, and every wire."""
        there = routes != NONE
        software = np.where(there, self.software[routes], 0).max(axis=1, initial=0)
        return software + np.where(there, self.wire[routes], 0).sum(axis=1)

    def vertex(self, number):
        """What a vertex is called: "GPU 3", "leaf 0"."""
        for first, count, name in self.vertices:
            if first <= number < first + count:
                return f"{name} {number - first}" if count > 1 else name
        raise ValueError(f"vertex {number}: this cluster has {sum(v[1] for v in self.vertices)}")

    def link(self, number):
        """What a link is called: "leaf 0 -> spine 2"."""
        return f"{self.vertex(self.tails[number])} -> {self.vertex(self.heads[number])}"


class Drawing:
    """A topology that is being put together."""

    def __init__(self):
        self.vertices, self.tiers, self.parts, self.links = [], [], [], 0

    def add(self, count, name):
        """`count` new vertices; returns their numbers (count,)."""
        first = sum(kind[1] for kind in self.vertices)
        self.vertices.append((first, count, name))
        return np.arange(first, first + count)

    def join(self, tails, heads, tier, link, cables=1, wire=0.0):
        """One link from each tail to its head; returns their numbers, in the shape of `tails`.

        cables: so many side by side, as one link of their bandwidths together.
        """
        tails, heads = np.broadcast_arrays(tails, heads)
        if tier not in self.tiers:
            self.tiers.append(tier)
        facts = (link.bandwidth * cables, link.latency, wire, self.tiers.index(tier))
        self.parts.append((tails.ravel(), heads.ravel(), *(np.full(tails.size, fact) for fact in facts)))
        numbers = np.arange(self.links, self.links + tails.size).reshape(tails.shape)
        self.links += tails.size
        return numbers

    def topology(self, title, node, path, walk=None, blocks=None):
        """The finished Topology."""
        columns = [np.concatenate(column) for column in zip(*self.parts)] or [np.empty(0, int)] * 6
        order = np.arange(len(node))
        return Topology(title, node, *columns, self.tiers, path, order if walk is None else walk,
                        order if blocks is None else blocks, self.vertices)
