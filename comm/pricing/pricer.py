"""The rounds of a schedule, each kind once, and what they cost where the ranks are placed."""

import hashlib
from typing import NamedTuple

import numpy as np

from comm.pricing.sharing import finish, smallest
from comm.schedule import NONE, Send, Step

MANY, GRAIN = 2000, 0.01
"""With more messages than this in a round, bandwidth is shared anew in steps of a hundredth of the time."""


class Messages(NamedTuple):
    """What is under way in one round, F messages."""

    source: np.ndarray  # (F,) ranks
    target: np.ndarray  # (F,)
    chunks: np.ndarray  # (F,) how many


class Kind(NamedTuple):
    """A kind of round: its messages, by number, and who combines how many chunks."""

    messages: int
    adders: np.ndarray
    added: np.ndarray


class Recording:
    """All rounds of a schedule, whoever is placed where: equal rounds are kept once.

    messages: of each kind of exchange; kinds: of rounds; runs: [kind, rounds in a row], in order.
    """

    def __init__(self, rounds, ranks, progress=None):
        """rounds: what a rule yields for np.arange(ranks). progress(done) is called now and then."""
        self.ranks, self.messages, self.kinds, self.runs = ranks, [], [], []
        self._known, self._recent = {}, []
        for number, items in enumerate(rounds, 1):
            self._take(items)
            if progress and number % 64 == 0:
                progress(number)

    def _take(self, items):
        parts = []  # (is a send, peers, number of chunks, reduce)
        for item in [items] if isinstance(items, Step) else items:
            if isinstance(item, Step):
                parts += [(True, item.to, item.count, False), (False, item.source, item.count, item.reduce)]
            elif isinstance(item, Send):
                parts.append((True, item.to, np.shape(item.chunks)[-1], False))
            else:
                parts.append((False, item.source, np.shape(item.chunks)[-1], item.reduce))
        key = tuple((out, self._name(peers), count, reduce) for out, peers, count, reduce in parts)
        if key not in self._known:
            self._known[key] = len(self.kinds)
            self.kinds.append(self._kind(key, parts))
        kind = self._known[key]
        if self.runs and self.runs[-1][0] == kind:
            self.runs[-1][1] += 1
        else:
            self.runs.append([kind, 1])

    def _name(self, peers):
        """The same name for equal arrays: most rules yield the very same array again, which costs nothing."""
        for array, name in self._recent:
            if array is peers:
                return name
        name = hashlib.blake2b(np.ascontiguousarray(peers).tobytes(), digest_size=16).digest()
        self._recent = [(peers, name), *self._recent[:7]]  # held, so that no other array gets its identity
        return name

    def _kind(self, key, parts):
        sends = tuple(part for part in key if part[0])
        if sends not in self._known:
            self._known[sends] = len(self.messages)
            self.messages.append(Messages(*self._who(part for part in parts if part[0])))
        adders, _, added = self._who(part for part in parts if part[3])
        return Kind(self._known[sends], adders, added)

    def _who(self, parts):
        """(ranks, their peers, numbers of chunks) of those that are not idle."""
        found = [np.empty((3, 0), int)]
        for _, peers, count, _ in parts:
            peers = np.broadcast_to(peers, self.ranks)
            ranks = np.flatnonzero(peers != NONE)
            found.append(np.stack([ranks, peers[ranks], np.full(len(ranks), count)]))
        return np.hstack(found)


class Phase(NamedTuple):
    """Rounds in a row that are alike."""

    rounds: int
    each: float  # seconds of one round
    sent: float  # bytes of one round, all ranks together
    busiest: int  # the link that is busy longest, NONE if nothing moves
    adds: bool  # does anybody combine what comes?


def totals(recording):
    """(chunks (N,), messages (N,)) that leave each rank in all rounds."""
    chunks, messages = np.zeros((2, recording.ranks), int)
    for kind, often in zip(recording.kinds, _times(recording)):
        sent = recording.messages[kind.messages]
        chunks += often * np.bincount(sent.source, sent.chunks, recording.ranks).astype(int)
        messages += often * np.bincount(sent.source, minlength=recording.ranks)
    return chunks, messages


def phases(recording, topology, placement, chunk, gamma):
    """(list of Phase, bytes over every link (L,)) of a Recording whose rank r runs on GPU placement[r].

    chunk: bytes of one; gamma: seconds per byte that is combined.
    """
    moved = [_move(messages, topology, placement, chunk) for messages in recording.messages]
    priced, carried = [], np.zeros(len(topology.bandwidth))
    for kind, often in zip(recording.kinds, _times(recording)):
        moves, sent = moved[kind.messages], recording.messages[kind.messages].chunks.sum() * chunk
        combined = np.bincount(kind.adders, kind.added * chunk, recording.ranks)[moves.ranks]
        each = (moves.ready + gamma * combined).max(initial=0)
        carried[moves.links] += often * moves.carried
        priced.append(Phase(1, float(each), float(sent), moves.busiest, len(kind.adders) > 0))
    return [priced[kind]._replace(rounds=rounds) for kind, rounds in recording.runs], carried


def _times(recording):
    """(kinds,) how often each kind of round occurs."""
    kinds, rounds = np.array(recording.runs, int).reshape(-1, 2).T
    return np.bincount(kinds, rounds, len(recording.kinds)).astype(int)


class Moves(NamedTuple):
    """What the messages of a round cost: R ranks that take part, L links in use."""

    ranks: np.ndarray  # (R,)
    ready: np.ndarray  # (R,) seconds until each has sent and received
    links: np.ndarray  # (L,) numbers
    carried: np.ndarray  # (L,) bytes over them
    busiest: int  # the link that is busy longest, NONE if nothing moves


def _move(messages, topology, placement, chunk):
    sizes = messages.chunks * chunk
    routes = topology.routes(placement[messages.source], placement[messages.target])
    arrives = finish(routes, sizes, topology.bandwidth, GRAIN if len(sizes) > MANY else 0)
    latency = topology.latency(routes)
    ranks, who = np.unique(np.stack(messages[:2]), return_inverse=True)
    ready = np.zeros(len(ranks))
    for half in who.reshape(2, -1):
        order = np.argsort(half, kind="stable")
        last = np.maximum(0, -smallest(half[order], -arrives[order], len(ranks)))
        ready = np.maximum(ready, last + np.bincount(half, latency, len(ranks)))
    there = routes != NONE
    links, place = np.unique(routes[there], return_inverse=True)
    carried = np.bincount(place, np.broadcast_to(sizes[:, None], routes.shape)[there], len(links))
    busy = carried / topology.bandwidth[links]
    return Moves(ranks, ready, links, carried, int(links[busy.argmax()]) if busy.any() else NONE)
