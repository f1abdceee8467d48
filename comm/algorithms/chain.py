"""Collectives along a chain of ranks, the message cut into segments that follow one another.

A rank passes a segment on while the next one comes in: N-1 rounds until the first is at the end, S-1 more for
those behind it, each of M/S bytes; M bytes leave a rank in all. With many segments the length of the chain
hardly matters. For long messages: S near sqrt(N M beta / alpha) is best (alpha seconds a message, beta a byte).
With one segment it is the chain that the article warns of.
Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations" (2007),
https://doi.org/10.1007/s10586-007-0012-0.
"""

import numpy as np

from comm.algorithms.mirror import backwards
from comm.schedule import NONE, Algorithm, Step


def chain_broadcast(rank, size, root=0, segments=1):
    """From `root` each rank tells the next one; the rank at place p passes segment s on in round p + s."""
    place = (rank - root) % size
    for k in range(_rounds(size, segments)):
        leaves, arrives = k - place, k - place + 1
        tells = (place < size - 1) & (leaves >= 0) & (leaves < segments)
        hears = (place > 0) & (arrives >= 0) & (arrives < segments)
        yield Step(np.where(tells, (rank + 1) % size, NONE), leaves,
                   np.where(hears, (rank - 1) % size, NONE), arrives, reduce=False)


def chain_reduce(rank, size, root=0, segments=1):
    """The broadcast backwards: from the far end each rank adds its own and passes the sum on, last segment first."""
    yield from backwards(chain_broadcast, rank, size, reduce=True, root=root, segments=segments)


def _rounds(n, segments=1):
    return n - 1 + segments - 1 if n > 1 else 0


def _sent(n, segments=1):
    return segments if n > 1 else 0


def _total(n, segments=1):
    return segments * (n - 1)


_COSTS = {"rounds": _rounds, "sent": _sent, "total": _total, "chunks": lambda n, segments=1: segments,
          "variants": lambda n: [{"segments": s} for s in ((1, 2, 5) if n <= 100 else (3,))]}


ALGORITHMS = {
    "chain_broadcast": Algorithm(chain_broadcast, "broadcast", **_COSTS),
    "chain_reduce": Algorithm(chain_reduce, "reduce", **_COSTS),
}
