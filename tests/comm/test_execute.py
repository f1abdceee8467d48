"""Plans run a step at a time, many at once, and again and again."""

import numpy as np
import pytest

from comm.algorithms.ring import ring_all_reduce
from comm.choose import Choice
from comm.device import host
from comm.execute import Plan
from comm.ledger import Ledger
from comm.plans import Plans
from comm.schedule import Recv, Send, bounds
from tests.ranks import run


def flying(group):
    """Three all-reduces in flight, polled in turn until each is done, in any order; twice over."""
    plans = []
    for i in range(3):
        flat = host.empty(1003, "f8")
        plans.append(Plan(group._endpoint, ring_all_reduce, flat, bounds(1003, group.size), tag=20_000 + i))
    for again in range(2):
        for i, plan in enumerate(plans):
            plan.flat[:] = group.rank + i + again
            plan.start()
        left = set(plans)
        while left:
            left -= {plan for plan in left if plan.poll()}
        for i, plan in enumerate(plans):
            assert (plan.flat == sum(r + i + again for r in range(group.size))).all()
    plans[0].flat[:] = 1
    plans[0].start()
    plans[0].wait()
    assert (plans[0].flat == group.size).all()
    assert plans[0].poll()
    plans[0].run()
    assert (plans[0].flat == group.size ** 2).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_plans_fly_together_on_threads(size):
    run(size, flying)


@pytest.mark.mpi
def test_plans_fly_together_under_mpirun():
    run(3, flying, mpi=True)


def star_all_gather(rank, size):
    """Everyone sends to everyone at once: a round of many messages, which no Step can say."""
    others = [r for r in range(size) if r != rank]
    yield [Send(r, np.array([rank])) for r in others] + [Recv(r, np.array([r]), False) for r in others]


def star_reduce(rank, size):
    """All summands come to rank 0 at the same time, each with landing space of its own."""
    every = np.arange(size)
    if rank:
        yield [Send(0, every)]
    else:
        yield [Recv(r, every, True) for r in range(1, size)]


def scattered(rank, size):
    """Chunks that do not follow one another travel as runs: here the even ones, from rank 0 to rank 1."""
    chunks = np.array([0, 2])
    yield [Send(1, chunks)] if rank == 0 else [Recv(0, chunks, False)]


def rounds_of_many_messages(group):
    rank, size = group.rank, group.size
    cuts = bounds(11, size)
    flat = np.full(11, -1.0)
    flat[cuts[rank]:cuts[rank + 1]] = rank
    Plan(group._endpoint, star_all_gather, flat, cuts).run()
    assert flat.tolist() == [float(r) for r in range(size) for _ in range(cuts[r + 1] - cuts[r])]
    flat = np.full(11, 1.0 + rank)
    plan = Plan(group._endpoint, star_reduce, flat, cuts)
    plan.run()
    assert (flat == (sum(range(1, size + 1)) if rank == 0 else 1 + rank)).all()
    assert (plan.messages, plan.sent) == ((0, 0) if rank == 0 else (1, 88))
    pair = group.split(0 if rank < 2 else None)
    if pair is not None:
        flat = np.full(6, float(rank))
        Plan(pair._endpoint, scattered, flat, [0, 1, 3, 6]).run()
        assert flat.tolist() == ([0] * 6 if rank == 0 else [0, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("size", [3, 4])
def test_rounds_may_hold_any_number_of_messages(size):
    run(size, rounds_of_many_messages)


@pytest.mark.mpi
def test_rounds_of_many_messages_under_mpirun():
    run(3, rounds_of_many_messages, mpi=True)


def overlapping(rank, size):
    """Every rank passes two chunks on, one of which is replaced in the same round."""
    right, left = (rank + 1) % size, (rank - 1) % size
    yield [Send(right, np.array([rank, right])), Recv(left, np.array([left, rank]), False)]


def in_segments(group):
    """Long messages are cut, by every rank alike, and a round still happens all at once."""
    rank, size = group.rank, group.size
    for n in (1, 29, 30, 100):
        x = np.arange(n) + float(rank)
        for algorithm in ("ring_all_reduce", "recursive_doubling_all_reduce"):
            np.testing.assert_array_equal(group.all_reduce(x, algorithm=algorithm),
                                          np.arange(n) * size + sum(range(size)))
        np.testing.assert_array_equal(group.broadcast(x, root=size - 1), np.arange(n) + size - 1.0)
        np.testing.assert_array_equal(group.all_gather(group.reduce_scatter(x)), group.all_reduce(x))
        cuts = bounds(n, size)
        flat = np.full(n, float(rank))
        Plan(group._endpoint, overlapping, flat, cuts).run()
        want = np.full(n, float(rank))
        for chunk in ((rank - 1) % size, rank):
            want[cuts[chunk]:cuts[chunk + 1]] = (rank - 1) % size
        np.testing.assert_array_equal(flat, want)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_long_messages_are_cut_into_segments(size, monkeypatch):
    monkeypatch.setattr("comm.bind.SEGMENT", 24)
    run(size, in_segments)


@pytest.mark.parametrize("algorithm", ["ring_all_reduce", "recursive_doubling_all_reduce"])
def test_scratch_is_no_longer_than_a_segment(algorithm, monkeypatch):
    asked = []

    class Counting(type(host)):
        def empty(self, count, dtype):
            asked.append(count)
            return super().empty(count, dtype)

    def body(group):
        Plans(group._endpoint, Ledger()).new("all_reduce", Choice(algorithm), np.ones(10_000), device=Counting())

    monkeypatch.setattr("comm.bind.SEGMENT", 800)
    run(3, body)
    assert len(asked) == 6  # on every rank one for what comes, one for what is added meanwhile
    assert max(asked) == 100


def test_an_empty_chunk_is_no_message():
    def body(group):
        plan = Plan(group._endpoint, ring_all_reduce, np.ones(1), bounds(1, group.size))
        plan.run()
        assert plan.flat[0] == group.size
        return plan.messages

    assert sum(run(4, body)) == 6  # 3 hops to add one chunk up, 3 to pass it round
