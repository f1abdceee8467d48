"""Every promise of a Group, on threads for 1 to 8 ranks and under mpirun for 1 to 5."""

import numpy as np
import pytest

import comm
from tests.comm import checks
from tests.ranks import run


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_on_threads(check, size):
    run(size, check)


@pytest.mark.mpi
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_under_mpirun(size):
    names = [check.__name__ for check in checks.CHECKS]
    assert run(size, checks.every_check, mpi=True) == [names] * size


def test_fact_38b_the_five_line_example():
    def example(group):
        return group.all_reduce([1, 2, 3])

    for result in comm.run(2, example):
        assert result.tolist() == [2, 4, 6]


def test_a_plan_kept_for_a_buffer_does_not_keep_the_buffer():
    def body(group):
        import weakref

        class Watched(np.ndarray):
            pass

        x = np.ones(10_000).view(Watched)
        gone = weakref.ref(x)
        memory = weakref.ref(x.base)
        group.all_reduce(x, out=x)
        del x
        assert gone() is None
        assert memory() is None

    run(2, body)


def test_buffers_that_come_and_go_at_one_address_are_told_apart():
    """A kept plan is found by address, count and dtype: another array at the same place gets its own."""
    def body(group):
        memory = np.zeros(4096, "u1")
        for dtype, count in [("f4", 1000), ("f8", 500), ("i4", 1000), ("f4", 500), ("f4", 1000)] * 3:
            x = memory[:np.dtype(dtype).itemsize * count].view(dtype)
            x[:] = group.rank + 1
            group.all_reduce(x, out=x)
            assert (x == sum(range(1, group.size + 1))).all()
            group.all_reduce(x, "max", out=x)
            assert (x == sum(range(1, group.size + 1))).all()

    run(3, body)


def test_many_different_shapes_do_not_pile_up_plans():
    def body(group):
        for n in range(1, 200):
            assert group.all_reduce(np.ones(n)).sum() == n * group.size
        assert len(group._plans) <= 64

    run(2, body)


def test_a_group_shows_who_it_is():
    assert run(3, lambda group: repr(group.split(group.rank // 2)))[2] == \
        "Group(rank 0 of 1, ranks in the world [2])"
