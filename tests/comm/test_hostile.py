"""What a careless or hostile user may do to a group: each of these was a wrong sum, a hang or a crash once."""

import numpy as np
import pytest

import comm
from tests.ranks import run


def plans_in_flight_together(group):
    """Plans that are started make progress at different times on different ranks: messages must not be mixed up."""
    for algorithm in ("ring", "recursive_doubling"):
        for new in (np.empty, group.empty):
            one, ten = new(1000, "f4"), new(1000, "f4")
            one[:], ten[:] = 1, 10
            first, second = (group.plan("all_reduce", buffer, algorithm=algorithm) for buffer in (one, ten))
            order = [first, second] if group.rank == 0 else [second, first]
            first.start()
            for _ in range(50 * (group.rank == 0)):
                first.poll()
            second.start()
            for plan in order:
                while not plan.poll():
                    group.progress()
            assert (one == group.size).all()
            assert (ten == 10 * group.size).all()


def plans_beside_other_calls(group):
    """A rank that waits for one thing carries on the other, whichever of them is a plan."""
    buffer = np.ones(1000, "f4")
    plan = group.plan("all_reduce", buffer, algorithm="ring")
    handle = group.all_reduce_async(np.ones(1000), algorithm="ring")
    for call in (plan.run, handle.wait) if group.rank == 0 else (handle.wait, plan.run):
        call()
    assert (buffer == group.size).all()
    assert (handle.wait() == group.size).all()
    plan.start()
    calls = plan.wait, lambda: group.all_gather(np.ones(1), algorithm="ring")
    if group._checker is None:  # with it, all ranks begin the same calls in one order, and wait in one
        calls = calls if group.rank == 0 else calls[::-1]
    for call in calls:
        call()
    assert (buffer == group.size ** 2).all()
    assert group.progress() == 0


def a_plan_in_flight_is_not_run_again(group):
    plan = group.plan("all_reduce", np.ones(1000, "f4"), algorithm="ring")
    plan.wait()
    assert plan.poll()
    if group.size > 1:
        plan.start()
        for call in (plan.start, plan.run):
            with pytest.raises(RuntimeError, match="in flight"):
                call()
        plan.wait()
    plan.run()
    assert (plan.buffer == group.size ** (1 + (group.size > 1))).all()


def what_has_no_sum_is_refused_before_anything_is_sent(group):
    """Refused in the middle, only the ranks that were to add would be told."""
    for dtype in ("V5", "S3", "U2", [("a", "i4")]):
        for op in ("sum", "mean", "max", "min", "prod"):
            with pytest.raises(TypeError, match="can be moved, but not combined"):
                group.all_reduce(np.zeros(5, dtype), op)
    days = np.array(["2020-01-01", "2026-12-01"], "M8[D]")
    assert group.all_reduce(days, "max").tolist() == days.tolist()
    for op in ("sum", "mean", "prod"):
        with pytest.raises(TypeError, match="can be moved, but not combined"):
            group.all_reduce(days, op)
    for x in (np.zeros(3, "V0"), np.zeros(3, [])):
        with pytest.raises(TypeError, match="no bytes"):
            group.broadcast(x)


def memory_that_cannot_be_is_refused(group):
    for shape, dtype, error in [(3, object, TypeError), (3, "V0", TypeError), (2.5, "f4", TypeError),
                                (-1, "f4", ValueError), ((2, -3), "f4", ValueError)]:
        with pytest.raises(error, match="expected|integer"):
            group.empty(shape, dtype)
    assert group.empty([np.int64(2), 3]).shape == (2, 3)
    with pytest.raises(TypeError, match="buffer is a list"):
        group.plan("all_reduce", [1, 2])


def colors_and_keys_may_be_any_integers(group):
    far = group.split(1 << 40, key=-(group.rank << 40))
    assert far.ranks == tuple(reversed(range(group.size)))
    assert far.all_gather(group.rank).tolist() == list(far.ranks)
    for arguments in ((1 << 63,), (0, 1 << 70)):
        with pytest.raises(ValueError, match="64 bits"):
            group.split(*arguments)


CHECKS = [plans_in_flight_together, plans_beside_other_calls, a_plan_in_flight_is_not_run_again,
          what_has_no_sum_is_refused_before_anything_is_sent, memory_that_cannot_be_is_refused,
          colors_and_keys_may_be_any_integers]


def every_check(group):
    for check in CHECKS:
        check(group)
    return [check.__name__ for check in CHECKS]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_threads(check, size):
    run(size, check)


def a_handle(group):
    if group.rank == 0:
        group.all_reduce_async(np.ones(5)).wait()


def a_plan(group):
    plan = group.plan("all_reduce", np.ones(5))
    if group.rank == 0:
        plan.start()
        plan.wait()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("only_rank_0_waits_for", [a_handle, a_plan])
def test_a_rank_is_told_what_it_waits_for_in_vain(only_rank_0_waits_for):
    with pytest.raises(comm.Deadlock, match="rank 0 waits in .*all_reduce"):
        comm.run(2, only_rank_0_waits_for, checked=False)


@pytest.mark.mpi
@pytest.mark.parametrize("nodes", [None, (0, 0, 1)], ids=["one node", "two nodes"])
def test_under_mpirun(nodes):
    assert run(3, every_check, mpi=True, nodes=nodes) == [[check.__name__ for check in CHECKS]] * 3
