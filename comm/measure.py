"""What messages, shared memory and additions cost between the ranks of one group, measured by all of them together.

Every rank takes part in every measurement, as in a collective, so that cores, links and memory are shared as
they will be. A time is the smallest of a few batches (others may be using the machine), then the largest over
the ranks: `worst` makes it the same number everywhere. It takes about a tenth of a second on one host. On a slow
network long messages are left out, and the line goes on as it began.
"""

import time
from functools import partial

import numpy as np

from comm.algorithms.recursive import recursive_doubling_all_reduce
from comm.device import host
from comm.execute import COLLECTIVE_TAG, Plan
from comm.predict import DEFAULT, Curve, Model

TAG = COLLECTIVE_TAG + (1 << 13)
SIZES = (4, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)  # bytes
TIMES = (40, 30, 20, 16, 10, 6, 3, 2)  # how often in a batch
BATCHES = 5
ENOUGH = 0.05  # seconds for one number: a disturbed machine gets fewer batches
PATIENCE = 0.02  # seconds of one message: longer ones are not tried
LEAST, MOST = 1e-9, 10.0  # seconds: what a cost may be


def measure(endpoint):
    """The Model of the ranks of this endpoint, the same on all of them. Every rank must call it."""
    return _Lab(endpoint).model()


class _Lab:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.rank, self.size = endpoint.rank, endpoint.size
        self.kept = []
        self.mine, self.other = (host.empty(SIZES[-1] // 4, np.float32) for _ in range(2))
        self.mine.fill(0)
        self.other.fill(0)
        self.most = host.empty(1, np.float64)
        self.agree = Plan(endpoint, recursive_doubling_all_reduce, self.most, [0, 1], "max", tag=TAG, kept=True)

    def worst(self, seconds):
        """The largest of all ranks."""
        self.most[0] = seconds
        self.agree.run()
        return float(self.most[0])

    def model(self):
        exchange, combine = self.round_the_ring()
        send = rising(SIZES, [self.time(self.there_and_back(n // 4), times) / 2
                              for n, times in zip(exchange.sizes, TIMES)])
        return sane(Model(exchange, send, self.post(exchange.seconds[0]), combine, *self.shared(), "measured"))

    def calls(self, sends, receives):
        calls = self.endpoint.exchange(sends, receives, TAG, kept=True)
        self.kept.append(calls)  # its requests are freed with the list
        return calls

    def round_the_ring(self):
        """(exchange, combine): what came is passed on, as in an all-gather; is added first, as in a reduce-scatter.

        So every message is fresh in its sender's cache, which makes it dearer than one that is sent again.
        """
        moved, added = [], []
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for nbytes, times in zip(SIZES, TIMES):
            mine, other = self.mine[:nbytes // 4], self.other[:nbytes // 4]
            there, on = self.calls([(mine, right)], [(other, left)]), self.calls([(other, right)], [(mine, left)])
            add = partial(np.add, mine, other, out=mine)
            moved.append(self.time([*there, *on], times) / 2)
            added.append(max(self.time([*there, add], times) - moved[-1], self.time([add], times)))
            if moved[-1] > PATIENCE and len(moved) > 1:
                break
        return rising(SIZES, moved), rising(SIZES, added)

    def there_and_back(self, n):
        """Ranks 2i and 2i + 1 play ping-pong; the last of an odd number looks on."""
        partner = self.rank ^ 1
        if partner >= self.size:
            return []
        if self.rank < partner:
            return [*self.calls([(self.mine[:n], partner)], []), *self.calls([], [(self.mine[:n], partner)])]
        return [*self.calls([], [(self.other[:n], partner)]), *self.calls([(self.other[:n], partner)], [])]

    def post(self, alpha):
        """What a further message costs in a round where one costs alpha."""
        peers = min(3, self.size - 1)
        many = self.calls([(self.mine[:1], (self.rank + k) % self.size) for k in range(1, peers + 1)],
                          [(self.other[k:k + 1], (self.rank - k) % self.size) for k in range(1, peers + 1)])
        return max((self.time(many, TIMES[0]) - alpha) / (peers - 1), alpha / 10) if peers > 1 else alpha

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

    def shared(self):
        """(meet, read, add) in the memory that the ranks of a node share; the defaults if nobody has company."""
        nodes = self.endpoint.nodes
        if len(set(nodes)) == self.size:
            return DEFAULT.meet, DEFAULT.read, DEFAULT.add
        pieces, meet, _, free = self.endpoint.share(2 * SIZES[-1])
        mates = sorted(pieces)
        at = mates.index(self.rank)
        mine, theirs = (pieces[rank].view(np.float32).reshape(2, -1) for rank in (self.rank, mates[at - 1]))
        mine.fill(0)
        costs = self.beside(mine, theirs, at % 2, meet)
        pieces.clear()  # no view may be left when the memory goes
        del mine, theirs
        free()
        return costs

    def beside(self, mine, theirs, half, meet):
        """(meet, read, add): ranks add to one half what a neighbour has there, and copy what it has in the other.

        mine, theirs: (2, n) in shared memory. As in an all-reduce, what is read has just been written.
        """
        seconds, reads, adds = self.time([meet], TIMES[0]), [], []
        for nbytes, times in zip(SIZES, TIMES):
            n = nbytes // 4
            add = partial(np.add, mine[half, :n], theirs[half, :n], out=mine[half, :n])
            read = partial(np.copyto, mine[1 - half, :n], theirs[1 - half, :n])
            alone = self.time([add], times), self.time([read], times)  # warm, and nobody else at work: the least
            both = max(self.time([meet, add, meet, read], times) - 2 * seconds, sum(alone))
            adds.append(both * alone[0] / sum(alone))
            reads.append(both - adds[-1])
        return seconds, rising(SIZES, reads), rising(SIZES, adds)


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
