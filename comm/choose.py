"""Which algorithm to use for which message: the fastest by the model, the same on all ranks.

A `Chooser` holds what one group costs (comm/predict.py). Nothing that only one rank knows enters. The first time
that processes choose, they get what rank 0 finds in its cache for this set of hosts ($MINIGPT_CACHE/comm, or the
user's own cache folder), or measure it together in a fraction of a second and keep it (comm/costs.py). Ranks that
are threads, and checked runs (comm/check.py), use fixed numbers: they are to be alike, not fast.

Another algorithm adds in another order, so sums of floats may differ in their last bits when the costs do: name the
algorithm where runs on different days or machines must agree to the bit. `python -m comm why` prints the reckoning,
and measures anew with --measure.
"""

from typing import NamedTuple

from comm.check import Watched
from comm.costs import costs_of
from comm.predict import DEFAULT, best_row, parameters, table
from comm.profile import MESSAGES, STAGED, WINDOW

REMEMBERED = 4096  # sizes
MOST_STAGED = 64 << 20  # bytes: as much shared memory as one call may make the group hold


class Choice(NamedTuple):
    """A name of comm.algorithms, the options of its rule, and whether ranks of a node meet in shared memory."""

    algorithm: str
    options: dict = {}
    window: bool = False


class Chooser:
    """Chooses for the ranks of one endpoint. model: a Model that all ranks give alike; None: see above."""

    def __init__(self, endpoint, model=None):
        self._endpoint, self._model = endpoint, model
        self.size, self.nodes = endpoint.size, tuple(endpoint.nodes)
        self._picked, self._by_class = {}, {}

    @property
    def model(self):
        """The Model. The first time, every rank of the group must ask."""
        if self._model is None:
            measurable = hasattr(self._endpoint, "place") and not isinstance(self._endpoint, Watched)
            self._model = costs_of(self._endpoint) if measurable and self.size > 1 else DEFAULT
        return self._model

    def pick(self, collective, nbytes, window=False, placed=False):
        """The fastest Choice for M = nbytes; every rank asks for the same.

        window: may ranks of a node meet in shared memory? placed: the arrays already lie in it.
        """
        return self._remembered(self._of_class, collective, nbytes, window, placed)

    def named(self, name, nbytes, window=False):
        """The Choice of the algorithm `name` with the options that suit M = nbytes."""
        return self._remembered(self._of_name, name, nbytes, window)

    def _remembered(self, choose, *key):
        """choose(*key), looked up the second time. No name is both a collective's and an algorithm's."""
        choice = self._picked.get(key)
        if choice is None:
            if len(self._picked) >= REMEMBERED:
                self._picked.clear()
            choice = self._picked[key] = choose(*key)
        return choice

    def _of_class(self, collective, nbytes, window, placed):
        """Sizes around the same power of two share a choice."""
        near = ((2 * int(nbytes) ** 2).bit_length() - 1) // 2 if nbytes else 0
        alone = len(set(self.nodes)) == self.size  # nobody shares a node
        window = window and not alone and (placed or nbytes <= MOST_STAGED)
        key = collective, near, window, placed
        if key not in self._by_class:
            transports = [MESSAGES, WINDOW if placed else STAGED] if window else [MESSAGES]
            best = table(collective, self.size, 1 << near, self.model, transports, self.nodes)[0]
            self._by_class[key] = Choice(best.algorithm, best.options, best.transport != MESSAGES)
        return self._by_class[key]

    def _of_name(self, name, nbytes, window):
        takes = parameters(name)
        if "segments" in takes:
            return Choice(name, best_row(name, self.size, nbytes, self.model, nodes=self.nodes).options, window)
        return Choice(name, {"nodes": self.nodes} if "nodes" in takes else {}, window)
