"""Every promise of a Group, on threads for 1 to 8 ranks and under mpirun for 1 to 5."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        "Group('world.1', rank 0 of 1, ranks in the world [2])"


@st.composite
def calls(draw):
    """A collective with arguments, the same for every rank; data comes from the rank's own generator."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple))
    return {"operation": draw(st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "broadcast"])),
            "shape": shape, "dtype": draw(st.sampled_from(["i4", "i8", "f4", "f8"])),
            "order": draw(st.permutations(range(len(shape)))), "step": draw(st.sampled_from([1, 2, -1])),
            "op": draw(st.sampled_from(["sum", "max", "min"])), "in_place": draw(st.booleans())}


def made_by(rank, call):
    whole = np.random.default_rng(rank).integers(0, 100, call["shape"]).astype(call["dtype"])
    return whole.transpose(call["order"])[::call["step"]]


def compare_with_numpy(group, call):
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[call["op"]]
    x, all_ = made_by(group.rank, call), np.stack([made_by(r, call) for r in range(group.size)])
    whole, last = combine.reduce(all_).astype(x.dtype), group.size - 1
    rows = slice(*comm.bounds(len(x), group.size)[group.rank:group.rank + 2])
    out = x if call["in_place"] else None
    if call["operation"] == "all_reduce":
        got, want = group.all_reduce(x, call["op"], out), whole
    elif call["operation"] == "broadcast":
        got, want = group.broadcast(x, last, out), all_[-1]
    elif call["operation"] == "all_gather":
        got, want = group.all_gather(x), np.concatenate(all_)
    else:
        got, want = group.reduce_scatter(x, call["op"]), whole[rows]
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, want)


@settings(deadline=None)
@given(st.integers(1, 6), st.lists(calls(), min_size=1, max_size=6))
def test_any_program_of_collectives_equals_numpy(size, program):
    run(size, lambda group: [compare_with_numpy(group, call) for call in program])
