"""Collectives along a binomial tree: whoever knows tells one who does not, so those who know double."""

import numpy as np

from comm.schedule import NONE, Step


def binomial_broadcast(rank, size, root=0):
    """The whole message of `root` reaches everyone in ceil(log2 N) rounds; N-1 messages in all.

    Ranks are counted from the root. In round k the first 2^k know, and each tells the one 2^k further on.
    """
    place = (rank - root) % size
    distance = 1
    while distance < size:
        tells = (place < distance) & (place + distance < size)
        hears = (place >= distance) & (place < 2 * distance)
        to = np.where(tells, (rank + distance) % size, NONE)
        source = np.where(hears, (rank - distance) % size, NONE)
        yield Step(to, 0 * rank, source, 0 * rank, reduce=False, count=size)
        distance *= 2
