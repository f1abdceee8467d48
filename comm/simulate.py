"""All ranks on paper: does an algorithm keep its promise, and what does it cost?

A rank's chunk is the *set* of ranks whose summands it holds: a bit mask, no sum that is right by chance.
A set that is added to another must not overlap it (each contribution counts once); what is not there cannot
be sent; and whoever receives must be sent to, by that rank, those chunks.
"""

from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, Recv, Send, rounds

NOTHING = 0  # the empty set: this rank holds nothing of use in this chunk


class Broken(AssertionError):
    """A schedule does not do what it promises; the message names the first round and rank that go wrong."""


class Cost(NamedTuple):
    """What a collective of `size` chunks costs."""

    rounds: int
    sent: np.ndarray  # (size,) chunks that leave each rank
    messages: np.ndarray  # (size,) messages that leave each rank


def _own(size):
    """Rank r holds its own summand, in every chunk."""
    masks = np.array([1 << r for r in range(size)], object)
    return np.repeat(masks[:, None], size, axis=1)


def _all(size):
    return np.full((size, size), (1 << size) - 1, object)


def _root(size):
    grid = np.full((size, size), NOTHING, object)
    grid[0] = 1
    return grid


def _whole(size):
    return np.ones((size, size), bool)


def _diagonal(size):
    return np.eye(size, dtype=bool)


PROMISES = {
    "all_reduce": (_own, _all, _whole),
    "reduce_scatter": (_own, _all, _diagonal),
    "all_gather": (lambda n: np.where(_diagonal(n), _own(n), NOTHING), lambda n: _own(n).T.copy(), _whole),
    "broadcast": (_root, lambda n: np.full((n, n), 1, object), _whole),
}
"""collective -> grids (rank, chunk): what is held before, what is promised after, and where."""


def before(collective, size):
    """(size, size) sets: what each rank holds of each chunk when the collective starts."""
    return PROMISES[collective][0](size)


def play(rule, size, held):
    """Carry out every round on `held`, in place; yields the number and the items of each, when it is done.

    Raises Broken where sends and receives do not match, nothing is there to send, or a summand counts twice.
    """
    for number, items in enumerate(rounds(rule, np.arange(size), size), 1):
        items = [_full(item, size) for item in items]
        flying = _match(number, items, size)
        contents = {n: held[keys[:, None] // size, chunks] for n, (keys, chunks) in flying.items()}
        for item in items:
            if isinstance(item, Recv):
                _land(number, item, held, flying, contents)
        yield number, items


def _full(item, size):
    """An item's fields for all ranks: the peer as (size,), the chunks as (size, count)."""
    chunks = np.asarray(item.chunks)
    return item._replace(**{item._fields[0]: np.broadcast_to(item[0], size),
                            "chunks": np.broadcast_to(chunks, (size, chunks.shape[-1]))})


def _match(number, items, size):
    """count -> (sorted keys, chunks) of all messages of that many chunks; a key is source * size + target."""
    found = {Send: {}, Recv: {}}
    for item in items:
        ranks = np.flatnonzero(item[0] != NONE)
        peers, chunks = item[0][ranks], item.chunks[ranks]
        keys = ranks * size + peers if isinstance(item, Send) else peers * size + ranks
        found[type(item)].setdefault(chunks.shape[1], []).append((keys, chunks))
    sends, receives = ({n: _sorted(parts) for n, parts in found[kind].items()} for kind in (Send, Recv))
    for count in sends.keys() | receives.keys():
        out, into = (half[count][0].tolist() if count in half else [] for half in (sends, receives))
        for key in sorted(set(out) ^ set(into)):
            story = ("sends to", "expects nothing") if key in out else ("sends nothing to", "waits")
            raise Broken(f"round {number}: rank {key // size} {story[0]} rank {key % size}, which {story[1]}")
        if len(set(out)) < len(out):
            raise Broken(f"round {number}: two messages from one rank to another")
    return sends


def _sorted(parts):
    keys, chunks = (np.concatenate(half) for half in zip(*parts))
    order = np.argsort(keys)
    return keys[order], chunks[order]


def _land(number, item, held, flying, contents):
    """What one receive does to the chunks of all ranks that take part."""
    size, ranks = len(held), np.flatnonzero(item.source != NONE)
    if not len(ranks):
        return
    chunks, source = item.chunks[ranks], item.source[ranks]
    keys, sent = flying[chunks.shape[1]]
    place = np.searchsorted(keys, source * size + ranks)
    came = contents[chunks.shape[1]][place]
    mine = held[ranks[:, None], chunks]

    def refuse(bad, story):
        if bad.any():
            i = int(np.flatnonzero(bad.any(axis=1))[0])
            raise Broken(f"round {number}: rank {source[i]} sends chunks {sent[place[i]].tolist()} to rank "
                         f"{ranks[i]}, {story}")

    refuse(sent[place] != chunks, "which expects others")
    refuse(came == NOTHING, "but does not have them yet")
    if item.reduce:
        refuse((mine & came) != 0, "which then counts a summand twice")
        came = mine | came
    held[ranks[:, None], chunks] = came


def prove(name, size):
    """Check one algorithm at one size; returns its Cost.

    Raises Broken if sends do not match receives, a promise is not kept, a summand counts twice, rounds or
    bytes differ from the formula, or the rounds of a single rank differ from those of all ranks at once.
    """
    algorithm = ALGORITHMS[name]
    held = before(algorithm.collective, size)
    everyone, sent, messages = [], np.zeros(size, int), np.zeros(size, int)
    for _, items in play(algorithm.rule, size, held):
        everyone.append(items)
        for item in (i for i in items if isinstance(i, Send)):
            sent += (item.to != NONE) * item.chunks.shape[1]
            messages += item.to != NONE
    _, after, where = (grid(size) for grid in PROMISES[algorithm.collective])
    for rank, chunk in np.argwhere((held != after) & where)[:1]:
        raise Broken(f"{name} on {size} ranks: rank {rank} ends with the summands of ranks "
                     f"{_members(held[rank, chunk])} in chunk {chunk}, not of {_members(after[rank, chunk])}")
    for what, is_, formula in (("rounds", len(everyone), algorithm.rounds(size)),
                               ("chunks from the busiest rank", sent.max(), algorithm.sent(size)),
                               ("chunks in all", sent.sum(), algorithm.total(size))):
        if is_ != formula:
            raise Broken(f"{name} on {size} ranks: {is_} {what}, the formula says {formula}")
    for rank in {0, 1, size // 2, size - 1} & set(range(size)) if size > 64 else range(size):
        _check_one_rank(name, rank, size, everyone)
    return Cost(len(everyone), sent, messages)


def _members(mask):
    return [r for r in range(int(mask).bit_length()) if mask >> r & 1]


def _check_one_rank(name, rank, size, everyone):
    """The rule with an int, which is what runs, must say what the rule with a vector says."""
    alone = list(rounds(ALGORITHMS[name].rule, rank, size))
    if len(alone) != len(everyone):
        raise Broken(f"{name} on {size} ranks: rank {rank} has {len(alone)} rounds, not {len(everyone)}")
    for number, (mine, all_) in enumerate(zip(alone, everyone), 1):
        for one, many in zip(mine, all_, strict=True):
            peer = int(many[0][rank])
            same = int(one[0]) == peer and (peer == NONE or np.array_equal(one.chunks, many.chunks[rank]))
            if not same or type(one) is not type(many) or one[2:] != many[2:]:
                raise Broken(f"{name} on {size} ranks, round {number}: the rule of rank {rank} alone says "
                             f"{one}, the rule of all ranks {many}")
