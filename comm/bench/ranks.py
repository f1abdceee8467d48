"""What the ranks of a measurement agree on. They use MPI's own collectives: ours are what is being examined."""

import os
import time

import numpy as np

PARTS = 8  # of a batch: after each the ranks agree whether to go on
PATIENCE = 3  # times as long as a batch should take


class Ranks:
    """endpoint: that of the group, over MPI."""

    def __init__(self, endpoint):
        self._endpoint, self.size = endpoint, endpoint.size
        self.barrier = endpoint.native("barrier", np.empty(0, np.float32))
        self._gathers = {}

    def table(self, numbers):
        """(size, n): the n numbers of every rank, as float32."""
        n = len(numbers)
        if n not in self._gathers:
            buffer = np.empty((self.size, n), np.float32)
            self._gathers[n] = buffer, self._endpoint.native("all_gather", buffer)
        buffer, gather = self._gathers[n]
        buffer[self._endpoint.rank] = numbers
        gather()
        return buffer.astype(float)

    def worst(self, number):
        """The largest of all ranks' numbers."""
        return float(self.table([number]).max())

    def clock(self, runs, seconds, batches):
        """[(median, smallest) seconds of one run] of each of `runs`, of the slowest rank.

        They alternate: a batch of one (about `seconds` long), of the next, and so on, `batches` times over, so
        that what disturbs the machine disturbs all of them.
        """
        counts = [self._count(run, seconds) for run in runs]
        times = np.empty((batches, len(runs)))
        for batch in times:
            for i, (run, count) in enumerate(zip(runs, counts)):
                batch[i] = self._batch(run, count, seconds)
        slowest = self.table(times.reshape(-1)).max(axis=0).reshape(times.shape)
        return list(zip(np.median(slowest, axis=0).tolist(), slowest.min(axis=0).tolist()))

    def _batch(self, run, count, seconds):
        """Seconds of one run of about `count`: fewer if they take far longer than `seconds`, as when a core is lost."""
        spent = done = 0
        part = -(-count // PARTS)
        self.barrier()
        while done < count and self.worst(spent) < PATIENCE * seconds:
            start = time.perf_counter()
            for _ in range(part):
                run()
            spent += time.perf_counter() - start
            done += part
        return spent / done

    def _count(self, run, seconds):
        """How often `run` fits into `seconds`, the same on all ranks."""
        run()
        self.barrier()
        start = time.perf_counter()
        run()
        run()
        return max(1, min(4000, int(seconds / max(1e-7, self.worst(time.perf_counter() - start) / 2))))

    def disturbed(self, wait=0.3):
        """How many cores of rank 0's host others keep busy while all ranks sleep; 0 where Linux does not tell."""
        self.barrier()
        before = _busy()
        time.sleep(wait)
        after = _busy()
        self.barrier()
        cores = (after - before) / wait if before is not None else 0.0
        return float(self.table([cores])[0, 0])


def _busy():
    """Seconds that all cores of this host have worked so far."""
    try:
        with open("/proc/stat") as file:
            user, nice, system = map(int, file.readline().split()[1:4])
    except (OSError, ValueError):
        return None
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")
