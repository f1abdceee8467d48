"""A collective is a list of rounds; a round says what one rank sends and receives at the same time.

An algorithm is a generator `algorithm(rank, size)` whose rules are arithmetic in `rank`. An int gives the
rounds of one rank, which `execute` runs; `np.arange(size)` gives the rounds of all ranks at once, which
`simulate` checks on paper. So the proof is about the code that runs.

Data is spoken of in *chunks*: `bounds` cuts a buffer of any length into as many as an algorithm wants, some
perhaps empty. A chunk lies in a *slot* of every rank's buffer; it keeps its number when it travels, except in
all-to-all, where slots 0 to N-1 hold a rank's blocks for the others and slots N to 2N-1 what came from them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LINE = 64  # bytes of a cache line
LONG = 16  # lines of a chunk from which on it does not matter that one has a line more
NONE = -1  # the peer of a rank that is idle in this half of a round


class Step(NamedTuple):
    """One message out and one message in: the shorthand for the commonest round."""

    to: int  # who receives from me (NONE: I send nothing)
    send: int  # the first chunk that I send
    source: int  # who I receive from (NONE: nothing comes)
    recv: int  # the first chunk that I receive
    reduce: bool  # combine it with mine, or replace mine?
    count: int = 1  # how many consecutive chunks travel


class Send(NamedTuple):
    """These chunks go to one peer."""

    to: int
    chunks: np.ndarray  # (count,) for one rank; (size, count) for all of them


class Recv(NamedTuple):
    """These chunks come from one peer and are combined with, or replace, mine."""

    source: int
    chunks: np.ndarray
    reduce: bool


class Algorithm(NamedTuple):
    """A generator of rounds, with the cost that its docstring claims. `simulate` proves every line of it.

    The costs are functions cost(size, **options) in chunks of M/C bytes, for a message of M bytes in C chunks.
    """

    rule: Callable  # rule(rank, size, **options) yields rounds
    collective: str  # whose promise it keeps: a key of simulate.PROMISES
    rounds: Callable
    sent: Callable  # chunks that leave the busiest rank
    total: Callable  # chunks that leave all ranks together
    chunks: Callable = lambda size, **options: size  # C
    even: bool = False  # needs chunks of one length
    variants: Callable = lambda size: [{}]  # the options that the proof tries


ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""The collectives whose rules take `root`."""


def span(first, count):
    """The chunk numbers first, first + 1, ...: (count,) for an int, (size, count) for a vector of firsts."""
    return np.add.outer(first, np.arange(count))


def rounds(algorithm, rank, size, **options):
    """Every round of `algorithm` as a list of Send and Recv, Steps written out.

    rank: an int, or np.arange(size) for all ranks at once. Idle halves stay in, with the peer NONE.
    """
    for item in algorithm(rank, size, **options):
        if isinstance(item, Step):
            item = [Send(item.to, span(item.send, item.count)),
                    Recv(item.source, span(item.recv, item.count), item.reduce)]
        yield item


def everyone(rule, size, **options):
    """The rounds of all ranks: items whose peers are (size,) and whose chunks are (size, count)."""
    for items in rounds(rule, np.arange(size), size, **options):
        yield [_full(item, size) for item in items]


def _full(item, size):
    chunks = np.asarray(item.chunks)
    return item._replace(**{item._fields[0]: np.broadcast_to(item[0], size),
                            "chunks": np.broadcast_to(chunks, (size, chunks.shape[-1]))})


def bounds(count, size):
    """Where `count` things are cut into `size` chunks: size + 1 offsets, the first chunks one longer.

    bounds(10, 4) == [0, 3, 6, 8, 10], the cut of np.array_split: the one rule for every split in the project.
    Raises ValueError for a negative count or a size below one.
    """
    if count < 0 or size < 1:
        raise ValueError(f"bounds(count={count}, size={size}): count must be 0 or more, size 1 or more")
    each, rest = divmod(count, size)
    return [i * each + min(i, rest) for i in range(size + 1)]


def even_cuts(count, size, itemsize):
    """`bounds`, moved to the next cache line where chunks are long: additions across lines take up to twice as long."""
    width = max(1, LINE // itemsize)
    if count < size * width * LONG:
        return bounds(count, size)
    return [min(count, width * line) for line in bounds(-(-count // width), size)]
