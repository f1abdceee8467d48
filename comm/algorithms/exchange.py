"""All-to-all: every rank has a block for every other one; afterwards it holds the blocks meant for it.

Slot d of a rank holds its block for rank d; slot N + s is where the block from rank s ends (FACTS F38: the
transpose). What differs is whether a block goes straight to its target or by way of others: straight moves
the fewest bytes, by way of others takes the fewest messages. M is what a rank has for all ranks together, so
a block has M/N bytes.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005),
https://doi.org/10.1177/1094342005051521, section 4.
"""

import numpy as np

from comm.algorithms.tree import log2, powers
from comm.schedule import Algorithm, Recv, Send, Step


def pairwise_all_to_all(rank, size):
    """In every round another partner: N-1 rounds, M (N-1)/N bytes per rank, the fewest possible.

    With N a power of two the partners of round k swap, r with r XOR k; else r sends k ranks on and receives
    from k ranks back. For long messages: nobody is ever sent to by two ranks at once.
    """
    for k in range(1, size):
        if size & (size - 1) == 0:
            to = source = rank ^ k
        else:
            to, source = (rank + k) % size, (rank - k) % size
        yield Step(to, to, source, size + source, reduce=False)


def direct_all_to_all(rank, size):
    """One round: everybody sends to everybody at once, N-1 messages and M (N-1)/N bytes per rank.

    For few ranks, or where the network orders what it is given. Ranks begin with the one after them, so that
    not all of them begin with rank 0.
    """
    if size > 1:
        sends = [Send((rank + k) % size, _blocks(rank, [-k], size)) for k in range(1, size)]
        receives = [Recv((rank - k) % size, size + _blocks(rank, [k], size), False) for k in range(1, size)]
        yield sends + receives


def ring_all_to_all(rank, size):
    """Blocks go round the ring the shorter way, one hop a round: N/2 rounds, M N/4 bytes per rank, any N.

    For rings of wires, where a message to a far rank would take every wire on its way anyhow. All blocks that
    are still on their way travel as one message to each side.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    ways = [(right, left, np.arange(1, size // 2 + 1)), (left, right, -np.arange(1, (size + 1) // 2))]
    ways = [(to, source, _blocks(rank, -far, size), size + _blocks(rank, far, size)) for to, source, far in ways]
    for k in range(size // 2):
        items = []
        for to, source, own, parked in ways:
            arrives = parked[..., k:]  # the blocks that go k + 1 ranks far or farther
            if arrives.size:
                items += [Send(to, own if k == 0 else arrives), Recv(source, arrives, False)]
        yield items


def bruck_all_to_all(rank, size):
    """A block that goes j ranks far hops by the powers of two in j: ceil(log2 N) rounds, any N.

    Bytes per rank: about M/2 in each round. For short blocks, where a message costs more than its bytes.
    Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
    message-passing systems" (1997), https://doi.org/10.1109/71.642949; here blocks park where no rotation is
    needed before or after.
    """
    far = np.arange(1, size)
    for distance in powers(size):
        hops = far[far & distance > 0]
        first = hops % distance == 0  # no smaller hop before: it leaves from where it was at the start
        leaves = np.where(first, _blocks(rank, -hops, size), size + _blocks(rank, hops, size))
        arrives = size + _blocks(rank, hops, size)
        yield [Send((rank + distance) % size, leaves), Recv((rank - distance) % size, arrives, False)]


def _blocks(rank, back, size):
    """The ranks that are `back` places (a list) behind `rank`: (count,), or (size, count) for all ranks.

    A block that goes j ranks far is parked, wherever it is, in slot N + _blocks(rank, j): the place of the one
    block that ends its way there after j hops. All ranks do alike, so no two blocks ever want the same slot,
    and after the last hop it is its own.
    """
    return np.subtract.outer(rank, back) % size


def _hops(n):
    """What Bruck's blocks of one rank hop altogether."""
    return sum(far.bit_count() for far in range(n))


ALGORITHMS = {
    "pairwise_all_to_all": Algorithm(
        pairwise_all_to_all, "all_to_all", lambda n: n - 1, lambda n: n - 1, lambda n: n * (n - 1)),
    "ring_all_to_all": Algorithm(
        ring_all_to_all, "all_to_all", lambda n: n // 2, lambda n: n * n // 4, lambda n: n * (n * n // 4), even=True),
    "bruck_all_to_all": Algorithm(
        bruck_all_to_all, "all_to_all", log2, _hops, lambda n: n * _hops(n), even=True),
    "direct_all_to_all": Algorithm(
        direct_all_to_all, "all_to_all", lambda n: min(1, n - 1), lambda n: n - 1, lambda n: n * (n - 1)),
}
