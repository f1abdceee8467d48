"""From the rounds of an algorithm to calls on memory: what is sent from where, where it lands, what is added.

A message is one run of memory, or is packed. What comes to be added lands in scratch, unless the chunk that
it is added to is still in the source: then it lands where the sum will be. Long messages are cut into
segments, which go one after the other: that needs little scratch and adds what is still in cache. While one
is added the next is on its way.
"""

from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from comm.device import host
from comm.memory import SOURCE, segments, size_of
from comm.schedule import NONE, Recv, Send, rounds

SEGMENT = 4 << 20  # bytes of one message at most
EAGER = 64 << 10  # bytes that TCP takes without asking the receiver first: the least that a message is cut into
PIECES = 16  # that a long message to another node is cut into
TILE = 128 << 10  # bytes that are read from a neighbour's memory at a time: sums of several stay in cache

COMBINE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
"""How two summands become one. NumPy adds 16-bit floats in float32 and rounds the sum: once for every hop."""


class Move(NamedTuple):
    """One turn of one rank: every call `before`, an exchange of messages or a barrier, every call `after`."""

    before: list
    exchange: list  # calls that together block until everything has come and gone
    post: partial  # begins the same and returns requests
    after: list
    traffic: list  # (peer, messages, bytes) that leave this rank
    joins: bool = False  # the exchange may begin before what comes `after` the move before it


class Turn(NamedTuple):
    """What a rank sends and receives at once: one segment of each message of a round."""

    parts: list
    place: int  # in the round


class Part(NamedTuple):
    """A segment of one message of a round."""

    item: Send | Recv
    places: list
    direct: bool  # it is sent from where it lies, or received where it belongs; if not, by way of scratch


class Binder:
    """Binds the rounds of one rank to its memory. See comm.execute.Plan for the arguments."""

    def __init__(self, endpoint, memory, op, device, tag, kept, window):
        self._endpoint, self._memory, self._op, self._device = endpoint, memory, op, device
        self._tag, self._kept, self._window = tag, kept, window
        self._dtype = memory.arrays[0].dtype

    def moves(self, rule, promised):
        """All moves of this rank in order. promised: the slots that must be in `flat` at the end."""
        turns = []
        for number, items in enumerate(rounds(rule, self._endpoint.rank, self._endpoint.size)):
            items = [type(i)(int(i[0]), np.ravel(i.chunks).tolist(), *i[2:]) for i in items if i[0] != NONE]
            turns += self._meet(number, items) if self._window else self._turns(items)
            self._memory.fresh.difference_update(s for i in items if isinstance(i, Recv) for s in i.chunks)
        waiting = [turn for turn in turns if isinstance(turn, Turn)]
        need = max((sum(size_of(part.places) for part in turn.parts if not part.direct) for turn in waiting), default=0)
        scratch = [self._device.empty(need, self._dtype) for _ in range(1 + any(turn.place for turn in waiting))]
        moves = [self._bind(turn, scratch[turn.place % 2]) if isinstance(turn, Turn) else turn for turn in turns]
        return moves + self._last(promised)

    def _turns(self, items):
        """The messages of a round, a segment of each in every turn.

        All at once, if else a rank would send a segment after receiving it, or add up what is cut differently.
        """
        memory, lanes = self._memory, []
        sends, receives = ([item for item in items if isinstance(item, kind)] for kind in (Send, Recv))
        sent, received = ([slot for item in half for slot in item.chunks] for half in (sends, receives))
        crossing = not memory.fresh.issuperset(set(sent) & set(received))
        for item in sends:
            runs = memory.runs(item.chunks)
            lanes.append([Part(item, places, len(places) == 1) for places in self._segments(item.to, runs)])
        for item in receives:
            lanes.append([Part(item, places, len(places) == 1 and (
                places[0].array == SOURCE if item.reduce else not crossing))
                for places in self._segments(item.source, self._landing(item))])
        summed = len(received) > len(set(received))
        alike = len({len(lane) for lane in lanes[len(sends):]}) == 1
        if (not crossing or sent == received) and (alike or not summed):
            return [Turn([part for part in parts if part], place) for place, parts in enumerate(zip_longest(*lanes))]
        return [Turn([part for lane in lanes for part in lane], 0)] if any(lanes) else []

    def _landing(self, item):
        """Where what comes is combined or put. Its slots are in the source no longer."""
        if not item.reduce:
            self._memory.fresh.difference_update(item.chunks)
        runs = self._memory.runs(item.chunks)
        self._memory.fresh.difference_update(item.chunks)
        return runs

    def _segments(self, peer, runs):
        """A message to or from `peer`, cut: finely over a network, where moving and adding overlap."""
        nodes, width, nbytes = self._endpoint.nodes, self._dtype.itemsize, SEGMENT
        if nodes[peer] != nodes[self._endpoint.rank]:
            nbytes = min(SEGMENT, max(EAGER, size_of(runs) * width // PIECES))
        return segments(runs, max(1, nbytes // width))

    def _bind(self, turn, scratch):
        """A turn of messages as a Move."""
        memory, copy = self._memory, self._device.copy
        sends, receives, before, after, used = [], [], [], [], 0
        for item, places, direct in turn.parts:
            sending = isinstance(item, Send)
            if direct:
                view = memory.view(places[0]) if sending else memory.target(places[0])
            else:
                view = scratch[used:used + size_of(places)]
                used += view.size
            (sends if sending else receives).append((view, item[0]))
            for place, piece in _pieces(places, view):
                if not sending and item.reduce:
                    after.append(self._combine(place, piece, item.source))
                elif not direct:
                    (before if sending else after).append(
                        partial(copy, piece, memory.view(place)) if sending else
                        partial(copy, memory.target(place), piece))
        if self._device is not host:
            before.append(self._device.synchronize)
        endpoint, tag = self._endpoint, self._tag
        return Move(before, endpoint.exchange(sends, receives, tag, self._kept),
                    partial(endpoint.post, sends, receives, tag), after,
                    [(peer, endpoint.pieces(view), view.nbytes) for view, peer in sends],
                    joins=turn.place > 0 and self._device is host)

    def _combine(self, place, came, source):
        """The call that adds what came from rank `source` to what is at a place.

        The lower rank's operand comes first: of NaNs, and of 0.0 and -0.0, NumPy's result depends on the order, and
        two ranks that swap and add must end with the same bits.
        """
        mine, target = self._memory.view(place), self._memory.target(place)
        if self._device is not host:
            return partial(self._device.add_into, target, came)
        operands, combine = (came, mine) if source < self._endpoint.rank else (mine, came), COMBINE[self._op]
        if combine in (np.maximum, np.minimum):  # which do not take it by position
            return partial(combine, *operands, out=target)
        return partial(combine, *operands, target)  # a sixth of a microsecond less

    def _meet(self, number, items):
        """A round where some peers are of this node: they meet, then each reads what the others show it."""
        window, memory = self._window, self._memory
        mates = [item for item in items if item[0] in window.mates]
        others = [item for item in items if item[0] not in window.mates]
        if not window.meets(number):
            return self._turns(others)
        shown, reads, traffic = [], [], []
        for item in (i for i in mates if isinstance(i, Send)):
            runs = memory.runs(item.chunks)
            shown += [place for place in runs if place not in shown]
            traffic.append((item.to, 1, size_of(runs) * self._dtype.itemsize))
        for item in (i for i in mates if isinstance(i, Recv)):
            reads += self._reads(item, window.shown(number, item.source))
        reads.sort(key=lambda read: read[:2])  # stable: summands of one place are added in order
        before = [partial(np.copyto, there, memory.view(place)) for place in shown
                  if (there := window.mine(place)) is not None]
        return [Move(before, [window.barrier], window.post, [call for *_, call in reads], traffic),
                *self._turns(others)]

    def _reads(self, item, theirs):
        """(array, start, call) for each tile that this rank takes out of the memory of a rank of its node."""
        tile = max(1, TILE // self._dtype.itemsize)
        lanes = (segments(runs, tile) for runs in (self._landing(item), self._memory.runs(theirs)))
        for mine, their in zip(*lanes, strict=True):
            for place, other in _common(mine, their):
                came = self._window.view(item.source, other)
                take = partial(np.copyto, self._memory.target(place), came)
                yield max(place.array, 0), place.start, (
                    self._combine(place, came, item.source) if item.reduce else take)

    def _last(self, promised):
        """Complete what is promised; on shared memory, stay until nobody reads mine any more."""
        memory, calls = self._memory, []
        slots = range(len(memory.places)) if promised is None else promised
        for place in memory.runs([slot for slot in slots if slot in memory.fresh]):
            calls.append(partial(self._device.copy, memory.target(place), memory.view(place)))
        if self._op == "mean":
            memory.fresh.clear()
            calls += [partial(divide, memory.target(place), self._endpoint.size) for place in memory.runs(slots)]
        if self._window is not None:
            return [Move([], [self._window.barrier], self._window.post, calls, [])]
        return [Move([], [], list, calls, [])] if calls else []


def _pieces(places, view):
    """(place, its piece of a message)."""
    at = 0
    for place in places:
        end = at + place.stop - place.start
        yield place, view[at:end]
        at = end


def _common(mine, theirs):
    """Two lists of places of the same total length, cut so that they match one to one."""
    mine, theirs = list(mine), list(theirs)
    while mine and theirs:
        a, b = mine.pop(0), theirs.pop(0)
        n = min(a.stop - a.start, b.stop - b.start)
        yield a._replace(stop=a.start + n), b._replace(stop=b.start + n)
        if a.start + n < a.stop:
            mine.insert(0, a._replace(start=a.start + n))
        if b.start + n < b.stop:
            theirs.insert(0, b._replace(start=b.start + n))


def divide(total, size):
    """The mean from the sum, in place; 16-bit floats are divided in float32, as they were added."""
    if total.dtype.itemsize == 2:
        total[...] = total.astype(np.float32) / np.float32(size)
    else:
        np.divide(total, size, out=total)
