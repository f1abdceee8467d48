"""What a Group promises, as functions of a group: the tests run them on threads and under mpirun."""

import ml_dtypes
import numpy as np
import pytest

import comm
from comm.algorithms import ALGORITHMS

ALL_REDUCES = [None, *(name for name, a in ALGORITHMS.items() if a.collective == "all_reduce")]
DTYPES = ["f2", "f4", "f8", "i1", "u1", "i2", "i4", "i8", "u8", "c8", ml_dtypes.bfloat16]


def counts(size):
    return sorted({0, 1, size - 1, size, size + 1, 2 * size + 3, 5000})


def numbers(rank, count, dtype="f8"):
    """Small whole numbers that differ between ranks, so that every dtype adds them exactly."""
    return (np.arange(count) % 5 + rank).astype(dtype)


def total(size, count, dtype="f8"):
    return sum(numbers(r, count, "i8") for r in range(size)).astype(dtype)


def check_case_84_every_count_on_every_collective(group):
    """n = 0, 1, p-1, p, p+1 and more, and the caller's array is as it was (case 91)."""
    rank, size = group.rank, group.size
    for n in counts(size):
        x, want, edges = numbers(rank, n), total(size, n), comm.bounds(n, size)
        mine = want[edges[rank]:edges[rank + 1]]
        for algorithm in ALL_REDUCES:
            np.testing.assert_array_equal(group.all_reduce(x, algorithm=algorithm), want)
        np.testing.assert_array_equal(group.reduce_scatter(x), mine)
        np.testing.assert_array_equal(group.all_gather(mine), want)
        np.testing.assert_array_equal(group.broadcast(x, root=size - 1), numbers(size - 1, n))
        np.testing.assert_array_equal(x, numbers(rank, n))


def check_case_87_in_place_by_every_algorithm_and_nothing_is_written_outside_the_array(group):
    for n in counts(group.size):
        for algorithm in ALL_REDUCES:
            around = np.full(n + 32, -7.0)
            inside = around[16:16 + n]
            inside[:] = numbers(group.rank, n)
            group.all_reduce(inside, out=inside, algorithm=algorithm)
            np.testing.assert_array_equal(inside, total(group.size, n))
            assert (around[:16] == -7).all() and (around[16 + n:] == -7).all()


def check_every_dtype_travels(group):
    for dtype in DTYPES:
        x, want = numbers(group.rank, 50, dtype), total(group.size, 50, dtype)
        for algorithm in ALL_REDUCES:
            y = group.all_reduce(x, algorithm=algorithm)
            assert y.dtype == want.dtype
            np.testing.assert_array_equal(y, want)
        for y in (group.all_gather(group.reduce_scatter(x)), group.broadcast(want if group.rank == 0 else x)):
            assert y.dtype == want.dtype
            np.testing.assert_array_equal(y, want)


def check_max_min_and_bool(group):
    x = np.array([group.rank, -group.rank, 3], "f4")
    last = group.size - 1
    np.testing.assert_array_equal(group.all_reduce(x, "max"), [last, 0, 3])
    np.testing.assert_array_equal(group.all_reduce(x, "min"), [0, -last, 3])
    flags = np.array([group.rank == last, True, False])
    np.testing.assert_array_equal(group.all_reduce(flags, "max"), [True, True, False])
    np.testing.assert_array_equal(group.all_reduce(flags, "min"), [last == 0, True, False])
    assert np.isnan(group.all_reduce(np.array(np.nan if group.rank == last else 1.0), "max"))


def check_shapes_come_back(group):
    for shape in [(), (1,), (3, 0), (2, 3, 4), (0,)]:
        x = np.ones(shape, "f4")
        assert group.all_reduce(x).shape == group.broadcast(x).shape == shape
    assert group.all_reduce(2) == 2 * group.size
    assert group.all_reduce(2).dtype == np.asarray(2).dtype
    assert group.all_reduce([[1, 2]]).shape == (1, 2)
    assert group.reduce_scatter(np.ones((group.size + 1, 2, 3))).shape == (1 + (group.rank == 0), 2, 3)
    assert group.all_gather(np.float32(group.rank)).tolist() == list(range(group.size))
    assert group.all_gather(np.ones((2, 0))).shape == (2 * group.size, 0)


def check_case_94_any_strides_as_source_and_as_target(group):
    base = numbers(group.rank, 24).reshape(4, 6)
    want = total(group.size, 24).reshape(4, 6)
    for view in (lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: a[1:3, 2:5]):
        np.testing.assert_array_equal(group.all_reduce(view(base)), view(want))
        target = np.zeros((4, 6))
        assert group.all_reduce(view(base), out=view(target)).base is not None
        np.testing.assert_array_equal(view(target), view(want))
        same = base.copy()
        group.all_reduce(view(same), out=view(same))
        np.testing.assert_array_equal(view(same), view(want))
        np.testing.assert_array_equal(group.broadcast(view(base), root=0), view(numbers(0, 24).reshape(4, 6)))
        np.testing.assert_array_equal(
            group.all_gather(view(base)),
            np.concatenate([view(numbers(r, 24).reshape(4, 6)) for r in range(group.size)]))
        rows = comm.bounds(len(view(base)), group.size)
        np.testing.assert_array_equal(group.reduce_scatter(view(base)),
                                      view(want)[rows[group.rank]:rows[group.rank + 1]])


def check_out_may_overlap_the_input(group):
    memory = numbers(group.rank, 101)
    group.all_reduce(memory[:-1], out=memory[1:])
    np.testing.assert_array_equal(memory[1:], total(group.size, 100))
    memory = numbers(group.rank, 100)
    group.all_reduce(memory, out=memory[::-1])
    np.testing.assert_array_equal(memory[::-1], total(group.size, 100))


def check_all_gather_of_uneven_parts(group):
    for axis in (0, 1, -1):
        def part(rank, axis=axis):
            shape = [2, 3, 4]
            shape[axis] = rank % 3  # some ranks have nothing
            return np.full(shape, rank, "f4")
        want = np.concatenate([part(r) for r in range(group.size)], axis)
        got = group.all_gather(part(group.rank), axis)
        np.testing.assert_array_equal(got, want)
        assert got.flags.c_contiguous


def check_case_90_broadcast_from_every_root(group):
    for root in range(group.size):
        mine = np.full(7, 10.0 + group.rank)
        np.testing.assert_array_equal(group.broadcast(mine, root=root), np.full(7, 10.0 + root))
        np.testing.assert_array_equal(mine, np.full(7, 10.0 + group.rank))
        group.broadcast(mine, root=root, out=mine)
        np.testing.assert_array_equal(mine, np.full(7, 10.0 + root))


def check_case_91_the_input_is_as_it_was(group):
    x = numbers(group.rank, 4000)
    first, second = group.all_reduce(x), group.all_reduce(x)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(x, numbers(group.rank, 4000))
    for y in (first, group.broadcast(x), group.all_gather(x), group.reduce_scatter(x)):
        assert not np.shares_memory(x, y)


def check_results_are_new_each_time(group):
    first = group.all_reduce(np.ones(3))
    second = group.all_reduce(np.full(3, 2.0))
    assert not np.shares_memory(first, second)
    assert first[0] == group.size
    gathered = group.all_gather(np.ones(1))
    group.all_gather(np.zeros(1))
    assert gathered[0] == 1


def check_every_rank_ends_with_the_same_bits(group):
    """By every algorithm but the naive one, in which everyone adds in an order of its own."""
    rng = np.random.default_rng(group.rank)
    for n in (3, 1001, 5000):
        for algorithm in (name for name in ALL_REDUCES if name != "naive_all_reduce"):
            x = rng.standard_normal(n).astype("f4")
            bits = group.all_gather(group.all_reduce(x, algorithm=algorithm)[None].view("u4"))
            assert (bits == bits[0]).all()


def check_zeros_of_both_signs_and_nans_have_the_same_bits_on_every_rank(group):
    """NumPy's maximum(0.0, -0.0), and which of two NaNs survives, depend on the order of the operands."""
    payload = np.array([0x7FC00000 + group.rank], "u4").view("f4")[0]
    x = np.array([0.0 if group.rank % 2 else -0.0, -0.0 if group.rank == 0 else 0.0, payload], "f4")
    for algorithm in (name for name in ALL_REDUCES if name != "naive_all_reduce"):
        for op in ("max", "min", "sum"):
            bits = group.all_gather(group.all_reduce(x, op, algorithm=algorithm)[None].view("u4"))
            assert (bits == bits[0]).all(), (algorithm, op)


def check_float16_is_added_in_float32_and_rounded_once_a_hop(group):
    """1 + 2^-11 is not a float16; the ring's sum is rounded after each addition, and only then."""
    parts = [np.float16(1), np.float16(2.0 ** -11), np.float16(3.14), np.float16(100)] * 2
    got = group.all_reduce(np.array([parts[group.rank]]), algorithm="ring_all_reduce")
    want = parts[0]  # chunk 0 begins at its owner in the first step, rank 0 - 1 + 1 = 0, and goes up
    for r in range(1, group.size):
        want = np.float16(np.float32(parts[r]) + np.float32(want))
    assert got.dtype == np.float16
    assert got[0] == want


def check_fact_37_all_reduce_is_reduce_scatter_then_all_gather(group):
    x = numbers(group.rank, 4321)
    np.testing.assert_array_equal(group.all_gather(group.reduce_scatter(x)), group.all_reduce(x))


def check_messages_keep_their_order_and_their_tags(group):
    rank, size = group.rank, group.size
    right, left = (rank + 1) % size, (rank - 1) % size
    assert group.sendrecv(np.array([rank]), right, left)[0] == left
    ring = np.full(5000, rank)
    group.sendrecv(ring, right, left, out=ring)
    assert (ring == left).all()
    shifted = np.full(5000, rank)
    group.sendrecv(shifted[:-1], right, left, out=shifted[1:])
    assert (shifted[1:] == left).all()
    if size == 1:
        return
    if rank == 0:
        group.send(np.arange(3.0), 1)
        group.send(np.arange(3.0) + 10, 1)
        group.send([5, 6], 1, tag=9)
        group.send(np.zeros(0), 1, tag=3)
        group.send(np.arange(12.0).reshape(3, 4).T, 1)
    if rank == 1:
        assert group.recv(0, shape=3, dtype="f8").tolist() == [0, 1, 2]
        out = np.zeros((6,))[::2]
        assert group.recv(0, out=out) is out
        assert out.tolist() == [10, 11, 12]
        assert group.recv(0, shape=(2,), dtype=np.asarray([5, 6]).dtype, tag=9).tolist() == [5, 6]
        assert group.recv(0, shape=(0,), dtype="f8", tag=3).size == 0
        np.testing.assert_array_equal(group.recv(0, shape=(4, 3), dtype="f8"),
                                      np.arange(12.0).reshape(3, 4).T)


def check_split_makes_groups_that_work(group):
    half = group.split(group.rank % 2)
    assert half.ranks == tuple(r for r in range(group.size) if r % 2 == group.rank % 2)
    assert half.all_reduce(group.rank) == sum(half.ranks)
    backwards = group.split(0, key=-group.rank)
    assert backwards.ranks == tuple(reversed(range(group.size)))
    assert backwards.rank == group.size - 1 - group.rank
    assert backwards.broadcast(np.array(group.rank)) == group.size - 1
    some = group.split(None if group.rank == 0 else 4)
    assert (some is None) == (group.rank == 0)
    if some is not None:
        inner = some.split(0)
        assert inner.ranks == tuple(range(1, group.size))
        assert inner.all_gather(np.array([group.rank])).tolist() == list(inner.ranks)


def check_barrier_waits_for_all(group):
    for _ in range(3):
        group.barrier()


def check_wrong_arguments_are_named(group):
    """Every rank makes the same mistake, and each is told before anything is sent."""
    x = np.ones(3)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    for error, words, call in [
        (ValueError, "op='average'", lambda: group.all_reduce(x, "average")),
        (TypeError, "sum of bool", lambda: group.all_reduce(x > 0)),
        (TypeError, "dtype object", lambda: group.all_reduce(["a", None])),
        (ValueError, "out has shape", lambda: group.all_reduce(x, out=np.ones(4))),
        (ValueError, "float32", lambda: group.all_reduce(x, out=np.ones(3, "f4"))),
        (ValueError, "read-only", lambda: group.all_reduce(x, out=fixed)),
        (TypeError, "out is a list", lambda: group.all_reduce(x, out=[0, 0, 0])),
        (TypeError, "out is a list", lambda: group.recv(0, out=[0])),
        (ValueError, "read-only", lambda: group.recv(0, out=fixed)),
        (ValueError, "shape=-1", lambda: group.recv(0, shape=-1, dtype="f4")),
        (TypeError, "integer", lambda: group.recv(0, shape=1.5, dtype="f4")),
        (ValueError, "expected one of ring", lambda: group.all_reduce(x, algorithm="rnig")),
        (ValueError, "expected one of ring", lambda: group.all_reduce(x, algorithm="ring_all_gather")),
        (TypeError, "can be moved, but not combined", lambda: group.all_reduce(["a", "b"])),
        (TypeError, "integer", lambda: group.split(0.5)),
        (ValueError, f"rank {group.size} is not", lambda: group.broadcast(x, root=group.size)),
        (ValueError, "rank -1 is not", lambda: group.send(x, -1)),
        (ValueError, "tag=-1", lambda: group.send(x, 0, tag=-1)),
        (ValueError, "tag=16384", lambda: group.recv(0, out=x, tag=1 << 14)),
        (ValueError, "shape= and dtype=", lambda: group.recv(0)),
        (ValueError, "axis=1", lambda: group.all_gather(x, axis=1)),
        (ValueError, "single number", lambda: group.reduce_scatter(1.0)),
        (ValueError, "color=-1", lambda: group.split(-1)),
    ]:
        with pytest.raises(error, match=words):
            call()


def check_the_ledger_holds_what_was_sent(group):
    """Ring all-reduce: 2 M (N-1)/N bytes from every rank (F34), to the byte when N divides the count."""
    size, n = group.size, 840 * 8
    group.ledger.clear()
    group.all_reduce(np.ones(n, "f8"), algorithm="ring")
    entry = group.ledger["all_reduce"]
    assert entry.payload == n * 8
    assert entry.sent == 2 * n * 8 * (size - 1) // size
    assert (entry.calls, entry.messages) == (1, 2 * (size - 1))
    assert group.ledger.total.sent == entry.sent
    assert group.ledger["never"].calls == 0


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


def every_check(group):
    """All of them in one launch; returns their names."""
    for check in CHECKS:
        check(group)
    return [check.__name__ for check in CHECKS]
