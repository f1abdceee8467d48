"""A twin may overwrite what nobody else can see.  These tests try to look."""

import asyncio
import functools
import itertools
import weakref

import numpy as np
import pytest

from autograd import Deferred, Tensor, arena, backend, formulas_only, op, ops
from autograd.ownership import alone
from autograd.tape import accelerates, backpropagate
from tests.autograd.leaves import host, leaf, same

pytestmark = pytest.mark.skipif(backend.device != "cpu", reason="only twins of the CPU overwrite")

N = 8
granted = []                                    # what the last calls were allowed


@op
def scale(x, factor=2.0, *more):
    """y = factor x"""
    return x * factor, lambda dy: (dy * factor,)


@accelerates(scale, when=lambda *inputs: True, consumes=True, overwrites=True)
def scale_in_place(x, factor=2.0, *more, owned):
    """Destroys whatever it may: an owned x, an owned dy."""
    granted.append(owned)
    y = x * factor
    if owned:
        x.fill(np.nan)

    def backward(dy, owned):
        granted.append(owned)
        dx = dy * factor
        if owned:
            dy.fill(np.nan)
        return (dx,)

    return y, backward


@pytest.fixture(autouse=True)
def forget():
    granted.clear()


def values():
    return np.arange(1.0, N + 1, dtype=np.float32)


def fresh(array=None):
    """A Tensor that an op has made and that nobody holds."""
    return ops.neg(ops.neg(Tensor(values() if array is None else array)))


def large():
    """The same, in the arena."""
    block = arena.empty((64, 512))
    block.fill(1)
    return Tensor(block)


def test_what_was_made_for_the_call_is_granted():
    same(scale(fresh()), 2 * values())
    same(scale(large()), np.full((64, 512), 2))
    same(scale(scale(fresh())), 4 * values())
    assert granted == [True] * 4


# Each of these hands a Tensor over while keeping something through which its values can be read afterwards.
def keep_variable():
    t = fresh()
    scale(t)
    return t.data


def keep_array():
    t = fresh()
    array = t.data
    del t
    scale(Tensor(array))
    return array


def keep_view():
    t = fresh()
    view = t.data[:]
    scale(t)
    return view


def keep_only_a_view():
    t = fresh()
    view = t.data[:]
    held = [t]
    del t
    scale(held.pop())
    return view


def keep_memoryview():
    held = [fresh()]
    memory = memoryview(held[0].data)
    scale(held.pop())
    return np.asarray(memory)


def keep_array_interface():
    held = [fresh()]
    other = np.frombuffer(held[0].data, np.float32)
    scale(held.pop())
    return other


def keep_in_list():
    held = [fresh()]
    scale(held[0])
    return held[0].data


def keep_in_tuple_of_arguments():
    arguments = (fresh(),)
    scale(*arguments)
    return arguments[0].data


def keep_in_list_of_arguments():
    arguments = [fresh(), 2.0]
    scale(*arguments)
    return arguments[0].data


def keep_in_keywords():
    keywords = {"x": fresh()}
    scale(**keywords)
    return keywords["x"].data


def keep_in_closure():
    def make():
        t = fresh()
        return (lambda: scale(t)), (lambda: t.data)
    use, read = make()
    use()
    return read()


def keep_in_attribute():
    class Layer:
        pass
    layer = Layer()
    layer.hidden = fresh()
    scale(layer.hidden)
    return layer.hidden.data


def keep_in_partial():
    call = functools.partial(scale, fresh())
    call()
    return call.args[0].data


def keep_in_bound_method():
    method = fresh().exp
    scale(method.__self__)
    return method.__self__.data


def keep_in_generator():
    def walk():
        t = fresh()
        yield t
        yield t.data
    walking = walk()
    scale(next(walking))
    return next(walking)


def keep_in_suspended_coroutine():
    async def work():
        t = fresh()
        await asyncio.sleep(0)
        scale(t)
        await asyncio.sleep(0)
        return t.data
    return asyncio.run(work())


def keep_in_exception():
    def fail():
        t = fresh()
        scale(t)
        raise ValueError(t)
    try:
        fail()
    except ValueError as error:
        return error.args[0].data


def keep_in_traceback():
    def fail():
        t = fresh()
        raise ValueError(t.shape)
    try:
        fail()
    except ValueError as error:
        frame = error.__traceback__.tb_next.tb_frame
        scale(frame.f_locals["t"])
        return frame.f_locals["t"].data


def keep_in_map():
    held = [fresh() for _ in range(3)]
    list(map(scale, held))
    return held[1].data


def keep_in_starmap():
    held = [(fresh(),)]
    list(itertools.starmap(scale, held))
    return held[0][0].data


def keep_in_a_tee():
    first, second = itertools.tee(iter([fresh()]))
    scale(next(first))
    return next(second).data


def keep_in_default():
    def call(t=fresh()):        # noqa: B008
        return scale(t)
    call()
    return call.__defaults__[0].data


def keep_twice_in_one_call():
    t = fresh()
    other = [t]
    scale(t, 2.0, other.pop())
    return t.data


def keep_users_own_array():
    array = values()
    scale(Tensor(array))
    return array


def keep_slice_of_users_array():
    array = np.arange(2 * N, dtype=np.float32).reshape(2, N)
    array[1] = values()
    scale(Tensor(array[1]))
    return array[1]


def keep_detached():
    t = fresh()
    d = t.detach()
    del t
    scale(d.detach())
    return d.data


def keep_reshaped():
    t = fresh()
    r = t.reshape(2, -1)
    held = [t]
    del t
    scale(held.pop())
    return r.data.reshape(-1)


def keep_whole_of_a_part():
    t = fresh()
    scale(t.reshape(2, -1))
    return t.data


KEEPERS = [f for name, f in sorted(globals().items()) if name.startswith("keep_")]


@pytest.mark.parametrize("keep", KEEPERS, ids=lambda f: f.__name__)
def test_nothing_that_a_user_can_still_read_is_overwritten(keep):
    np.testing.assert_array_equal(keep(), values())


def test_a_saved_activation_is_never_overwritten():
    x = leaf(values())
    y = scale(ops.exp(x * 0.1))                 # exp keeps its output for backward
    y.sum().backward()
    assert granted[0] is False
    np.testing.assert_allclose(host(x.grad), 0.2 * np.exp(0.1 * values()), rtol=1e-6)


def test_both_operands_of_a_saved_product_survive():
    x = leaf(values())
    a = x * 3
    y = (a * scale(a)).sum()                    # a is kept by the product and given to the twin
    y.backward()
    np.testing.assert_allclose(host(x.grad), 36 * values(), rtol=1e-6)


def test_a_leaf_is_never_overwritten():
    x = leaf(values())
    scale(x)
    scale(leaf(values())).sum().backward()
    same(x, values())
    assert granted[:2] == [False, False]


def test_weak_references_alone_do_not_protect_and_need_not():
    t = fresh()
    reference = weakref.ref(t)
    held = [t]
    del t
    scale(held.pop())
    assert reference() is None


def test_the_gradient_that_a_user_gave_is_never_overwritten():
    g = np.ones(N, np.float32)
    scale(leaf(values())).backward(g)
    scale(leaf(values())).backward(Tensor(g))
    scale(leaf(values())).backward(g[:])
    same(g, np.ones(N))


def test_a_gradient_with_two_consumers_is_never_overwritten():
    x, z = leaf(values()), leaf(values())
    a, b = scale(x), scale(z)
    (a + b).sum().backward()                    # add hands the same dy to both
    same(x.grad, np.full(N, 2))
    same(z.grad, np.full(N, 2))


def test_a_gradient_that_a_lazy_one_kept_is_never_overwritten():
    w = leaf(np.ones((N, 3)))
    x = leaf(np.ones((2, N)))
    later = Deferred()
    backpropagate(scale(ops.linear(scale(x), w)).sum(), sink=later)
    later.run()
    same(w.grad, np.full((N, 3), 8))
    same(x.grad, np.full((2, N), 12))


def test_retain_graph_goes_back_twice_to_the_same_numbers():
    x = leaf(values())
    y = scale(scale(scale(x) + x) * x).sum()
    y.backward(retain_graph=True)
    first, x.grad = host(x.grad).copy(), None
    y.backward()
    same(x.grad, first)


def test_a_gradient_seen_by_a_sink_is_not_overwritten_later():
    x = leaf(values())
    seen = []
    backpropagate((scale(x) + scale(x)).sum(), sink=lambda to, g: seen.append(g))
    same(seen[0], np.full(N, 2))
    same(seen[1], np.full(N, 2))


def test_alone_is_false_for_whatever_else_refers_to_the_memory():
    holder = [values()]
    assert alone(holder, 0)
    view = holder[0][2:]
    assert not alone(holder, 0)
    del view
    assert alone(holder, 0)
    holder = [values()[1:]]
    assert alone(holder, 0)                     # a view whose base nobody else has
    base = holder[0].base
    assert not alone(holder, 0)
    del base
    holder = [np.broadcast_to(values(), (2, N))]
    assert not alone(holder, 0)                 # not writable
    holder = [np.frombuffer(bytearray(8), np.float32)]
    assert not alone(holder, 0)                 # memory of somebody else
    holder = [values()] * 2
    assert not alone(holder, 0)


def test_alone_in_the_arena():
    holder = [arena.empty((64, 512))]
    assert alone(holder, 0)
    view = holder[0][0]
    assert not alone(holder, 0)
    del view
    holder = [arena.empty((64, 512)).reshape(-1)[5:]]
    assert alone(holder, 0)


def test_random_programs_give_the_same_as_without_twins():
    kinds = [lambda a, b: scale(a, 0.5), lambda a, b: scale(a * 1.0), lambda a, b: a + scale(b, 0.5),
             lambda a, b: a * b * 0.1, lambda a, b: scale(ops.tanh(a).reshape(2, -1)).reshape(-1),
             lambda a, b: scale(scale(a[::-1], 0.5), 0.5)]

    def program(seed):
        random = np.random.default_rng(seed)
        x = leaf(values())
        pool = [x]
        for _ in range(12):
            i, j = random.integers(0, len(pool), 2)
            pool.append(kinds[random.integers(6)](pool[i], pool[j]))
            if random.random() < 0.3 and len(pool) > 2:
                pool.pop(random.integers(1, len(pool)))
        sum((p * 0.3).sum() for p in pool).backward()
        return [host(p).copy() for p in pool], host(x.grad)

    for seed in range(40):
        tuned, gradient = program(seed)
        with formulas_only():
            plain, expected = program(seed)
        for a, b in zip([*tuned, gradient], [*plain, expected]):
            np.testing.assert_allclose(a, b, rtol=1e-5)
