"""The messages of a round one by one: what tables, pictures and players show."""

from typing import NamedTuple

from comm.schedule import NONE, Recv, Send


class Move(NamedTuple):
    """One message: chunks `sent` of rank `source` land in chunks `landed` of rank `to`."""

    source: int
    to: int
    sent: tuple
    landed: tuple
    reduce: bool  # added to what is there, or put in its place?


def moves(items):
    """The messages of one round of all ranks, in the order in which receives carry them out.

    items: Send and Recv with peers (size,) and chunks (size, count), as `simulate.play` yields them.
    """
    sent = {(rank, int(item.to[rank])): tuple(item.chunks[rank].tolist())
            for item in items if isinstance(item, Send) for rank in (item.to != NONE).nonzero()[0]}
    return [Move(int(item.source[rank]), int(rank), sent[item.source[rank], rank],
                 tuple(item.chunks[rank].tolist()), bool(item.reduce))
            for item in items if isinstance(item, Recv) for rank in (item.source != NONE).nonzero()[0]]


def verbs(messages):
    """What a round does to chunks: "add", "copy", "add and copy", or "nothing" if nobody sends."""
    kinds = {message.reduce for message in messages}
    return " and ".join(verb for verb, reduce in (("add", True), ("copy", False)) if reduce in kinds) or "nothing"


def runs(chunks):
    """Chunk numbers for a label: (0, 1, 2, 5) is "0-2,5"; the order does not show."""
    parts = []
    for chunk in sorted(chunks):
        if parts and chunk == parts[-1][1] + 1:
            parts[-1][1] = chunk
        else:
            parts.append([chunk, chunk])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
