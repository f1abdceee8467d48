"""The registry of algorithms: what each one is, promises and costs. `simulate` proves every line of it."""

from collections.abc import Callable
from typing import NamedTuple

from comm.algorithms.recursive import recursive_doubling_all_reduce
from comm.algorithms.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from comm.algorithms.tree import binomial_broadcast


class Algorithm(NamedTuple):
    """A generator of rounds, with the cost that its docstring claims, as functions of the number of ranks."""

    rule: Callable  # rule(rank, size) yields rounds
    collective: str  # whose promise it keeps: a key of simulate.PROMISES
    rounds: Callable[[int], int]
    sent: Callable[[int], int]  # chunks (of M/N bytes) that leave the busiest rank
    total: Callable[[int], int]  # chunks that leave all ranks together


def _log2(n):
    """Rounded up: 0 for 1, 1 for 2, 2 for 3 and 4."""
    return (n - 1).bit_length()


def _swaps(n):
    """(rounds of swapping, ranks left over) of recursive doubling."""
    swaps = n.bit_length() - 1
    return swaps, n - (1 << swaps)


def _doubling_rounds(n):
    swaps, extra = _swaps(n)
    return swaps + 2 * (extra > 0)


def _doubling_sent(n):
    swaps, extra = _swaps(n)
    return n * (swaps + (extra > 0))


def _doubling_total(n):
    swaps, extra = _swaps(n)
    return n * ((n - extra) * swaps + 2 * extra)


ALGORITHMS = {
    "ring_all_reduce": Algorithm(
        ring_all_reduce, "all_reduce", lambda n: 2 * (n - 1), lambda n: 2 * (n - 1),
        lambda n: 2 * n * (n - 1)),
    "ring_reduce_scatter": Algorithm(
        ring_reduce_scatter, "reduce_scatter", lambda n: n - 1, lambda n: n - 1, lambda n: n * (n - 1)),
    "ring_all_gather": Algorithm(
        ring_all_gather, "all_gather", lambda n: n - 1, lambda n: n - 1, lambda n: n * (n - 1)),
    "recursive_doubling_all_reduce": Algorithm(
        recursive_doubling_all_reduce, "all_reduce", _doubling_rounds, _doubling_sent, _doubling_total),
    "binomial_broadcast": Algorithm(
        binomial_broadcast, "broadcast", _log2, lambda n: n * _log2(n), lambda n: n * (n - 1)),
}
