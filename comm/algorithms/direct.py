"""Everybody to everybody at once: one round for each half of an all-reduce, and no chunk moves twice.

With N ranks and M bytes, M (N-1)/N bytes leave every rank, in N-1 messages: the bytes of the ring in one round
instead of N-1. It needs a network in which all pairs can talk at once; on many ranks that means contention. In the
shared memory of a node a message costs nothing: there this is what runs (comm/shared.py).
Thakur, Rabenseifner and Gropp (2005), https://doi.org/10.1177/1094342005051521, section 4.
"""

from comm.schedule import Algorithm, Recv, Send, span


def direct_reduce_scatter(rank, size):
    """Rank r gets chunk r of everyone, and adds them up in one order: r's own, r-1, r-2, ..."""
    others = range(1, size)
    if others:
        yield ([Send((rank + k) % size, span((rank + k) % size, 1)) for k in others]
               + [Recv((rank - k) % size, span(rank, 1), True) for k in others])


def direct_all_gather(rank, size):
    """Rank r gives chunk r to everyone. Ranks begin with the one after them, so that not all begin with rank 0."""
    others = range(1, size)
    if others:
        yield ([Send((rank + k) % size, span(rank, 1)) for k in others]
               + [Recv((rank - k) % size, span((rank - k) % size, 1), False) for k in others])


def direct_all_reduce(rank, size):
    """Rank r adds up chunk r, then tells everyone: 2 rounds, 2 M (N-1)/N bytes per rank."""
    yield from direct_reduce_scatter(rank, size)
    yield from direct_all_gather(rank, size)


def _halves(n):
    """Rounds of each half: one rank alone has nobody to talk to."""
    return min(1, n - 1)


ALGORITHMS = {
    "direct_reduce_scatter": Algorithm(
        direct_reduce_scatter, "reduce_scatter", _halves, lambda n: n - 1, lambda n: n * (n - 1)),
    "direct_all_gather": Algorithm(
        direct_all_gather, "all_gather", _halves, lambda n: n - 1, lambda n: n * (n - 1)),
    "direct_all_reduce": Algorithm(
        direct_all_reduce, "all_reduce", lambda n: 2 * _halves(n), lambda n: 2 * (n - 1), lambda n: 2 * n * (n - 1)),
}
