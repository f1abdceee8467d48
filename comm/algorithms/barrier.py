"""A barrier: nobody leaves before everybody has come."""

from comm.algorithms.tree import log2, powers
from comm.schedule import Algorithm, Step


def dissemination_barrier(rank, size):
    """In round k tell the rank 2^k further on, hear from the one 2^k back: ceil(log2 N) rounds, any N.

    After round k a rank has heard, by way of others, of the 2^k ranks before it. No rank waits for a master, and
    messages may be empty. Some are heard of twice, which a barrier may and a sum may not.
    Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization" (1988),
    https://doi.org/10.1007/BF01379320.
    """
    for distance in powers(size):
        yield Step((rank + distance) % size, 0 * rank, (rank - distance) % size, 0 * rank, reduce=True)


ALGORITHMS = {
    "dissemination_barrier": Algorithm(
        dissemination_barrier, "barrier", log2, log2, lambda n: n * log2(n), chunks=lambda n: 1),
}
