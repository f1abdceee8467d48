"""Recursive doubling and halving: partners twice as far away in every round, or half as far.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, sections 4 and 6. Both move the bytes of the ring, M (N-1)/N per rank, in
log2 N rounds. When N is no power of two, each of the last ranks has a stand-in below the power of two.
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.schedule import NONE, Algorithm, Recv, Send, span


def recursive_doubling_all_gather(rank, size):
    """What a rank and its partner hold doubles in every round: log2 N rounds, two more if N is no power of two.

    In round d, blocks of d ranks swap all that they hold with the block beside them, chunks of those that they
    stand in for included. All pairs are busy in every round; the last messages are the longest and go farthest.
    """
    power, extra = _split(size)
    folds, stands_in, inside = rank >= power, rank < extra, rank < power
    down, up = np.where(folds, rank - power, NONE), np.where(stands_in, rank + power, NONE)
    if extra:
        yield [Send(down, span(rank, 1)), Recv(up, span((rank + power) % size, 1), False)]
    distance = 1
    while distance < power:
        partner = rank ^ distance
        items = []
        for more in sorted({_stood_in_for(block, distance, extra) for block in range(0, power, distance)}):
            gives, takes = (_stood_in_for(r // distance * distance, distance, extra) == more for r in (rank, partner))
            items += [Send(np.where(inside & gives, partner, NONE), _block(rank, distance, more, power, size)),
                      Recv(np.where(inside & takes, partner, NONE), _block(partner, distance, more, power, size),
                           False)]
        yield items
        distance *= 2
    if extra:  # everything but their own chunk
        yield [Send(up, span(rank + power + 1, size - 1) % size), Recv(down, span(rank + 1, size - 1) % size, False)]


def recursive_halving_reduce_scatter(rank, size):
    """The all-gather backwards: half of what is left goes to the partner, half comes from it and is added.

    log2 N rounds, two more if N is no power of two; the first messages are the longest. N-1 chunks leave each rank.
    """
    yield from backwards(recursive_doubling_all_gather, rank, size, reduce=True)


def _split(size):
    """(the power of two that is not above size, ranks left over)."""
    power = 1 << (size.bit_length() - 1)
    return power, size - power


def _stood_in_for(first, count, extra):
    """How many of the ranks first to first + count stand in for another one."""
    return np.clip(extra - first, 0, count)


def _block(rank, distance, more, power, size):
    """The chunks of the block of `distance` ranks around `rank`, and of the `more` that they stand in for."""
    first = rank // distance * distance
    return np.concatenate([span(first, distance), (span(first, int(more)) + power) % size], axis=-1)


def _rounds(n):
    power, extra = _split(n)
    return power.bit_length() - 1 + 2 * (extra > 0)


def _busiest(n):
    """Rank 0 stands in for the most: it sends all that its blocks hold, and at last everything to one rank."""
    power, extra = _split(n)
    distances = [1 << k for k in range(power.bit_length() - 1)]
    return sum(d + min(d, extra) for d in distances) + (n - 1) * (extra > 0)


ALGORITHMS = {
    "recursive_doubling_all_gather": Algorithm(
        recursive_doubling_all_gather, "all_gather", _rounds, _busiest, lambda n: n * (n - 1)),
    "recursive_halving_reduce_scatter": Algorithm(
        recursive_halving_reduce_scatter, "reduce_scatter", _rounds, lambda n: n - 1, lambda n: n * (n - 1)),
}
