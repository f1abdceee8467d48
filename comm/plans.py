"""The plans of one group: new ones, and those kept for buffers that are used again and again."""

from collections import OrderedDict
from functools import lru_cache
from itertools import pairwise

from comm.algorithms import ALGORITHMS
from comm.device import host
from comm.execute import COLLECTIVE_TAG, Plan
from comm.schedule import ROOTED, even_cuts, everyone, rounds
from comm.shared import Window, Windows, fits, offsets

TAGS = (1 << 12) - 2  # collectives in flight at once, and plans of the caller's


class Plans:
    """Makes plans that count in `ledger`.

    operation: whose call it is ("all_reduce"). choice: a name of the registry, its options and whether ranks
    of a node meet in shared memory (comm.choose.Choice). all_agree: see comm.shared.Windows. Every rank of the
    group makes the same plans in the same order.
    """

    def __init__(self, endpoint, ledger, all_agree=list, limit=64):
        self._endpoint, self._ledger, self._limit = endpoint, ledger, limit
        self._kept = OrderedDict()
        self._scratch = host.empty(0, "u1")
        self._in_flight = self._agreed = 0
        self.windows = Windows(endpoint, all_agree)

    def new(self, operation, choice, flat, cuts=None, *, root=0, flying=False, block=None, agreed=False, **how):
        """A plan. cuts: None for even chunks. flying: it gets messages of its own. The rest: see Plan.

        block: the shared memory that all its arrays lie in. agreed: all ranks make it at the same time, and it gets
        messages of its own; else some may have kept one.
        """
        endpoint, (name, options) = self._endpoint, choice[:2]
        algorithm = ALGORITHMS[name]
        if algorithm.collective in ROOTED:
            options = {**options, "root": root}
        if cuts is None:
            cuts = even_cuts(flat.size, algorithm.chunks(endpoint.size, **choice[1]), flat.dtype.itemsize)
        if flying:
            self._in_flight += 1
            how["tag"] = COLLECTIVE_TAG + 2 + self._in_flight % TAGS
        elif agreed:  # it may be started too, and be in flight for longer than any number of others
            self._agreed += 1
            how["tag"] = COLLECTIVE_TAG + 2 + TAGS + self._agreed % TAGS
        key = tuple(options.items())
        window = self._window(name, key, block, flat, how, agreed) if choice.window and endpoint.size > 1 else None
        plan = Plan(endpoint, lambda rank, size: _of_one(name, rank, size, key), flat, cuts, window=window, **how)
        longest = max((b - a for a, b in pairwise([*cuts, *how.get("out_cuts", ())])), default=0)
        formula = algorithm.sent(endpoint.size, **choice[1]) * longest * flat.dtype.itemsize
        plan.tally = self._ledger.tally(operation, name, flat.nbytes, formula, plan.peers)
        plan.algorithm, plan.window = name, window is not None
        return plan

    def kept(self, key, make):
        """The plan of this key: make() makes it the first time, and when the block to stage in is another one."""
        key = key, self.windows.version
        plan = self._kept.get(key)
        if plan is None:
            plan = make()
            self._kept[key[0], self.windows.version] = plan
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return plan

    def scratch(self, count, dtype):
        """Host memory for one blocking plan, the same again and again: new pages are slow."""
        nbytes = count * dtype.itemsize
        if self._scratch.nbytes < nbytes:
            self._scratch = host.empty(nbytes, "u1")
        return self._scratch[:nbytes].view(dtype)

    def _window(self, name, options, block, flat, how, agreed):
        """Where ranks of a node meet; None if the rounds would overwrite what is still read, or memory is short."""
        size, staged = self._endpoint.size, block is None
        if not _fits(name, size, options, staged, len(set(self._endpoint.nodes)) > 1):
            return None
        arrays = [array for array in (flat, how.get("out")) if array is not None]
        block = self.windows.staging(offsets(arrays)[-1]) if staged else block
        return block and Window(self._endpoint, _of_all(name, size, options), block, arrays, staged, agreed)

    def __len__(self):
        return len(self._kept)


@lru_cache(512)
def _of_one(name, rank, size, options):
    """The rounds of one rank: every rank's plans, whatever they work on, have them in common."""
    return list(rounds(ALGORITHMS[name].rule, rank, size, **dict(options)))


@lru_cache(64)
def _of_all(name, size, options):
    return list(everyone(ALGORITHMS[name].rule, size, **dict(options)))


@lru_cache(512)
def _fits(name, size, options, staged, several):
    return fits(_of_all(name, size, options), staged, several)
