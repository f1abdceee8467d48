"""Recursive doubling: partners twice as far away in every round, so few rounds: for short messages.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, section 4.
"""

import numpy as np

from comm.schedule import NONE, Algorithm, Step


def recursive_doubling_all_reduce(rank, size):
    """Everyone swaps the whole message with a partner and adds; after log2 N rounds all hold the sum.

    When N is no power of two, each of the last ranks first hands its summand to a rank of the power of two
    below, and is told the result at the end: two rounds more. Bytes per rank: M log2 N, the ring's are 2 M.
    Both partners add the same two numbers, and x + y has the bits of y + x: all ranks end with the same bits.
    """
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    folds, stands_in, inside = rank >= power, rank < extra, rank < power
    to, source = np.where(folds, rank - power, NONE), np.where(stands_in, rank + power, NONE)
    zero = 0 * rank
    if extra:
        yield Step(to, zero, source, zero, reduce=True)
    distance = 1
    while distance < power:
        partner = np.where(inside, rank ^ distance, NONE)
        yield Step(partner, zero, partner, zero, reduce=True)
        distance *= 2
    if extra:
        yield Step(source, zero, to, zero, reduce=False)


def halving_doubling_all_reduce(rank, size):
    """Rabenseifner: halve what is left and add, then double what is known: 2 M (N-1)/N bytes in 2 log2 N rounds.

    The bytes of the ring in the rounds of a tree, when N is a power of two P. Else the last N - P ranks first hand
    their summand to a rank below, which works for both, and are told the sum at the end: two rounds and M bytes more.
    Rabenseifner, "Optimization of collective reduction operations" (2004), https://doi.org/10.1007/978-3-540-24685-5_1
    """
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    folds, stands_in, inside = rank >= power, rank < extra, rank < power
    to, source = np.where(folds, rank - power, NONE), np.where(stands_in, rank + power, NONE)
    zero = 0 * rank
    if extra:
        yield Step(to, zero, source, zero, reduce=True, count=power)
    distances = [1 << k for k in range(power.bit_length() - 1)]
    mine = rank % power
    for distance in reversed(distances):
        partner = np.where(inside, rank ^ distance, NONE)
        here, there = mine // distance * distance, (mine ^ distance) // distance * distance
        yield Step(partner, there, partner, here, reduce=True, count=distance)
    for distance in distances:
        partner = np.where(inside, rank ^ distance, NONE)
        here, there = mine // distance * distance, (mine ^ distance) // distance * distance
        yield Step(partner, here, partner, there, reduce=False, count=distance)
    if extra:
        yield Step(source, zero, to, zero, reduce=False, count=power)


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


def _halving_total(n):
    swaps, extra = _swaps(n)
    return 2 * ((1 << swaps) - 1 + extra) << swaps


def _halving_sent(n):
    swaps, extra = _swaps(n)
    return 2 * ((1 << swaps) - 1) + (extra > 0) * (1 << swaps)


ALGORITHMS = {
    "recursive_doubling_all_reduce": Algorithm(
        recursive_doubling_all_reduce, "all_reduce", _rounds, _sent, _total, chunks=lambda n: 1),
    "halving_doubling_all_reduce": Algorithm(
        halving_doubling_all_reduce, "all_reduce", lambda n: 2 * _swaps(n)[0] + 2 * (_swaps(n)[1] > 0),
        _halving_sent, _halving_total, chunks=lambda n: 1 << _swaps(n)[0]),
}
