"""Collectives round a ring: every rank talks to its two neighbours, and every link carries the same load.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009),
https://doi.org/10.1016/j.jpdc.2008.09.002; the numbering of all-reduce is the article's (FACTS F30-F33).
With N ranks and a message of M bytes, reduce-scatter and all-gather take N-1 rounds and send M (N-1)/N bytes
per rank each; all-reduce is one after the other: 2 (N-1) rounds and 2 M (N-1)/N bytes, hardly more for a
thousand ranks than for ten.
"""

from comm.schedule import Algorithm, Step


def ring_reduce_scatter(rank, size, shift=0):
    """After N-1 steps rank r holds the complete sum of chunk r + shift."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(1, size):
        yield Step(right, (rank - k + shift) % size, left, (rank - k - 1 + shift) % size, reduce=True)


def ring_all_gather(rank, size, shift=0):
    """Rank r starts with chunk r + shift, then passes on what came last; after N-1 steps all have all."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(size - 1):
        yield Step(right, (rank - k + shift) % size, left, (rank - k - 1 + shift) % size, reduce=False)


def ring_all_reduce(rank, size):
    """Phase 1 sums, phase 2 copies. In step k rank i first sends chunk i - k + 1, ends owning i + 1."""
    yield from ring_reduce_scatter(rank, size, shift=1)
    yield from ring_all_gather(rank, size, shift=1)


ALGORITHMS = {
    "ring_all_reduce": Algorithm(
        ring_all_reduce, "all_reduce", lambda n: 2 * (n - 1), lambda n: 2 * (n - 1), lambda n: 2 * n * (n - 1)),
    "ring_reduce_scatter": Algorithm(
        ring_reduce_scatter, "reduce_scatter", lambda n: n - 1, lambda n: n - 1, lambda n: n * (n - 1)),
    "ring_all_gather": Algorithm(
        ring_all_gather, "all_gather", lambda n: n - 1, lambda n: n - 1, lambda n: n * (n - 1)),
}
