"""One run: every collective, size and contender, in turn; what was promised, and how long it took."""

from typing import NamedTuple

from comm.bench.contenders import Arena, Field
from comm.bench.data import Data
from comm.bench.ranks import Ranks
from comm.pricing.price import BUS_FACTORS


class Effort(NamedTuple):
    """How long to measure."""

    seconds: float  # of one batch of one contender
    batches: int


QUICK, FULL = Effort(0.01, 5), Effort(0.06, 7)


class Result(NamedTuple):
    """What one contender did. Rates in bytes per second; ratio: its time in MPI's; sent: by the busiest rank."""

    collective: str
    nbytes: int
    algorithm: str
    transport: str
    seconds: float  # median
    least: float
    algbw: float
    busbw: float
    sent: float | None
    ratio: float
    chosen: str
    wrong: int  # elements, on all ranks together


def sweep(group, collectives, sizes, asked=None, effort=QUICK, gloo=None, say=print):
    """Yields a Result for each contender; every rank of the group must call it, over MPI.

    sizes: bytes M; those that cannot be cut evenly are made so. asked: names of algorithms, see Field. gloo:
    None, or a Gloo that takes part. say(text): what is being done. All ranks yield the same.
    """
    ranks = Ranks(group._endpoint)
    arena = Arena(group, max([*sizes, 4 * group.size]))
    for kind in collectives:
        for nbytes in [0] if kind == "barrier" else _even(sizes, kind, group.size):
            data = Data(kind, group.rank, group.size, nbytes // 4)
            field = Field(group, data, arena, asked)
            racers = field.contenders()
            other = gloo and gloo.contender(data, arena)
            racers += [other] if other else []
            slow = f"; left out as slow: {', '.join(field.slow)}" if field.slow else ""
            say(f"{kind}, {nbytes:,} bytes: {len(racers)} contenders{slow}")
            yield from _race(ranks, data, racers, effort)


def _even(sizes, kind, size):
    """The sizes in bytes that are whole numbers of float32 and, where the ranks' parts are, of those for each."""
    step = 4 if kind in ("all_reduce", "reduce", "broadcast") else 4 * size
    return sorted({max(step, -(-nbytes // step) * step) for nbytes in sizes})


def _race(ranks, data, field, effort):
    """Results of the contenders of one collective and size: checked, timed, and checked again."""
    wrong = [_check(one, data) for one in field]
    for one in field:
        one.zero()
    times = ranks.clock([one.run for one in field], *effort)
    wrong = [before + _check(one, data) for before, one in zip(wrong, field)]
    counts, sent = ranks.table(wrong).sum(axis=0), ranks.table([one.sent or 0 for one in field]).max(axis=0)
    nbytes, factor = 4 * data.count, BUS_FACTORS[data.collective](data.size)
    for one, (seconds, least), bad, most in zip(field, times, counts, sent):
        rate = nbytes / seconds
        yield Result(data.collective, nbytes, one.name, one.transport, seconds, least, rate, rate * factor,
                     None if one.sent is None else most, seconds / times[0][0], one.chosen, int(bad))


def _check(contender, data):
    """How many elements of this rank are wrong after one run."""
    contender.fill()
    contender.run()
    return data.wrong(contender.result())
