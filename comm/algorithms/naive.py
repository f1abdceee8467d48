"""How one would add things up without having thought about it: what the article compares the ring with (FACTS F34-F36).

M bytes on each of N ranks. They are here to be measured: nothing chooses them but you.
"""

import numpy as np

from comm.schedule import NONE, Algorithm, Recv, Send, span


def naive_all_reduce(rank, size):
    """Everyone copies everything to everyone, then adds: M N (N-1) bytes on the network, M (N-1) from each rank.

    One round. Every rank begins with its own summand, so ranks add in different orders and may end with different
    last bits. No other all-reduce does that.
    """
    zero = span(0 * rank, 1)
    if size > 1:
        yield ([Send((rank + k) % size, zero) for k in range(1, size)]
               + [Recv((rank - k) % size, zero, True) for k in range(1, size)])


def star_all_reduce(rank, size):
    """A master, rank 0, gathers, adds and sends back: M (N-1) bytes in over its one link, and as many out.

    Two rounds, and N-1 messages in each. If the master is lost, so is the sum: nobody else has more than
    its own summand.
    """
    zero, master = span(0 * rank, 1), rank == 0
    others = range(1, size)
    if others:
        yield ([Send(np.where(master, NONE, 0), zero)]
               + [Recv(np.where(master, other, NONE), zero, True) for other in others])
        yield ([Send(np.where(master, other, NONE), zero) for other in others]
               + [Recv(np.where(master, NONE, 0), zero, False)])


def chain_all_reduce(rank, size, segments=1):
    """The sum grows along the chain of ranks and ends on the last one, M (N-1) bytes; the way back doubles it.

    In one piece only one link works at a time: 2 (N-1) rounds of M bytes. Cut into S segments, which follow each
    other, it is 2 (N-1) + S - 1 rounds of M/S bytes, and links are busy both ways.
    """
    last = size - 1
    forwards, back = np.where(rank < last, rank + 1, NONE), np.where(rank > 0, rank - 1, NONE)
    for t in range(2 * last + segments - 1 if last else 0):
        grows, comes = t - rank, t - rank + 1  # the segment that I hand on, and the one that comes to be added
        told, tells = t - 2 * last + rank + 1, t - 2 * last + rank  # the one that I am told, and the one that I tell
        yield [Send(_if(grows, segments, forwards), span(grows, 1)),
               Recv(_if(comes, segments, back), span(comes, 1), True),
               Send(_if(tells, segments, back), span(tells, 1)),
               Recv(_if(told, segments, forwards), span(told, 1), False)]


def _if(segment, segments, peer):
    """The peer, if there is such a segment."""
    return np.where((segment >= 0) & (segment < segments), peer, NONE)


def _one(n):
    return 1


def _cuts(n, segments=1):
    return segments


ALGORITHMS = {
    "naive_all_reduce": Algorithm(
        naive_all_reduce, "all_reduce", lambda n: min(1, n - 1), lambda n: n - 1, lambda n: n * (n - 1), _one),
    "star_all_reduce": Algorithm(
        star_all_reduce, "all_reduce", lambda n: 2 * min(1, n - 1), lambda n: n - 1, lambda n: 2 * (n - 1), _one),
    "chain_all_reduce": Algorithm(
        chain_all_reduce, "all_reduce", lambda n, segments=1: 2 * (n - 1) + segments - 1 if n > 1 else 0,
        lambda n, segments=1: segments * min(2, n - 1), lambda n, segments=1: 2 * (n - 1) * segments, _cuts,
        variants=lambda n: [{"segments": s} for s in ((1, 2, 5) if n <= 100 else (3,))]),
}
