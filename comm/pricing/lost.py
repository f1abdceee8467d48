"""What the loss of one rank does to a collective: who still completes, and who waits for whom.

The schedule is played without the lost rank. Nothing comes from it; whoever waits for it is stuck in that round
and never begins the next one, so that others wait for it in turn. Messages to it are sent into the void. In the
star that the article warns of, the loss of the master stops everybody.
"""

from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.pricing.effort import check_effort
from comm.schedule import NONE, Send, rounds
from comm.simulate import NOTHING, before, options_of

MOST_CHUNKS = 1 << 20  # sets of summands that are kept track of


class Loss(NamedTuple):
    """What is left of a collective of N ranks when one is lost."""

    name: str
    lost: int
    completes: list  # the living ranks that reach the end
    stuck: dict  # rank: (round, the ranks that it waits for there)
    lonely: list | None  # living ranks whose summand reached no other living rank; None if nothing is added up
    largest: int | None  # summands in the largest sum that a living rank holds of any one chunk
    missing: int | None  # blocks that no living rank holds; None where ranks add


def lose(name, size, lost, root=0, **options):
    """The Loss when rank `lost` is gone before the first round. Raises ValueError for a rank that is not there,
    and TooMuch (a ValueError) for sizes that would take minutes.
    """
    if not 0 <= lost < size:
        raise ValueError(f"rank {lost}: expected 0 to {size - 1}")
    check_effort(name, size, **options_of(name, root, options))
    rule, everyone = ALGORITHMS[name].rule, np.arange(size)
    slots = ALGORITHMS[name].chunks(size, **options)
    held = before(name, size, root, **options) if size * slots <= MOST_CHUNKS else None
    names = np.unique(held[held != NOTHING]) if held is not None and held.dtype != object else None
    going, stuck = everyone != lost, {}
    for number, items in enumerate(rounds(rule, everyone, size, **options_of(name, root, options)), 1):
        waits = {}
        for item in items:
            if not isinstance(item, Send):
                source = np.broadcast_to(item.source, size)
                for rank in np.flatnonzero(going & (source != NONE) & ~going[source]):
                    waits.setdefault(int(rank), []).append(int(source[rank]))
        if held is not None:
            _deliver(items, held, going)
        stuck.update((rank, (number, peers)) for rank, peers in waits.items())
        going[list(waits)] = False
    return Loss(name, lost, np.flatnonzero(going).tolist(), stuck, *_left(held, lost, names))


def _deliver(items, held, going):
    """The messages of one round between ranks that take part in it."""
    size = len(held)
    contents = {}
    for item in items:
        if isinstance(item, Send):
            to, chunks = np.broadcast_to(item.to, size), np.broadcast_to(item.chunks, (size, item.chunks.shape[-1]))
            for rank in np.flatnonzero(going & (to != NONE)):
                contents[rank, to[rank]] = held[rank, chunks[rank]]
    for item in items:
        if not isinstance(item, Send):
            source, chunks = np.broadcast_to(item.source, size), np.broadcast_to(item.chunks,
                                                                                 (size, item.chunks.shape[-1]))
            for rank in np.flatnonzero(going & (source != NONE) & going[source]):
                came = contents[source[rank], rank]
                held[rank, chunks[rank]] = held[rank, chunks[rank]] | came if item.reduce else came


def _left(held, lost, names):
    """(lonely, largest, missing) of Loss."""
    if held is None:
        return None, None, None
    living = [rank for rank in range(len(held)) if rank != lost]
    if held.dtype != object:
        return None, None, len(np.setdiff1d(names, held[living]))
    elsewhere = 0
    for rank in living:
        elsewhere |= int(np.bitwise_or.reduce(held[rank])) & ~(1 << rank)
    largest = max((int(mask).bit_count() for mask in held[living].ravel()), default=0)
    return [rank for rank in living if not elsewhere >> rank & 1], largest, None


def say_ranks(ranks):
    """[0, 1, 2, 5] as "ranks 0-2, 5"."""
    ranks, parts = sorted(ranks), []
    for rank in ranks:
        if parts and parts[-1][1] == rank - 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    text = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)
    return f"rank{'s' if len(ranks) != 1 else ''} {text}"
