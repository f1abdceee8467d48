"""Recursive doubling: partners twice as far away in every round, so few rounds: for short messages.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, section 4.
"""

import numpy as np

from comm.schedule import NONE, Step


def recursive_doubling_all_reduce(rank, size):
    """Everyone swaps the whole message with a partner and adds; after log2 N rounds all hold the sum.

    When N is no power of two, each of the `extra` last ranks first hands its summand to a rank of the power of two
    below and is told the result at the end: two rounds more. Bytes per rank: M log2 N, against the ring's 2 M.
    Both partners add the same two numbers, and x + y has the bits of y + x: all ranks end with the same bits.
    """
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    folds, stands_in, inside = rank >= power, rank < extra, rank < power
    everything = dict(send=0 * rank, recv=0 * rank, count=size)
    if extra:
        yield Step(to=np.where(folds, rank - power, NONE), source=np.where(stands_in, rank + power, NONE),
                   reduce=True, **everything)
    distance = 1
    while distance < power:
        partner = np.where(inside, rank ^ distance, NONE)
        yield Step(to=partner, source=partner, reduce=True, **everything)
        distance *= 2
    if extra:
        yield Step(to=np.where(stands_in, rank + power, NONE), source=np.where(folds, rank - power, NONE),
                   reduce=False, **everything)
