"""Collectives along a binomial tree, and the one-round forms that it is measured against.

Ranks are counted from the root, which is place 0. Place p hangs below the place that lacks p's lowest one bit
(broadcast: its highest), so the tree is ceil(log2 N) links deep, for any N.
Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, section 4.
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.schedule import NONE, Algorithm, Recv, Send, Step, span


def binomial_broadcast(rank, size, root=0):
    """The whole message of `root` reaches everyone in ceil(log2 N) rounds; N-1 messages in all.

    Places are counted from the root. In round k the first 2^k know, and each tells the one 2^k further on:
    M log2 N bytes leave the root. For short messages.
    """
    place = (rank - root) % size
    for distance in powers(size):
        tells = (place < distance) & (place + distance < size)
        hears = (place >= distance) & (place < 2 * distance)
        to = np.where(tells, (rank + distance) % size, NONE)
        source = np.where(hears, (rank - distance) % size, NONE)
        yield Step(to, 0 * rank, source, 0 * rank, reduce=False)


def binomial_reduce(rank, size, root=0):
    """The broadcast backwards: each adds what it hears to its own and tells the sum, once.

    ceil(log2 N) rounds; M bytes leave every rank but the root. For short messages.
    """
    yield from backwards(binomial_broadcast, rank, size, reduce=True, root=root)


def binomial_scatter(rank, size, root=0):
    """Chunk r of `root` goes to every rank r; each message hands down what a whole branch needs.

    ceil(log2 N) rounds; M (N-1)/N bytes leave the root, the fewest possible, but a chunk moves up to log2 N
    times. For short messages. A branch at distance d has d places; the last one may be cut short, and goes by
    itself, as the messages of one Send are equally long on all ranks.
    """
    place = (rank - root) % size
    for distance in reversed(powers(size)):
        items = []
        for count in (distance, size % (2 * distance) - distance):
            if 0 < count <= size - distance:
                branch = span(rank, count) % size
                gives = (place % (2 * distance) == 0) & (np.minimum(distance, size - place - distance) == count)
                takes = (place % (2 * distance) == distance) & (np.minimum(distance, size - place) == count)
                items += [Send(np.where(gives, (rank + distance) % size, NONE), (branch + distance) % size),
                          Recv(np.where(takes, (rank - distance) % size, NONE), branch, False)]
        yield items


def binomial_gather(rank, size, root=0):
    """The scatter backwards: chunk r of every rank r comes to `root`.

    ceil(log2 N) rounds; everyone waits for its branch, then hands it up: M/2 bytes at most leave a rank.
    """
    yield from backwards(binomial_scatter, rank, size, reduce=False, root=root)


def direct_scatter(rank, size, root=0):
    """One round: `root` sends everyone its chunk, M (N-1)/N bytes in N-1 messages.

    No chunk moves twice. For long messages, and for few ranks.
    """
    others = [(root + k) % size for k in range(1, size)]
    if others:
        yield [*(Send(np.where(rank == root, other, NONE), span(0 * rank + other, 1)) for other in others),
               Recv(np.where(rank == root, NONE, root), span(rank, 1), False)]


def direct_gather(rank, size, root=0):
    """One round: everyone sends `root` its chunk, M/N bytes; N-1 messages meet there at once."""
    yield from backwards(direct_scatter, rank, size, reduce=False, root=root)


def powers(size):
    """1, 2, 4, ... below size."""
    return [1 << k for k in range(log2(size))]


def log2(n):
    """Rounded up: 0 for 1, 1 for 2, 2 for 3 and 4."""
    return (n - 1).bit_length()


def _links_above(n):
    """How many links lie above all places together: one for each one bit."""
    return sum(place.bit_count() for place in range(n))


def _largest_branch(n):
    """Chunks of the longest message of a gather: the last power of two below n sends it, or the one before."""
    last = 1 << log2(n) >> 1
    return max(last // 2, n - last) if n > 1 else 0


def _one_unless_alone(n):
    return min(1, n - 1)


def _all_but_one(n):
    return n - 1


def _whole(n):
    return 1


ALGORITHMS = {
    "binomial_broadcast": Algorithm(binomial_broadcast, "broadcast", log2, log2, _all_but_one, chunks=_whole),
    "binomial_reduce": Algorithm(binomial_reduce, "reduce", log2, _one_unless_alone, _all_but_one, chunks=_whole),
    "binomial_scatter": Algorithm(binomial_scatter, "scatter", log2, _all_but_one, _links_above),
    "binomial_gather": Algorithm(binomial_gather, "gather", log2, _largest_branch, _links_above),
    "direct_scatter": Algorithm(direct_scatter, "scatter", _one_unless_alone, _all_but_one, _all_but_one),
    "direct_gather": Algorithm(direct_gather, "gather", _one_unless_alone, _one_unless_alone, _all_but_one),
}
