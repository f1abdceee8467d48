"""What the rounds of a schedule cost, one after another, each kind of round once."""

import hashlib
from typing import NamedTuple

import numpy as np

from comm.schedule import NONE, Send, Step
from comm.sharing import finish, smallest

MANY, GRAIN = 2000, 0.01
"""With more messages than this in a round, bandwidth is shared anew in steps of a hundredth of the time."""


class Phase(NamedTuple):
    """Rounds in a row that are alike."""

    rounds: int
    each: float  # seconds of one round
    sent: float  # bytes of one round, all ranks together
    busiest: int  # the link that is busy longest, NONE if nothing moves
    adds: bool  # does anybody combine what comes?


class Moves(NamedTuple):
    """The messages of one round: F of them, among R ranks, over L links."""

    source: np.ndarray  # (F,) who sends
    sizes: np.ndarray  # (F,) bytes
    ranks: np.ndarray  # (R,) who takes part
    ready: np.ndarray  # (R,) seconds until each has sent and received
    links: np.ndarray  # (L,) numbers
    carried: np.ndarray  # (L,) bytes over them
    busiest: int  # the link that is busy longest, NONE if nothing moves


class Pricer:
    """Takes rounds one after another; knows again those that it has priced."""

    def __init__(self, topology, placement, chunk, gamma):
        self.topology, self.placement, self.chunk, self.gamma = topology, placement, chunk, gamma
        self.patterns, self.moves, self.order, self.recent = {}, {}, [], []
        self.priced = 0

    def take(self, items):
        """One round, as the rule yields it."""
        parts = []  # (is a send, peers, number of chunks, reduce)
        for item in [items] if isinstance(items, Step) else items:
            if isinstance(item, Step):
                parts += [(True, item.to, item.count, False), (False, item.source, item.count, item.reduce)]
            elif isinstance(item, Send):
                parts.append((True, item.to, np.shape(item.chunks)[-1], False))
            else:
                parts.append((False, item.source, np.shape(item.chunks)[-1], item.reduce))
        key = tuple((out, self._name(peers), count, reduce) for out, peers, count, reduce in parts)
        if key not in self.patterns:
            self.patterns[key] = [0, *self._evaluate(key, parts)]
        pattern = self.patterns[key]
        pattern[0] += 1
        if self.order and self.order[-1][0] is pattern:
            self.order[-1][1] += 1
        else:
            self.order.append([pattern, 1])

    def _name(self, peers):
        """The same name for equal arrays: most rules yield the very same array again, which costs nothing."""
        for array, name in self.recent:
            if array is peers:
                return name
        name = hashlib.blake2b(np.ascontiguousarray(peers).tobytes(), digest_size=16).digest()
        self.recent = [(peers, name), *self.recent[:7]]  # held, so that no other array gets its identity
        return name

    def _evaluate(self, key, parts):
        """(Phase of one round, Moves)."""
        ranks = len(self.placement)
        combined, adds = np.zeros(ranks), False
        for out, peers, count, reduce in parts:
            if not out and reduce:
                there = np.broadcast_to(peers, ranks) != NONE
                combined += there * count * self.chunk
                adds |= bool(there.any())
        sends = tuple(part for part in key if part[0])
        if sends not in self.moves:
            self.moves[sends] = self._move([part for part in parts if part[0]])
        moves = self.moves[sends]
        each = float((moves.ready + self.gamma * combined[moves.ranks]).max(initial=0))
        return Phase(1, each, float(moves.sizes.sum()), moves.busiest, adds), moves

    def _move(self, sends):
        """What the messages of one round cost."""
        ranks = len(self.placement)
        everyone, ends = np.arange(ranks), [np.empty((2, 0), int)]
        sizes = [np.empty(0)]
        for _, peers, count, _ in sends:
            peers = np.broadcast_to(peers, ranks)
            there = peers != NONE
            ends.append(np.stack([everyone[there], peers[there]]))
            sizes.append(np.full(there.sum(), count * self.chunk))
        (source, target), sizes = np.hstack(ends), np.concatenate(sizes)
        self.priced += len(source)
        routes = self.topology.routes(self.placement[source], self.placement[target])
        grain = GRAIN if len(source) > MANY else 0
        arrives, latency = finish(routes, sizes, self.topology.bandwidth, grain), self.topology.latency(routes)
        taking_part, who = np.unique(np.stack([source, target]), return_inverse=True)
        ready = np.zeros(len(taking_part))
        for half in who.reshape(2, -1):
            order = np.argsort(half, kind="stable")
            last = np.maximum(0, -smallest(half[order], -arrives[order], len(taking_part)))
            ready = np.maximum(ready, last + np.bincount(half, latency, len(taking_part)))
        there = routes != NONE
        links, place = np.unique(routes[there], return_inverse=True)
        carried = np.bincount(place, np.broadcast_to(sizes[:, None], routes.shape)[there], len(links))
        busy = carried / self.topology.bandwidth[links]
        return Moves(source, sizes, taking_part, ready, links, carried,
                     int(links[busy.argmax()]) if busy.any() else NONE)

    def result(self):
        """What Price wants after the topology."""
        size = len(self.placement)
        sent, messages = np.zeros(size), np.zeros(size, int)
        carried = np.zeros(len(self.topology.bandwidth))
        for times, _, moves in self.patterns.values():
            sent += times * np.bincount(moves.source, moves.sizes, size)
            messages += times * np.bincount(moves.source, minlength=size)
            carried[moves.links] += times * moves.carried
        phases = [pattern[1]._replace(rounds=rounds) for pattern, rounds in self.order]
        return phases, sent, messages, carried, self.priced
