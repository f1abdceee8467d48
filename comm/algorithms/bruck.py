"""Bruck: all-gather in ceil(log2 N) rounds for every N, with no rank that stands in for another.

Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
message-passing systems" (1997), https://doi.org/10.1109/71.642949.
"""

from comm.algorithms.mirror import backwards
from comm.algorithms.tree import log2, powers
from comm.schedule import Algorithm, Recv, Send, span


def bruck_all_gather(rank, size):
    """Rank r holds chunks r to r+d-1 when it sends them to rank r-d, and gets r+d to r+2d-1 from rank r+d.

    ceil(log2 N) rounds, M (N-1)/N bytes per rank. For short messages on any N; the longest go farthest.
    """
    for distance in powers(size):
        count = min(distance, size - distance)
        yield [Send((rank - distance) % size, span(rank, count) % size),
               Recv((rank + distance) % size, span(rank + distance, count) % size, False)]


def bruck_reduce_scatter(rank, size):
    """The all-gather backwards: sums for far ranks are handed on first, in ceil(log2 N) rounds."""
    yield from backwards(bruck_all_gather, rank, size, reduce=True)


ALGORITHMS = {
    "bruck_all_gather": Algorithm(
        bruck_all_gather, "all_gather", log2, lambda n: n - 1, lambda n: n * (n - 1)),
    "bruck_reduce_scatter": Algorithm(
        bruck_reduce_scatter, "reduce_scatter", log2, lambda n: n - 1, lambda n: n * (n - 1)),
}
