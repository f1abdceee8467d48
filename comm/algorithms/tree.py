"""Collectives along a binomial tree: whoever knows tells one who does not, so those who know double."""

import numpy as np

from comm.schedule import NONE, Algorithm, Step


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
        yield Step(to, 0 * rank, source, 0 * rank, reduce=False)
        distance *= 2


def _log2(n):
    """Rounded up: 0 for 1, 1 for 2, 2 for 3 and 4."""
    return (n - 1).bit_length()


ALGORITHMS = {
    "binomial_broadcast": Algorithm(
        binomial_broadcast, "broadcast", _log2, _log2, lambda n: n - 1, chunks=lambda n: 1),
}
