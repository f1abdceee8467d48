"""Plans: one rank's rounds bound to a buffer, made once and run many times.

What makes small messages cheap is that nothing is computed on the way: slices, scratch and the transport's call of
each round are bound when the plan is made. Scratch is aligned to cache lines (comm/device.py).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from comm.device import host
from comm.schedule import NONE, Recv, Send

COLLECTIVE_TAG = 1 << 14  # tags from here on belong to collectives; a user's tags are below

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""How two summands become one. NumPy adds 16-bit floats in float32 and rounds the sum: once for every hop."""


class Move(NamedTuple):
    """One round of one rank, bound: call `exchange`, then every one of `reductions`."""

    exchange: partial
    sends: list  # (view, peer)
    receives: list  # (view, peer)
    reductions: list  # calls that combine what came with what is here


class Plan:
    """Run `rounds` on the 1-d buffer `flat`, in place.

    cuts: size + 1 offsets of the chunks in `flat` (comm.bounds, or any others that all ranks agree on).
    `run()` blocks. `start()` begins and returns; `poll()` goes as far as it can without waiting and says whether it
    is done; `wait()` finishes. A plan may be run again when it is done, and holds no more than its scratch.
    """

    def __init__(self, endpoint, rounds, flat, cuts, op="sum", device=host, tag=COLLECTIVE_TAG):
        self._endpoint, self._device, self._tag = endpoint, device, tag
        self._at = 0
        rounds = list(rounds)
        scratch = device.empty(_landing_size(rounds, cuts), flat.dtype)
        self._moves = [m for m in (self._bind(r, flat, cuts, scratch, op) for r in rounds) if m]
        out = [view for move in self._moves for view, _ in move.sends]
        self.sent = sum(view.nbytes for view in out)  # bytes that leave this rank in one run
        self.messages = sum(endpoint.pieces(view) for view in out)

    def _bind(self, items, flat, cuts, scratch, op):
        """A Move, or None if nothing travels: both sides of a message know that an empty chunk need not."""
        sends, receives, reductions, used = [], [], [], 0
        for item in items:
            peer = int(item[0])
            for start, stop in _pieces(item.chunks, cuts) if peer != NONE else ():
                here = flat[start:stop]
                if isinstance(item, Send):
                    sends.append((here, peer))
                elif not item.reduce:
                    receives.append((here, peer))
                else:
                    landing = scratch[used:used + stop - start]
                    used += stop - start
                    receives.append((landing, peer))
                    reductions.append(self._reduction(here, landing, op))
        if not sends and not receives:
            return None
        exchange = self._endpoint.exchange(sends, receives, self._tag)
        if self._device is not host:
            exchange = partial(_synchronised, self._device, exchange)
        return Move(exchange, sends, receives, reductions)

    def _reduction(self, here, landing, op):
        if self._device is host:
            return partial(COMBINE[op], here, landing, here)
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


def _pieces(chunks, cuts):
    """(start, stop) in elements of each run of consecutive chunks that is not empty."""
    chunks = np.ravel(chunks)
    for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1):
        start, stop = cuts[int(run[0])], cuts[int(run[-1]) + 1]
        if stop > start:
            yield start, stop


def _landing_size(rounds, cuts):
    """Elements of scratch that the round with the most to combine needs."""
    sizes = [sum(stop - start for item in items if isinstance(item, Recv) and item.reduce and item.source != NONE
                 for start, stop in _pieces(item.chunks, cuts)) for items in rounds]
    return max(sizes, default=0)
