"""A barrier of the ranks of a node by counters in their shared memory.

MPI's barriers do not do: a blocking one does not match the non-blocking one of a rank that has something in flight,
and non-blocking ones are slow. Every rank has a counter that only it writes and all read, on a cache line of its own.
Whoever comes adds one to his, and waits until no other counter is behind it.
"""

import os
import platform
import time

MEETINGS = 64  # in one block of shared memory
SPINS = 200  # looks at the counters, some 10 us, before a rank that has a core of its own lets others have it
ORDERED = platform.machine() in ("x86_64", "AMD64", "i686")  # are stores, and loads, seen in their order?


class Meeting:
    """counters: {rank: memoryview of one 64-bit integer}. mine: the rank here. fence(): what orders memory accesses.

    begin() counts this rank in and returns an Arrival; meet() waits for the others as well. Nobody begins again
    before the others have come.
    """

    def __init__(self, counters, mine, fence):
        self._mine = counters[mine]
        self._others = [counter for rank, counter in sorted(counters.items()) if rank != mine]
        self._round = self._mine[0]
        self._fence = None if ORDERED else fence
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._spins = SPINS if len(counters) <= cores else 0

    def _come(self):
        if self._fence:
            self._fence()  # what was written before must be seen by whoever sees the counter
        self._round += 1
        self._mine[0] = self._round
        return self._round

    def begin(self):
        return Arrival(self, self._come())

    def meet(self):
        number, pause = self._come(), getattr(os, "sched_yield", lambda: time.sleep(0))
        for other in self._others:
            spins = self._spins
            while other[0] < number:
                if spins:
                    spins -= 1
                else:
                    pause()
        if self._fence:
            self._fence()

    def all_here(self, number):
        here = all(other[0] >= number for other in self._others)
        if here and self._fence:
            self._fence()
        return here


class Arrival:
    """A rank that has come to a meeting: test() says whether all have, wait() waits for them."""

    def __init__(self, meeting, number):
        self._meeting, self._number = meeting, number

    def test(self):
        return self._meeting.all_here(self._number)

    def wait(self):
        while not self.test():
            time.sleep(0)
