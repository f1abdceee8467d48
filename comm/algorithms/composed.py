"""Collectives made of two others: long messages move in pieces, or one tree serves both ways.

A tree sends the whole message over each of its links. Here the root only hands out (or takes in) one chunk for
each rank, and the ring does the rest, where all ranks send at once: about 2 M bytes per rank, not M log2 N.
"""

from comm.algorithms import ring, tree
from comm.algorithms.ring import ring_all_gather, ring_reduce_scatter
from comm.algorithms.tree import binomial_broadcast, binomial_gather, binomial_reduce, binomial_scatter, log2
from comm.schedule import Algorithm


def binomial_all_reduce(rank, size):
    """Reduce along the tree to rank 0, then broadcast back: 2 ceil(log2 N) rounds, at most M log2 N bytes from a rank.

    The bytes of the star, but no rank's link carries them all. Recursive doubling does as much in half the rounds.
    """
    yield from binomial_reduce(rank, size)
    yield from binomial_broadcast(rank, size)


def scatter_all_gather_broadcast(rank, size, root=0):
    """Scatter along the tree, then all-gather round the ring: log2 N + N-1 rounds, 2 M (N-1)/N from the root.

    For long messages. Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, "Interprocessor collective
    communication library (InterCom)" (1994), https://doi.org/10.1109/SHPCC.1994.296665.
    """
    yield from binomial_scatter(rank, size, root)
    yield from ring_all_gather(rank, size)


def scatter_gather_reduce(rank, size, root=0):
    """Reduce-scatter round the ring, then gather along the tree: the broadcast's mirror image.

    N-1 + log2 N rounds, at most 1.5 M bytes from a rank. For long messages.
    Rabenseifner, "Optimization of collective reduction operations" (2004),
    https://doi.org/10.1007/978-3-540-24685-5_1.
    """
    yield from ring_reduce_scatter(rank, size)
    yield from binomial_gather(rank, size, root)


def _added(*parts):
    """rounds, sent and total of algorithms one after the other, where one rank is the busiest in all of them."""
    return [lambda n, cost=cost: sum(getattr(part, cost)(n) for part in parts)
            for cost in ("rounds", "sent", "total")]


_scatter, _gather = tree.ALGORITHMS["binomial_scatter"], tree.ALGORITHMS["binomial_gather"]
_all_gather, _reduce_scatter = ring.ALGORITHMS["ring_all_gather"], ring.ALGORITHMS["ring_reduce_scatter"]

ALGORITHMS = {
    "binomial_all_reduce": Algorithm(
        binomial_all_reduce, "all_reduce", lambda n: 2 * log2(n), log2, lambda n: 2 * (n - 1), chunks=lambda n: 1),
    "scatter_all_gather_broadcast": Algorithm(
        scatter_all_gather_broadcast, "broadcast", *_added(_scatter, _all_gather)),
    "scatter_gather_reduce": Algorithm(
        scatter_gather_reduce, "reduce", *_added(_reduce_scatter, _gather)),
}
