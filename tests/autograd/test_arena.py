"""The arena: constant memory, and never a block that somebody can still see."""

import gc

import numpy as np
import pytest

from autograd import Tensor, arena, backend, ops
from autograd.rank import rank

pytestmark = pytest.mark.skipif(backend.device != "cpu", reason="the arena holds host memory")

SHAPE = 64, 512             # 128 KiB: large enough for the arena


@pytest.fixture(autouse=True)
def fresh_arena():
    before, rank.arena = rank.arena, None
    yield
    rank.arena = before


def holders(x):
    """Everything by which a user can hold on to an array without holding the array."""
    view, again = x[3:5], np.asarray(x)
    return {"the array": x, "a view": view, "a view of a view": view[:, ::2], "a reshaped view": x.reshape(-1)[7:9],
            "a transposed view": x.T, "another dtype": x.view(np.uint8), "asarray": again,
            "a memoryview": memoryview(x),
            "an array of a memoryview": np.asarray(memoryview(x)[2:4]), "a tuple": (x,), "a closure": lambda: x,
            "an iterator": iter(x), "a generator": walk(x), "a broadcast": np.broadcast_to(x, (2, *x.shape)),
            "a Tensor": Tensor(x), "a detached view": Tensor(x)[0].detach(), "flat": x.flat,
            "frombuffer": np.frombuffer(x.data.cast("B"), np.float32), "an exception": raised(x),
            "ctypes": x.ctypes, "a diagonal": np.diagonal(x),
            "strides": np.lib.stride_tricks.as_strided(x, (2, 2))}


def walk(x):
    """A generator whose frame holds x."""
    yield
    yield x


def raised(x):
    """An exception whose traceback holds the frame that holds x."""
    try:
        raise ValueError(len(x))
    except ValueError as error:
        return error


NAMES = list(holders(np.zeros(SHAPE, np.float32)))


@pytest.mark.parametrize("name", NAMES)
def test_a_block_is_never_handed_out_while_anything_refers_to_it(name):
    x = arena.empty(SHAPE)
    start = x.ctypes.data
    held = holders(x)[name]
    if name == "a generator":
        next(held)
    del x
    others = [arena.empty(SHAPE) for _ in range(4)]
    assert start not in [o.ctypes.data for o in others]
    del held
    gc.collect()
    more = [arena.empty(SHAPE) for _ in range(3)]
    assert start in [o.ctypes.data for o in more]


def test_a_free_block_is_handed_out_again():
    x = arena.empty(SHAPE)
    start = x.ctypes.data
    del x
    assert arena.empty(SHAPE).ctypes.data == start
    resident = arena.resident()
    for _ in range(50):
        arena.empty(SHAPE)
    assert arena.resident() == resident


@pytest.mark.parametrize("shape, dtype", [((0,), "f4"), ((), "f4"), ((3, 5), "f8"), ((129, 257), "f4"),
                                          ((1 << 20,), "u1"), ((50000,), "f8")])
def test_arrays_are_aligned_writable_and_apart(shape, dtype):
    a, b = (arena.empty(shape, np.dtype(dtype)) for _ in range(2))
    for x in (a, b):
        assert x.shape == shape and x.dtype == dtype and x.flags.c_contiguous and x.flags.writeable
        assert x.nbytes < arena.SMALL or x.ctypes.data % 64 == 0
    a[...], b[...] = 1, 2
    assert (a == 1).all() and (b == 2).all()
    assert not np.shares_memory(a, b)


def test_many_blocks_of_many_sizes_do_not_overlap():
    random = np.random.default_rng(0)
    blocks = [arena.empty((int(n),)) for n in random.integers(20_000, 90_000, 60)]
    for i, x in enumerate(blocks):
        x[...] = i
    assert all((x == i).all() for i, x in enumerate(blocks))


def test_clear_leaves_what_is_in_use_alone():
    x = arena.empty(SHAPE)
    x[...] = 3
    arena.clear()
    assert arena.resident() == 0
    y = arena.empty(SHAPE)
    y[...] = 4
    assert (x == 3).all()


def parameters():
    random = np.random.default_rng(1)
    return [Tensor(random.standard_normal(shape).astype(np.float32), requires_grad=True)
            for shape in ((64, 128), (128,), (128, 64), (64,), (64,))]


def step(weights, x):
    """A block of a feed-forward network with its twins; -> (logits, loss)"""
    w, b, v, gain, bias = weights
    hidden = ops.bias_gelu(ops.linear(x, w), b)
    s, y = ops.add_layer_norm(x, ops.linear(hidden, v), gain, bias)
    logits = ops.linear(y + s, w)
    loss = ops.cross_entropy(logits, np.arange(len(x)) % 128)
    loss.backward()
    for p in weights:
        p.grad = None
    return logits, loss.item()


def test_the_arena_stays_the_same_over_200_steps():
    weights, x = parameters(), Tensor(np.random.default_rng(2).standard_normal((256, 64)).astype(np.float32))
    for _ in range(3):
        step(weights, x)
    resident = arena.resident()
    assert resident > 0
    for _ in range(200):
        step(weights, x)
    assert arena.resident() == resident


def test_logits_that_a_user_keeps_are_never_overwritten():
    weights, x = parameters(), Tensor(np.random.default_rng(2).standard_normal((256, 64)).astype(np.float32))
    kept = []
    for _ in range(6):
        logits, _ = step(weights, x)
        kept.append((logits, logits.data.copy(), logits.data[::7], logits.data[::7].copy()))
    for logits, copy, view, copied_view in kept:
        np.testing.assert_array_equal(logits.data, copy)
        np.testing.assert_array_equal(view, copied_view)


def test_the_same_step_gives_the_same_bits_again():
    weights, x = parameters(), Tensor(np.random.default_rng(2).standard_normal((256, 64)).astype(np.float32))
    assert len({step(weights, x)[1] for _ in range(10)}) == 1
