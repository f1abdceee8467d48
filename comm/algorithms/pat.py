"""PAT, parallel aggregated trees: all-gather and reduce-scatter in few rounds, with the long messages short-range.

Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale" (2025),
https://arxiv.org/abs/2506.20252; in NCCL since version 2.23. (PAT is Parallel Aggregated Trees.)

Every chunk goes down a binomial tree of its own, whose root is its rank. All trees have one shape, so in every round
every rank does the same, and what it sends to one peer for several trees is one message, aggregated. Recursive
doubling and Bruck do that too, but their last and longest messages go farthest. Here the farthest hop comes first,
when a message is a single chunk, and the longest go to the neighbour. The tree of chunk 0 on 8 ranks:

    round 1, 4 ranks far    0 ------------------- 4              1 chunk in a message
    round 2, 2 ranks far    0 ------- 2           4 ------- 6    2 chunks: 0's own, and the one that came
    round 3, 1 rank far     0 -- 1    2 -- 3      4 -- 5    6 -- 7   4 chunks
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.algorithms.tree import powers
from comm.schedule import Algorithm, Recv, Send


def pat_all_gather(rank, size, aggregate=None):
    """A chunk that came o ranks far goes d ranks farther, for d = N/2, ..., 4, 2, 1; M (N-1)/N bytes per rank.

    ceil(log2 N) rounds for every N. aggregate: the most chunks in one message (None: no limit). What is scattered is
    packed, so it bounds that scratch too; longer messages become several rounds, at last N-1 of them, as in a ring.
    Raises ValueError if it is below 1.
    """
    most = size if aggregate is None else aggregate
    if most < 1:
        raise ValueError(f"aggregate={aggregate}: expected chunks in one message, from 1, or None for no limit")
    for distance in reversed(powers(size)):
        came = range(0, size - distance, 2 * distance)  # how far the chunks have come that go on
        for first in range(0, len(came), most):
            far = came[first:first + most]
            yield [Send((rank + distance) % size, _chunks(rank, far, size)),
                   Recv((rank - distance) % size, _chunks(rank - distance, far, size), False)]


def pat_reduce_scatter(rank, size, aggregate=None):
    """The all-gather backwards: neighbours add up first, in long messages; a single chunk goes far."""
    yield from backwards(pat_all_gather, rank, size, reduce=True, aggregate=aggregate)


def _chunks(rank, far, size):
    """The chunks that are `far` ranks from their own: (count,), or (size, count) for all ranks."""
    return np.subtract.outer(rank, far) % size


def _rounds(n, aggregate=None):
    """A message at distance d holds a chunk for every 2d ranks."""
    lengths = [-(-(n - distance) // (2 * distance)) for distance in powers(n)]
    return sum(-(-length // (aggregate or n)) for length in lengths)


def _variants(n):
    return [{}, {"aggregate": 1}, {"aggregate": 3}] if n <= 100 else [{}, {"aggregate": 16}]


ALGORITHMS = {
    "pat_all_gather": Algorithm(
        pat_all_gather, "all_gather", _rounds, lambda n, aggregate=None: n - 1,
        lambda n, aggregate=None: n * (n - 1), variants=_variants),
    "pat_reduce_scatter": Algorithm(
        pat_reduce_scatter, "reduce_scatter", _rounds, lambda n, aggregate=None: n - 1,
        lambda n, aggregate=None: n * (n - 1), variants=_variants),
}
