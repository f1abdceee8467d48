"""Plans: one rank's rounds bound to a buffer, made once and run many times.

What makes small messages cheap is that nothing is computed on the way: slices, scratch and the transport's
call of each round are bound when the plan is made. Scratch is aligned to cache lines (comm/device.py).
"""

from collections import OrderedDict
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from comm import buffers
from comm.algorithms import ALGORITHMS
from comm.device import host
from comm.schedule import NONE, Recv, Send, bounds, rounds

COLLECTIVE_TAG = 1 << 14  # tags from here on belong to collectives; a user's tags are below

SEGMENT = 4 << 20  # bytes of one message at most

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""How two summands become one. NumPy adds 16-bit floats in float32 and rounds the sum: once for every hop."""


class Move(NamedTuple):
    """One turn of one rank, bound: call `exchange`, then every one of `reductions`."""

    exchange: partial
    sends: list  # (view, peer)
    receives: list  # (view, peer)
    reductions: list  # calls that combine what came with what is here


class Part(NamedTuple):
    """A segment of one message of a round: elements start to stop of the buffer."""

    item: Send | Recv
    start: int
    stop: int
    lands: bool  # in scratch first, as it must be combined, or what is here must yet be sent


class Plan:
    """Run the rounds of one rank on the 1-d buffer `flat`, in place.

    rule: a generator of rounds, rule(rank, size). cuts: size + 1 offsets of the chunks in `flat`: comm's
    bounds, or others that all ranks agree on. device: who owns `flat` and adds.
    `run()` blocks. `start()` begins and returns; `poll()` goes as far as it can without waiting and says
    whether it is done; `wait()` finishes. A plan may be run again when it is done.
    """

    def __init__(self, endpoint, rule, flat, cuts, op="sum", device=host, tag=COLLECTIVE_TAG):
        self.flat = flat
        self._endpoint, self._device, self._tag = endpoint, device, tag
        self._at = 0
        longest = max(1, SEGMENT // flat.dtype.itemsize)
        turns = [turn for items in rounds(rule, endpoint.rank, endpoint.size)
                 for turn in _turns(items, cuts, longest)]
        scratch = device.empty(max(map(_landing_size, turns), default=0), flat.dtype)
        self._moves = [self._bind(turn, scratch, op) for turn in turns]
        out = [view for move in self._moves for view, _ in move.sends]
        self.sent = sum(view.nbytes for view in out)  # bytes that leave this rank in one run
        self.messages = sum(endpoint.pieces(view) for view in out)

    def _bind(self, turn, scratch, op):
        sends, receives, reductions, used = [], [], [], 0
        for item, start, stop, lands in turn:
            here, peer = self.flat[start:stop], int(item[0])
            if isinstance(item, Send):
                sends.append((here, peer))
            elif not lands:
                receives.append((here, peer))
            else:
                landing = scratch[used:used + stop - start]
                used += stop - start
                receives.append((landing, peer))
                reductions.append(self._reduction(here, landing, op if item.reduce else None))
        exchange = self._endpoint.exchange(sends, receives, self._tag)
        if self._device is not host:
            exchange = partial(_synchronised, self._device, exchange)
        return Move(exchange, sends, receives, reductions)

    def _reduction(self, here, landing, op):
        """Combine what came with what is here, or (op None) replace it."""
        if op is None:
            return partial(self._device.copy, here, landing)
        if self._device is host:
            return partial(COMBINE[op], here, landing, out=here)
        return partial(self._device.add_into, here, landing)

    def run(self):
        for move in self._moves:
            move.exchange()
            for reduce in move.reductions:
                reduce()

    def start(self):
        self._at = 0
        self._post()

    def poll(self):
        while self._at < len(self._moves):
            if not self._endpoint.test(self._requests):
                return False
            self._advance()
        return True

    def wait(self):
        while self._at < len(self._moves):
            self._endpoint.wait(self._requests)
            self._advance()

    def _advance(self):
        for reduce in self._moves[self._at].reductions:
            reduce()
        self._at += 1
        self._post()

    def _post(self):
        if self._at < len(self._moves):
            self._device.synchronize()
            move = self._moves[self._at]
            self._requests = self._endpoint.post(move.sends, move.receives, self._tag)


def _synchronised(device, exchange):
    """MPI reads memory, not streams: what was started on the device must be finished first."""
    device.synchronize()
    exchange()


def _turns(items, cuts, longest):
    """A round as lists of Parts, messages of at most `longest` elements, that are carried out in turn.

    Every rank cuts a message alike, so its halves match. A rank takes the segments one after the other, which
    needs little scratch and adds what is still in cache, unless it would send a segment after receiving it.
    """
    items = [item for item in items if item[0] != NONE]
    sent, received = (np.concatenate([np.ravel(i.chunks) for i in items if isinstance(i, kind)] or [[]])
                      for kind in (Send, Recv))
    crossing = np.intersect1d(sent, received).size > 0
    lanes = [[Part(item, *ends, isinstance(item, Recv) and (item.reduce or crossing))
              for ends in _segments(item.chunks, cuts, longest)] for item in items]
    if not crossing or np.array_equal(sent, received):
        return [[part for part in turn if part] for turn in zip_longest(*lanes)]
    return [[part for lane in lanes for part in lane]] if any(lanes) else []


def _segments(chunks, cuts, longest):
    """(start, stop) in elements of the runs of consecutive chunks, cut at `longest`; no empty ones."""
    chunks = np.ravel(chunks)
    for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1):
        start, stop = cuts[int(run[0])], cuts[int(run[-1]) + 1]
        for at in range(start, stop, longest):
            yield at, min(at + longest, stop)


def _landing_size(turn):
    """Elements of scratch that a turn needs."""
    return sum(part.stop - part.start for part in turn if part.lands)


class Plans:
    """The plans of one group: new ones, and those kept for buffers that are used again and again."""

    def __init__(self, endpoint, limit=64):
        self._endpoint, self._limit = endpoint, limit
        self._kept = OrderedDict()

    def new(self, algorithm, flat, cuts=None, op="sum", device=host, **options):
        """A plan for one use. cuts: None for even chunks."""
        rule = partial(ALGORITHMS[algorithm].rule, **options)
        cuts = bounds(flat.size, ALGORITHMS[algorithm].chunks(self._endpoint.size)) if cuts is None else cuts
        return Plan(self._endpoint, rule, flat, cuts, op, device)

    def kept(self, algorithm, count, dtype, cuts=None, op="sum", memory=None, **options):
        """A plan that is kept. It runs on the memory of the host array `memory`, or on its own buffer."""
        key = (algorithm, count, dtype, op, cuts, None if memory is None else buffers.address_of(memory),
               *options.values())
        plan = self._kept.get(key)
        if plan is None:
            flat = host.empty(count, dtype) if memory is None else buffers.memory_of(memory)
            plan = self._kept[key] = self.new(algorithm, flat, cuts, op, **options)
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return plan

    def __len__(self):
        return len(self._kept)
