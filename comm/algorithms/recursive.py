"""All-reduce with partners twice as far away in every round, or half as far: few rounds.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, sections 4 and 6.
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.algorithms.tree import powers
from comm.schedule import NONE, Algorithm, Step


def recursive_doubling_all_reduce(rank, size):
    """Everyone swaps the whole message with a partner and adds; after log2 N rounds all hold the sum.

    When N is no power of two, each of the last ranks first hands its summand to a rank of the power of two
    below, and is told the result at the end: two rounds more. Bytes per rank: M log2 N, the ring's are 2 M.
    Both partners add the same two numbers, the lower rank's first: all ranks end with the same bits.
    """
    power, inside, to, source = _folded(rank, size)
    zero = 0 * rank
    if power < size:
        yield Step(to, zero, source, zero, reduce=True)
    for distance in powers(power):
        partner = np.where(inside, rank ^ distance, NONE)
        yield Step(partner, zero, partner, zero, reduce=True)
    if power < size:
        yield Step(source, zero, to, zero, reduce=False)


def halving_doubling_all_reduce(rank, size):
    """Rabenseifner: halve what is left and add, then double what is known: 2 M (N-1)/N bytes in 2 log2 N rounds.

    The bytes of the ring in the rounds of a tree, when N is a power of two: for long messages, and for those of
    middling length. Else the last ranks fold, as above: two rounds and M bytes from a rank more. Chunk r is added
    up by rank r alone, so all ranks end with the same bits. The second half is the first one backwards.
    Rabenseifner, "Optimization of collective reduction operations" (2004), https://doi.org/10.1007/978-3-540-24685-5_1
    """
    yield from _halving(rank, size)
    yield from backwards(_halving, rank, size, reduce=False)


def _halving(rank, size):
    """Rank r below the power of two ends with the sum of chunk r; the first messages are the longest."""
    power, inside, to, source = _folded(rank, size)
    if power < size:
        yield Step(to, 0 * rank, source, 0 * rank, reduce=True, count=power)
    for distance in reversed(powers(power)):
        partner = np.where(inside, rank ^ distance, NONE)
        keeps, gives = (rank & -distance, (rank ^ distance) & -distance)  # where the two halves begin
        yield Step(partner, gives, partner, keeps, reduce=True, count=distance)


def _folded(rank, size):
    """(the power of two P not above size, is rank below P?, rank - P: it takes my summand, rank + P: I take its)."""
    power = 1 << (size.bit_length() - 1)
    to, source = np.where(rank >= power, rank - power, NONE), np.where(rank + power < size, rank + power, NONE)
    return power, rank < power, to, source


def _swaps(n):
    """(rounds of swapping, ranks left over)."""
    swaps = n.bit_length() - 1
    return swaps, n - (1 << swaps)


def _rounds(n):
    swaps, extra = _swaps(n)
    return swaps + 2 * (extra > 0)


def _sent(n):
    swaps, extra = _swaps(n)
    return swaps + (extra > 0)


def _total(n):
    swaps, extra = _swaps(n)
    return (n - extra) * swaps + 2 * extra


def _halving_rounds(n):
    swaps, extra = _swaps(n)
    return 2 * swaps + 2 * (extra > 0)


def _halving_sent(n):
    swaps, extra = _swaps(n)
    return 2 * ((1 << swaps) - 1) + (extra > 0) * (1 << swaps)


def _halving_total(n):
    """P ranks send P - 1 chunks each way; who folds sends P, and is told P."""
    swaps, extra = _swaps(n)
    return 2 * ((1 << swaps) - 1 + extra) * (1 << swaps)


ALGORITHMS = {
    "recursive_doubling_all_reduce": Algorithm(
        recursive_doubling_all_reduce, "all_reduce", _rounds, _sent, _total, chunks=lambda n: 1),
    "halving_doubling_all_reduce": Algorithm(
        halving_doubling_all_reduce, "all_reduce", _halving_rounds, _halving_sent, _halving_total,
        chunks=lambda n: 1 << _swaps(n)[0]),
}
