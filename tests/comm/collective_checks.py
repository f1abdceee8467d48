"""What every collective promises by every algorithm, as functions of a group: see tests/comm/checks.py."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import comm
from comm.algorithms import ALGORITHMS
from comm.choose import Choice
from tests.comm.checks import counts, numbers, total


def named(collective):
    """Every algorithm of a collective, and the one that is chosen (None)."""
    return [None, *(name for name, algorithm in ALGORITHMS.items() if algorithm.collective == collective)]


def rows(x, group, rank=None):
    """The part of x that belongs to a rank."""
    rank = group.rank if rank is None else rank
    edges = comm.bounds(len(x), group.size)
    return x[edges[rank]:edges[rank + 1]]


def equal(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def check_case_84_and_86_reduce_and_broadcast_by_every_algorithm_from_every_root(group):
    for n, root in itertools.product(counts(group.size), {0, group.size // 2, group.size - 1}):
        x = numbers(group.rank, n)
        for algorithm in named("reduce"):
            got = group.reduce(x, root=root, algorithm=algorithm)
            if group.rank == root:
                equal(got, total(group.size, n))
            else:
                assert got is None
        for algorithm in named("broadcast"):
            equal(group.broadcast(x, root=root, algorithm=algorithm), numbers(root, n))
        equal(x, numbers(group.rank, n))


def check_case_88_all_gather_and_reduce_scatter_by_every_algorithm(group):
    for n in counts(group.size):
        want = total(group.size, n)
        for algorithm in named("reduce_scatter"):
            equal(group.reduce_scatter(numbers(group.rank, n), algorithm=algorithm), rows(want, group))
        for algorithm in named("all_gather"):
            equal(group.all_gather(rows(want, group), algorithm=algorithm), want)


def check_gather_is_undone_by_scatter(group):
    for n, root in itertools.product(counts(group.size), {0, group.size - 1}):
        want = np.arange(3 * n, dtype="i4").reshape(n, 3)
        for algorithm in named("gather"):
            got = group.gather(rows(want, group), root, algorithm)
            if group.rank == root:
                equal(got, want)
            else:
                assert got is None
        for algorithm in named("scatter"):
            equal(group.scatter(want if group.rank == root else None, root, algorithm), rows(want, group))


def check_what_cannot_be_scattered_is_refused_on_all_ranks(group):
    for bad, words in ((5.0, "single number"), (["a", None], "dtype object")):
        with pytest.raises(ValueError, match=words):
            group.scatter(bad if group.rank == 0 else None)
    group.barrier()


def check_fact_38_all_to_all_is_the_transpose(group):
    """Three friends, three presents each: whoever they are from, they end with whom they are for."""
    me, size = group.rank, group.size
    presents = np.array([[me, friend] for friend in range(size)])
    for algorithm in named("all_to_all"):
        equal(group.all_to_all(presents, algorithm), np.array([[friend, me] for friend in range(size)]))
    for n in counts(size):
        want = np.concatenate([rows(numbers(source, n), group) for source in range(size)])
        for algorithm in named("all_to_all"):
            equal(group.all_to_all(numbers(me, n), algorithm), want)


def check_all_to_all_v_takes_any_numbers_of_rows(group):
    me, size = group.rank, group.size

    def block(source, to):
        return np.full(((source * 3 + to * 2) % 4, 2), 10 * source + to, "f4")

    mine = [block(me, to) for to in range(size)]
    for algorithm in named("all_to_all"):
        got, came = group.all_to_all_v(np.concatenate(mine), [len(part) for part in mine], algorithm)
        equal(got, np.concatenate([block(source, me) for source in range(size)]))
        assert came.tolist() == [len(block(source, me)) for source in range(size)]
    nobody = np.zeros((0, 2), "f4")
    equal(group.all_to_all_v(nobody, [0] * size)[0], nobody)
    everything, came = group.all_to_all_v(np.ones((5, 2), "f4"), [5] + [0] * (size - 1))
    assert len(everything) == (5 * size if me == 0 else 0)
    with pytest.raises(ValueError, match="with that sum"):
        group.all_to_all_v(np.ones((5, 2)), [4] + [0] * (size - 1))


def check_mean_and_product(group):
    x = np.array([2.0, 1.0, group.rank], "f4")
    equal(group.all_reduce(x, "prod"), np.array([2.0 ** group.size, 1, 0], "f4"))
    for algorithm in named("all_reduce"):
        equal(group.all_reduce(x, "mean", algorithm=algorithm), np.array([2, 1, (group.size - 1) / 2], "f4"))
    for dtype in ("f2", ml_dtypes.bfloat16):
        equal(group.all_reduce(np.full(3, 2.0).astype(dtype), "mean"), np.full(3, 2.0).astype(dtype))
        equal(group.reduce_scatter(np.full(group.size, 2.0).astype(dtype), "mean"), np.full(1, 2.0).astype(dtype))
    reduced = group.reduce(x, op="mean")
    if group.rank == 0:
        equal(reduced, np.array([2, 1, (group.size - 1) / 2], "f4"))
    with pytest.raises(TypeError, match="convert to floats"):
        group.all_reduce(np.array([1, 2]), "mean")
    with pytest.raises(TypeError, match="prod of bool"):
        group.all_reduce(np.array([True]), "prod")


def check_many_in_flight_end_in_any_order(group):
    """Ranks wait for different ones first, and call blocking collectives in between, here and in a part."""
    me, size = group.rank, group.size
    part = group.split(me % 2)
    xs = [numbers(me, 1000 + i) for i in range(4)]
    handles = [group.all_reduce_async(x) for x in xs]
    handles += [part.all_reduce_async(np.array([me]))]
    group.barrier()
    assert part.all_reduce(1) == part.size
    order = list(range(5))
    for i in order[me % 5:] + order[:me % 5]:
        if i == 4:
            equal(handles[4].wait(), np.array([sum(part.ranks)]))
        else:
            equal(handles[i].wait(), total(size, 1000 + i))
        assert handles[i].done
        assert handles[i].test()
    assert group.progress() == 0


def check_every_collective_flies(group):
    size, n = group.size, 3 * group.size + 1
    x, out = numbers(group.rank, n), np.zeros(n)
    handles = [group.all_reduce_async(x, "max", out=out), group.reduce_async(x, root=size - 1),
               group.broadcast_async(x, root=size - 1), group.all_gather_async(rows(total(size, n), group)),
               group.reduce_scatter_async(x), group.all_to_all_async(x)]
    while group.progress():
        pass
    highest, reduced, told, gathered, scattered, exchanged = [handle.wait() for handle in handles]
    assert highest is out
    equal(out, np.max([numbers(r, n) for r in range(size)], axis=0))
    assert (reduced is None) == (group.rank != size - 1)
    equal(told, numbers(size - 1, n))
    equal(gathered, total(size, n))
    equal(scattered, rows(total(size, n), group))
    equal(exchanged, np.concatenate([rows(numbers(r, n), group) for r in range(size)]))


def check_plans_run_again_and_again_on_private_and_on_shared_memory(group):
    size, n = group.size, 12 * group.size + 5
    for make in (np.empty, group.empty):
        buffer, out = make(n, np.float64), make(n, np.float64)
        plans = [group.plan("all_reduce", buffer), group.plan("all_reduce", buffer, out=out)]
        for start in range(3):
            for plan in plans:
                buffer[:] = numbers(group.rank, n) + start
                plan.run() if start != 1 else (plan.start(), plan.wait())
                equal(plan.result, total(size, n) + start * size)
                group.barrier()
        assert plans[0].result is buffer
        assert plans[1].result is out


def check_plans_of_every_operation(group):
    me, size, n = group.rank, group.size, 6 * group.size
    for make in (np.empty, group.empty):
        buffer, out = make((n, 2), np.float32), make((n, 2), np.float32)
        mine = np.stack([numbers(me, n, "f4")] * 2, axis=1)
        sums = np.stack([total(size, n, "f4")] * 2, axis=1)
        for operation, want in [
            ("all_reduce", sums), ("reduce", sums if me == size - 1 else None), ("reduce_scatter", rows(sums, group)),
            ("broadcast", np.stack([numbers(size - 1, n, "f4")] * 2, axis=1)), ("all_gather", sums),
            ("all_to_all", np.concatenate([rows(np.stack([numbers(r, n, "f4")] * 2, 1), group) for r in range(size)])),
        ]:
            plan = group.plan(operation, buffer, root=size - 1, out=out if operation == "all_to_all" else None)
            for _ in range(2):
                buffer[...] = mine
                if operation == "all_gather":
                    rows(buffer, group)[...] = rows(sums, group)
                plan.run()
                group.barrier()
                if want is None:
                    assert plan.result is None
                else:
                    equal(plan.result, want)
            assert plan.sent == sum(nbytes for _, nbytes in plan.peers.values())


def check_plans_refuse_what_they_cannot_work_on(group):
    x = np.zeros((2 * group.size, 4))
    for words, call in [
        ("operation='gather'", lambda: group.plan("gather", x)),
        ("has strides", lambda: group.plan("all_reduce", x[:, ::2])),
        ("pass out=", lambda: group.plan("all_to_all", x)),
        ("pass no out=", lambda: group.plan("all_gather", x, out=x.copy())),
        ("overlap", lambda: group.plan("all_reduce", x, out=x)),
        ("out has shape", lambda: group.plan("all_reduce", x, out=x[0])),
        ("op='average'", lambda: group.plan("all_reduce", x, op="average")),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def check_case_87_every_algorithm_on_shared_memory(group):
    """In the window itself, and staged by way of it; what does not fit there falls back to messages."""
    size, n, used = group.size, 5 * group.size + 3, 0
    around = group.empty(n + 32, "f8")
    around[:] = -7
    shared = around[16:16 + n]
    for name, algorithm in ALGORITHMS.items():
        if algorithm.collective not in ("all_reduce", "broadcast", "reduce"):
            continue
        for options in algorithm.variants(size):
            want = numbers(0, n) if algorithm.collective == "broadcast" else total(size, n)
            private, out = numbers(group.rank, n), np.zeros(n)
            block = group._plans.windows.block(0)
            promised = () if algorithm.collective == "reduce" and group.rank else None
            inside = group._plans.new("x", Choice(name, options, True), shared, block=block, kept=True)
            staged = group._plans.new("x", Choice(name, options, True), out, source=private, promised=promised)
            used += inside.window + staged.window
            shared[:] = private
            inside.run()
            staged.run()
            group.barrier()
            if promised is None:
                equal(shared, want)
                equal(out, want)
            equal(private, numbers(group.rank, n))
            assert (around[:16] == -7).all() and (around[16 + n:] == -7).all()
            group.barrier()
    assert used > 0 or size == 1


def check_shared_memory_is_aligned_and_given_back(group):
    first = group.empty((3, 5), "f4")
    assert first.shape == (3, 5)
    assert first.ctypes.data % 64 == 0
    view = first[1:]
    del first
    other = group.empty(0)
    assert len(group._plans.windows._blocks) == 2
    assert other.size == 0
    del view
    group.empty(7, "i8")
    assert len(group._plans.windows._blocks) == 2
    if group.rank == 0:
        del other
    last = group.empty(1)
    assert len(group._plans.windows._blocks) == (1 if group.size == 1 else 2)  # the others still hold theirs
    assert last.size == 1


def check_long_arrays_are_staged_and_staging_grows(group):
    """Plans kept for a buffer that was staged in a smaller block are made again."""
    for n in (40_000, 600_000, 40_000):
        x = numbers(group.rank, n, "f4")
        for _ in range(2):
            equal(group.all_reduce(x), total(group.size, n, "f4"))
            y = x.copy()
            group.all_reduce(y, out=y)
            equal(y, total(group.size, n, "f4"))


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


def every_check(group):
    """All of them in one launch; returns their names."""
    for check in CHECKS:
        check(group)
    return [check.__name__ for check in CHECKS]
