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
SIZES = (4, 1 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 4 << 20)  # bytes
TIMES = (40, 30, 20, 12, 8, 4, 2)  # how often in a batch
BATCHES = 5
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
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        exchange = self.curve(lambda out, into: self.calls([(out, right)], [(into, left)]))
        send = self.curve(self.there_and_back)
        peers = min(3, self.size - 1)
        many = self.calls([(self.mine[:1], (self.rank + k) % self.size) for k in range(1, peers + 1)],
                          [(self.other[k:k + 1], (self.rank - k) % self.size) for k in range(1, peers + 1)])
        post = self.time(many, TIMES[0]) / peers if peers == 1 else (
            (self.time(many, TIMES[0]) - exchange.seconds[0]) / (peers - 1))
        combine = self.together(lambda n: [partial(np.add, self.mine[:n], self.other[:n], out=self.mine[:n])],
                                lambda n: [], self.calls([(self.mine[:1], right)], [(self.other[:1], left)]))
        return sane(Model(exchange, send, post, combine, *self.shared(), "measured"))

    def calls(self, sends, receives):
        calls = self.endpoint.exchange(sends, receives, TAG, kept=True)
        self.kept.append(calls)  # its requests are freed with the list
        return calls

    def there_and_back(self, out, into):
        """Ranks 2i and 2i + 1 play ping-pong; the last of an odd number looks on."""
        partner = self.rank ^ 1
        if partner >= self.size:
            return []
        ping, pong = self.calls([(out, partner)], []), self.calls([], [(into, partner)])
        return [*ping, *pong] if self.rank < partner else [*pong, *ping]

    def time(self, calls, times):
        """Seconds of one run of `calls`."""
        best = MOST
        for _ in range(BATCHES):
            start = time.perf_counter()
            for _ in range(times):
                for call in calls:
                    call()
            best = min(best, (time.perf_counter() - start) / times)
        return self.worst(best)

    def curve(self, make):
        """The Curve of messages; make(out, into) binds the calls for two buffers of one length."""
        seconds = []
        for nbytes, times in zip(SIZES, TIMES):
            calls = make(self.mine[:nbytes // 4], self.other[:nbytes // 4])
            seconds.append(self.time(calls, times))
            if seconds[-1] > PATIENCE and len(seconds) > 1:
                break
        if make == self.there_and_back:
            seconds = [one / 2 for one in seconds]
        return rising(SIZES, seconds)

    def together(self, make, before, meet):
        """The Curve of what every rank does by itself, all at once, between two meetings.

        make(n): the calls for n elements; before(n): what makes the data as warm as it will be.
        """
        seconds, sizes = [], SIZES[1:]
        for nbytes, times in zip(sizes, TIMES[1:]):
            n = nbytes // 4
            first = before(n)
            whole = self.time([*first, *meet, *make(n), *meet], times)
            seconds.append(max(whole - self.time([*first, *meet, *meet], times), LEAST))
        return rising(sizes, seconds)

    def shared(self):
        """(meet, read, add) in the memory that the ranks of a node share; the defaults if nobody has company."""
        nodes = self.endpoint.nodes
        if len(set(nodes)) == self.size:
            return DEFAULT.meet, DEFAULT.read, DEFAULT.add
        pieces, meet, _, free = self.endpoint.share(SIZES[-1])
        mates = sorted(pieces)
        mate = mates[(mates.index(self.rank) + 1) % len(mates)]
        costs = self.beside(*(pieces[rank].view(np.float32) for rank in (self.rank, mate)), [meet])
        pieces.clear()  # no view may be left when the memory goes
        free()
        return costs

    def beside(self, shown, theirs, meet):
        """(meet, read, add) with arrays in shared memory: what this rank writes, and what it takes."""
        def write(n):
            return [partial(shown[:n].fill, 0)]

        write(shown.size)[0]()
        read = self.together(lambda n: [partial(np.copyto, self.mine[:n], theirs[:n])], write, meet)
        add = self.together(lambda n: [partial(np.add, self.mine[:n], theirs[:n], out=self.mine[:n])], write, meet)
        return self.time(meet, TIMES[0]), read, add


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
