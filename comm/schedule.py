"""A collective is a list of rounds; a round says what one rank sends and receives at the same time.

An algorithm is a generator `algorithm(rank, size)` whose rules are arithmetic in `rank`. An int gives the
rounds of one rank, which `execute` runs; `np.arange(size)` gives the rounds of all ranks at once, which
`simulate` checks on paper. So the proof is about the code that runs.

Data is spoken of in *chunks*: `bounds` cuts a buffer of any length into `size` chunks, some perhaps empty.
"""

from typing import NamedTuple

import numpy as np

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


def bounds(count, size):
    """Where `count` things are cut into `size` chunks: size + 1 offsets, the first chunks one longer.

    bounds(10, 4) == [0, 3, 6, 8, 10], the cut of np.array_split: the one rule for every split in the project.
    Raises ValueError for a negative count or a size below one.
    """
    if count < 0 or size < 1:
        raise ValueError(f"bounds(count={count}, size={size}): count must be 0 or more, size 1 or more")
    each, rest = divmod(count, size)
    return [i * each + min(i, rest) for i in range(size + 1)]
