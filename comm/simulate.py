"""All ranks on paper: does an algorithm keep its promise, and what does it cost?

Where ranks add, a chunk is the *set* of ranks whose summands it holds: a bit mask, no sum that is right by
chance. A set that is added to another must not overlap it (each contribution counts once). Where they only
move, it is a number that names the chunk. What is not there cannot be sent; and whoever receives must be sent
to, by that rank, those chunks.
"""

from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, ROOTED, Recv, Send, everyone, rounds

NOTHING = 0  # this rank holds nothing of use in this chunk


class Broken(AssertionError):
    """A schedule does not do what it promises; the message names the first round and rank that go wrong."""


class Cost(NamedTuple):
    """What a collective costs, in chunks of M/C bytes."""

    rounds: int
    sent: np.ndarray  # (size,) chunks that leave each rank
    messages: np.ndarray  # (size,) messages that leave each rank


def _summands(size, chunks):
    """Rank r holds its own summand of every chunk."""
    return np.repeat(np.array([1 << r for r in range(size)], object)[:, None], chunks, axis=1)


def _sums(size, chunks):
    return np.full((size, chunks), (1 << size) - 1, object)


def _names(size, chunks):
    """Everyone holds every chunk, which is named by its number from one."""
    return np.tile(np.arange(1, chunks + 1), (size, 1))


def _everywhere(size, chunks, root):
    return np.ones((size, chunks), bool)


def _own(size, chunks, root):
    return np.eye(size, chunks, dtype=bool)


def _at_root(size, chunks, root):
    return np.repeat(np.arange(size)[:, None] == root, chunks, axis=1)


def _blocks(size):
    """(from, to) numbers of the blocks of all-to-all."""
    return np.arange(1, size * size + 1).reshape(size, size)


def _all_to_all_before(size):
    grid = np.hstack([_blocks(size), np.zeros((size, size), int)])
    np.fill_diagonal(grid[:, size:], np.diagonal(_blocks(size)))
    return grid


PROMISES = {  # collective: (contents before, held where, contents after, promised where)
    "all_reduce": (_summands, _everywhere, _sums, _everywhere),
    "reduce_scatter": (_summands, _everywhere, _sums, _own),
    "reduce": (_summands, _everywhere, _sums, _at_root),
    "barrier": (_summands, _everywhere, _sums, _everywhere),
    "all_gather": (_names, _own, _names, _everywhere),
    "gather": (_names, _own, _names, _at_root),
    "broadcast": (_names, _at_root, _names, _everywhere),
    "scatter": (_names, _at_root, _names, _own),
}
"""What each rank holds of each chunk when a collective starts, and what it is promised."""


def before(name, size, root=0, **options):
    """(size, slots) contents when `name`, an algorithm, starts: bit masks of ranks, or names of chunks."""
    algorithm = ALGORITHMS[name]
    if algorithm.collective == "all_to_all":
        return _all_to_all_before(size)
    contents, where, _, _ = PROMISES[algorithm.collective]
    chunks = algorithm.chunks(size, **options)
    return np.where(where(size, chunks, root), contents(size, chunks), NOTHING)


def after(name, size, root=0, **options):
    """((size, slots) contents that `name` promises, where it promises them)."""
    algorithm = ALGORITHMS[name]
    if algorithm.collective == "all_to_all":
        grid = np.hstack([_blocks(size), _blocks(size).T])
        return grid, np.repeat([[False, True]], size, axis=1).repeat(size, axis=0)
    _, _, contents, where = PROMISES[algorithm.collective]
    chunks = algorithm.chunks(size, **options)
    return contents(size, chunks), where(size, chunks, root)


def options_of(name, root, options):
    """What the rule of `name` takes: its options, and the root if it has one."""
    return {**options, "root": root} if ALGORITHMS[name].collective in ROOTED else options


class _Room(NamedTuple):
    """Where a chunk may land."""

    collective: str
    slots: np.ndarray | None  # all-to-all with blocks of different lengths: (size, slots), who fits where


def play(name, size, held, root=0, **options):
    """Carry out every round on `held`, in place; yields the number and the items of each, when it is done.

    items: Send and Recv with peers (size,) and chunks (size, count). Raises Broken where sends and receives do
    not match, nothing is there to send, or a summand counts twice.
    """
    algorithm = ALGORITHMS[name]
    fits = after(name, size)[0] if algorithm.collective == "all_to_all" and not algorithm.even else None
    room = _Room(algorithm.collective, fits)
    all_rounds = everyone(algorithm.rule, size, **options_of(name, root, options))
    for number, items in enumerate(all_rounds, 1):
        flying = _match(number, items, size)
        contents = {n: held[keys[:, None] // size, chunks] for n, (keys, chunks) in flying.items()}
        for item in items:
            if isinstance(item, Recv):
                _land(number, item, held, flying, contents, room)
        yield number, items


def _match(number, items, size):
    """count -> (sorted keys, chunks) of all messages of that many chunks; a key is source * size + target."""
    found = {Send: {}, Recv: {}}
    for item in items:
        ranks = np.flatnonzero(item[0] != NONE)
        peers, chunks = _of(ranks, item[0]), _of(ranks, item.chunks)
        if ((peers < 0) | (peers >= size) | (peers == ranks)).any():
            raise Broken(f"round {number}: a peer is no other rank of 0 to {size - 1}")
        keys = ranks * size + peers if isinstance(item, Send) else peers * size + ranks
        found[type(item)].setdefault(chunks.shape[1], []).append((keys, chunks))
    sends, receives = ({n: _sorted(parts) for n, parts in found[kind].items()} for kind in (Send, Recv))
    nobody = np.empty(0, int)
    for count in sends.keys() | receives.keys():
        out, into = (half[count][0] if count in half else nobody for half in (sends, receives))
        for key in [] if np.array_equal(out, into) else np.setxor1d(out, into):
            story = ("sends to", "expects nothing") if key in out else ("sends nothing to", "waits")
            raise Broken(f"round {number}: rank {key // size} {story[0]} rank {key % size}, which {story[1]}"
                         f" ({count} chunks)")
    keys = np.sort(np.concatenate([nobody, *(keys for keys, _ in sends.values())]))
    for key in keys[1:][keys[1:] == keys[:-1]]:
        raise Broken(f"round {number}: two messages from rank {key // size} to rank {key % size}")
    return sends


def _of(ranks, array):
    """The rows of these ranks; no copy if they are all."""
    return array if len(ranks) == len(array) else array[ranks]


def _sorted(parts):
    keys, chunks = parts[0] if len(parts) == 1 else (np.concatenate(half) for half in zip(*parts))
    if (keys[1:] > keys[:-1]).all():
        return keys, chunks
    order = np.argsort(keys, kind="stable")
    return keys[order], chunks[order]


def _land(number, item, held, flying, contents, room):
    """What one receive does to the chunks of all ranks that take part."""
    size, ranks = len(held), np.flatnonzero(item.source != NONE)
    if not len(ranks):
        return
    chunks, source = _of(ranks, item.chunks), _of(ranks, item.source)
    keys, sent = flying[chunks.shape[1]]
    place = np.searchsorted(keys, source * size + ranks)
    came = contents[chunks.shape[1]][place]

    def refuse(bad, story):
        if bad.any():
            i = int(np.flatnonzero(bad.any(axis=1))[0])
            raise Broken(f"round {number}: rank {source[i]} sends chunks {sent[place[i]].tolist()} to rank "
                         f"{ranks[i]}, {story}")

    if room.collective != "all_to_all":
        refuse(sent[place] != chunks, "which expects others")
    refuse(came == NOTHING, "but does not have them yet")
    if room.slots is not None:
        refuse((came != room.slots[ranks[:, None], chunks]) | (chunks < size), "which has no room for them there")
    if item.reduce:
        if held.dtype != object:
            raise Broken(f"round {number}: chunks are added, in a collective that only moves them")
        mine = held[ranks[:, None], chunks]
        if room.collective != "barrier":
            refuse((mine & came) != 0, "which then counts a summand twice")
        came = mine | came
    held[ranks[:, None], chunks] = came


def prove(name, size, root=0, **options):
    """Check one algorithm at one size; returns its Cost.

    Raises Broken if sends do not match receives, a promise is not kept, a summand counts twice, rounds or
    bytes differ from the formula, or the rounds of a single rank differ from those of all ranks at once.
    """
    algorithm = ALGORITHMS[name]
    title = f"{name} on {size} ranks" + "".join(
        f", {key}={value}" for key, value in options_of(name, root, options).items())
    try:
        return _prove(algorithm, name, size, root, options)
    except Broken as error:
        raise Broken(f"{title}: {error}") from None


def _prove(algorithm, name, size, root, options):
    held = before(name, size, root, **options)
    few = sorted({0, 1, root, size // 2, size - 1} & set(range(size)))
    checked = range(size) if size <= 33 and root == 0 else few
    played, sent, messages = [], np.zeros(size, int), np.zeros(size, int)
    for _, items in play(name, size, held, root, **options):
        played.append([_rows(item, checked) for item in items])  # those of all ranks would take gigabytes
        for item in (i for i in items if isinstance(i, Send)):
            sent += (item.to != NONE) * item.chunks.shape[1]
            messages += item.to != NONE
    want, where = after(name, size, root, **options)
    for rank, chunk in np.argwhere((held != want) & where)[:1]:
        raise Broken(f"rank {rank} ends with {_said(held, rank, chunk)} in chunk {chunk}, not with "
                     f"{_said(want, rank, chunk)}")
    for what, is_, formula in (("rounds", len(played), algorithm.rounds(size, **options)),
                               ("chunks from the busiest rank", sent.max(), algorithm.sent(size, **options)),
                               ("chunks in all", sent.sum(), algorithm.total(size, **options))):
        if is_ != formula:
            raise Broken(f"{is_} {what}, the formula says {formula}")
    for row, rank in enumerate(checked):
        _check_one_rank(algorithm.rule, rank, size, played, row, options_of(name, root, options))
    return Cost(len(played), sent, messages)


def prove_all(name, size):
    """Check an algorithm at one size with all options that it names and, if it has a root, several roots.

    Returns the Cost of the last. Raises Broken.
    """
    algorithm = ALGORITHMS[name]
    roots = {0, 1, size // 2, size - 1} if size <= 33 else {0, size // 2}
    roots = sorted(roots & set(range(size))) if algorithm.collective in ROOTED else [0]
    for options in algorithm.variants(size):
        for root in roots:
            cost = prove(name, size, root, **options)
    return cost


def _said(held, rank, chunk):
    mask = int(held[rank, chunk])
    if mask == NOTHING:
        return "nothing"
    if held.dtype != object:
        return f"block {mask - 1}"
    return f"the summands of ranks {[r for r in range(mask.bit_length()) if mask >> r & 1]}"


def _rows(item, ranks):
    return item._replace(**{item._fields[0]: item[0][ranks], "chunks": item.chunks[ranks]})


def _check_one_rank(rule, rank, size, played, row, options):
    """The rule with an int, which is what runs, must say what the rule with a vector says in this row."""
    alone = list(rounds(rule, rank, size, **options))
    if len(alone) != len(played):
        raise Broken(f"rank {rank} has {len(alone)} rounds, not {len(played)}")
    for number, (mine, all_) in enumerate(zip(alone, played), 1):
        if len(mine) != len(all_):
            raise Broken(f"round {number}: rank {rank} alone has {len(mine)} items, not {len(all_)}")
        for one, many in zip(mine, all_):
            peer = int(many[0][row])
            same = int(one[0]) == peer and (peer == NONE or np.array_equal(one.chunks, many.chunks[row]))
            if not same or type(one) is not type(many) or one[2:] != many[2:]:
                raise Broken(f"round {number}: the rule of rank {rank} alone says {one}, the rule of all ranks {many}")
