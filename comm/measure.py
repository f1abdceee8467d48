"""What messages, shared memory and additions cost between the ranks of one group, measured by all of them together.

Every rank takes part in every trial, as in a collective, so that cores, links and memory are shared as they will be.
Others may be using the machine, so all trials are run in several passes and the smallest time of each counts; of the
ranks the slowest, so that all have the same numbers. It takes some tenths of a second on one host. On a slow network
long messages are left out, and the line goes on as it began.
"""

import os
import time
from functools import partial

import numpy as np

from comm.algorithms.recursive import recursive_doubling_all_reduce
from comm.device import host
from comm.execute import COLLECTIVE_TAG, Plan
from comm.predict import DEFAULT, Curve, Model
from comm.shared import MARGIN, SPARE, Block

TAG = COLLECTIVE_TAG + (1 << 13)
SIZES = (4, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)  # bytes
TIMES = dict(zip(SIZES, (30, 20, 15, 12, 8, 5, 2, 1)))  # how often in a batch
PASSES, BATCHES = 3, 2
ENOUGH = 0.02  # seconds for one trial in one pass: a disturbed machine gets fewer batches
PATIENCE = 0.02  # seconds of one run: longer messages are not tried
LEAST, MOST = 1e-9, 10.0  # seconds: what a cost may be


def measure(endpoint):
    """The Model of the ranks of this endpoint, the same on all of them. Every rank must call it."""
    lab = _Lab(endpoint)
    lab.messages()
    if len(set(endpoint.nodes)) == endpoint.size or lab.worst(_is_short(endpoint)):
        lab.run()
        return lab.model(False)
    block = Block(endpoint, 2 * SIZES[-1])
    lab.shared(block.pieces, block.meeting(own=False).meet)
    lab.run()
    lab.trials.clear()  # no view may be left when the memory goes
    block.free()
    return lab.model(True)


def _is_short(endpoint):
    """Has this node less shared memory left than its ranks want to try?"""
    ranks = endpoint.nodes.count(endpoint.nodes[endpoint.rank])
    return MARGIN * ranks * (2 * SIZES[-1] + SPARE) > endpoint.shareable()


class _Lab:
    """trials: {(what, bytes): calls}, in the order in which they are run; best: their seconds."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.rank, self.size = endpoint.rank, endpoint.size
        self.trials, self.best = {}, {}
        self.mine, self.other = (host.empty(SIZES[-1] // 4, np.float32) for _ in range(2))
        self.mine.fill(0)
        self.other.fill(0)
        self.most = host.empty(1, np.float64)
        self.agree = Plan(endpoint, recursive_doubling_all_reduce, self.most, [0, 1], "max", tag=TAG, kept=True)

    def calls(self, sends, receives):
        """One call that sends and receives these; it keeps their requests alive."""
        calls = self.endpoint.exchange(sends, receives, TAG, kept=True)

        def run():
            for call in calls:
                call()

        return run

    def messages(self):
        """What came is passed on, as in an all-gather, or is added first, as in a reduce-scatter.

        So every message is fresh in its sender's cache, which makes it dearer than one that is sent again.
        """
        right, left, partner = (self.rank + 1) % self.size, (self.rank - 1) % self.size, self.rank ^ 1
        for nbytes in SIZES:
            mine, other = self.mine[:nbytes // 4], self.other[:nbytes // 4]
            there, on = self.calls([(mine, right)], [(other, left)]), self.calls([(other, right)], [(mine, left)])
            add = partial(np.add, mine, other, out=mine)
            ping, pong = [(mine, partner)] * (partner < self.size), []
            if self.rank > partner:
                ping, pong = pong, ping
            self.trials["exchange", nbytes] = [there, on]
            self.trials["exchange and add", nbytes] = [there, add]
            self.trials["add", nbytes] = [add]
            self.trials["ping-pong", nbytes] = [self.calls(ping, pong), self.calls(pong, ping)]
        peers = range(1, self.peers + 1)
        self.trials["many", 4] = [self.calls([(self.mine[:1], (self.rank + k) % self.size) for k in peers],
                                             [(self.other[k:k + 1], (self.rank - k) % self.size) for k in peers])]

    @property
    def peers(self):
        """How many messages at once are tried."""
        return min(3, self.size - 1)

    def shared(self, pieces, meet):
        """Ranks add to one half what a neighbour has there, and copy what it has in the other.

        As in an all-reduce, what is read has just been written. pieces: {rank: bytes} of this node.
        """
        mates = sorted(pieces)
        at = mates.index(self.rank)
        half = at % 2
        mine, theirs = (pieces[rank].view(np.float32).reshape(2, -1) for rank in (self.rank, mates[at - 1]))
        mine.fill(0)
        self.trials["meet", 4] = [meet]
        for nbytes in SIZES:
            n = nbytes // 4
            add = partial(np.add, mine[half, :n], theirs[half, :n], out=mine[half, :n])
            read = partial(np.copyto, mine[1 - half, :n], theirs[1 - half, :n])
            self.trials["add and read", nbytes] = [meet, add, meet, read]
            self.trials["add theirs", nbytes], self.trials["read theirs", nbytes] = [add], [read]

    def run(self):
        """Fill `best`."""
        for _ in range(PASSES):
            for (what, nbytes), calls in self.trials.items():
                if self.best.get((what, nbytes // 4), 0) < PATIENCE:
                    self.best[what, nbytes] = min(self.best.get((what, nbytes), MOST), self.time(calls, TIMES[nbytes]))

    def time(self, calls, times):
        """Seconds of one run of `calls`: of the best batch, on the slowest rank."""
        best, spent = MOST, 0.0
        for _ in range(BATCHES):
            start = time.perf_counter()
            for _ in range(times):
                for call in calls:
                    call()
            seconds = time.perf_counter() - start
            best, spent = min(best, seconds / times), spent + seconds
            if self.worst(spent) > ENOUGH:
                break
        return self.worst(best)

    def worst(self, seconds):
        """The largest of all ranks."""
        self.most[0] = seconds
        self.agree.run()
        return float(self.most[0])

    def model(self, shared):
        """From the trials to the costs. What cannot cost more than something else was disturbed if it does."""
        best, tried = self.best, [n for n in SIZES if ("exchange", n) in self.best]
        both, one = ([best[what, n] / 2 for n in tried] for what in ("exchange", "ping-pong"))
        exchange = [min(a, 2 * b) for a, b in zip(both, one)]  # one after the other is a way, too
        send = [min(a, b) for a, b in zip(exchange, one)]
        combine = [max(best["exchange and add", n] - moved, best["add", n]) for n, moved in zip(tried, exchange)]
        post = (best["many", 4] - exchange[0]) / max(1, self.peers - 1) if self.peers > 1 else exchange[0]
        model = DEFAULT._replace(exchange=rising(tried, exchange), send=rising(tried, send),
                                 post=max(post, exchange[0] / 10), combine=rising(tried, combine),
                                 alone=rising(tried, [best["add", n] for n in tried]),
                                 crowd=self.worst(crowd(self.endpoint.nodes)), source="measured")
        if not shared:
            return sane(model)
        meet, adds, reads = best["meet", 4], [], []
        for n in SIZES:
            add, read = best["add theirs", n], best["read theirs", n]  # warm, and nobody else at work: the least
            whole = max(best["add and read", n] - 2 * meet, add + read)
            adds.append(whole * add / (add + read))
            reads.append(whole - adds[-1])
        return sane(model._replace(meet=meet, read=rising(SIZES, reads), add=rising(SIZES, adds)))


def crowd(nodes):
    """How many ranks of the fullest node share a core of this host; at least 1."""
    return float(min(MOST, max(1, max(map(nodes.count, nodes)) / (os.cpu_count() or 1))))


def rising(sizes, seconds):
    """The Curve where more bytes never take less time; what is too high was disturbed, so the lower one counts."""
    return Curve(tuple(sizes[:len(seconds)]), tuple(np.minimum.accumulate(seconds[::-1])[::-1].tolist()))


def sane(model):
    """The Model with what cannot be (a clock that jumped, a machine that slept) replaced by the default."""
    def fits(cost):
        if not isinstance(cost, Curve):
            return LEAST <= cost <= MOST
        return all(0 <= one <= MOST for one in cost.seconds) and cost.seconds[-1] >= LEAST and cost.slope >= 0

    return model._replace(**{name: getattr(DEFAULT, name) for name in Model._fields[:-1]
                             if not fits(getattr(model, name))})
