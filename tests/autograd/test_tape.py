"""The tape: what is recorded, what goes back, what stays alive."""

import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

from autograd import NonFinite, Tensor, debug, formulas_only, no_grad, op, ops
from autograd.backend import xp
from autograd.rank import rank
from autograd.tape import accelerates, backpropagate
from tests.autograd.leaves import host, leaf, normal, same


@contextmanager
def no_collector():
    """Whatever dies in here dies by reference count."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# ------------------------------------------------------------------------------------ values

def test_case_1_a_reused_intermediate_is_propagated_once():
    x, a = leaf(1.0), leaf(1.0)
    xa = x * a
    f = x * xa + x * xa + x * x * a
    f.backward()
    same(x.grad, 6.0)
    same(a.grad, 3.0)


def test_many_paths_cost_one_visit_a_node():
    x = y = leaf(1.0)
    for _ in range(60):                 # 2^60 paths
        y = y + y
    y.backward()
    same(x.grad, np.float32(2.0**60))


def test_a_list_of_inputs_and_a_tensor_by_keyword_get_their_gradients():
    @op
    def weighted(tensors, weight=None, *, factor=1):
        y = factor * weight * (tensors[0] + tensors[1])
        return y, lambda dy: ([factor * weight * dy, factor * weight * dy], factor * (tensors[0] + tensors[1]) * dy)

    a, b, w = leaf([1.0]), leaf([2.0]), leaf([5.0])
    weighted([a, b], weight=w, factor=2).backward()
    same(a.grad, [10])
    same(b.grad, [10])
    same(w.grad, [6])
    with pytest.raises(TypeError, match="factor takes an array, not a Tensor"):
        weighted([a, b], w, factor=w)


def test_unused_outputs_come_as_none_and_integers_carry_no_gradient():
    seen = []

    @op
    def parts(x):
        def backward(dys):
            seen.append([dy is None for dy in dys])
            return dys[0] * 2
        return (x * 2, x * 3, x.argmax()), backward

    x = leaf([1.0, 2.0])
    y, z, place = parts(x)
    assert z.requires_grad and not place.requires_grad
    y.sum().backward()
    assert seen == [[False, True, True]]
    same(x.grad, [2, 2])


def test_an_op_without_influence_still_counts_as_a_use():
    @op
    def ignore(x, y):
        return x * 1, lambda dy: (dy, None)

    x, y = leaf([1.0]), leaf([1.0])
    ignore(x, y).backward()
    same(y.grad, [0])


def test_gradients_add_up_over_backwards():
    x = leaf([1.0, 2.0])
    for n in (1, 2, 3):
        (x * 2).sum().backward()
        same(x.grad, [2 * n, 2 * n])


def test_a_leaf_itself_may_go_back():
    x = leaf(3.0)
    x.backward()
    same(x.grad, 1.0, "float32")
    assert type(x.grad) is xp.ndarray


def test_no_grad_records_nothing_and_nests():
    x = leaf([1.0])
    with no_grad():
        with no_grad():
            y = x * 2
        z = x * 2
    assert not y.requires_grad and not z.requires_grad
    assert (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert rank.recording


def test_what_needs_no_gradient_is_not_recorded():
    x, constant = leaf([1.0]), Tensor(xp.ones(1, xp.float32))
    assert (constant * 2).origin is None
    assert (x * constant).origin is not None
    assert constant.grad is None


def test_case_16_integer_results_are_detached():
    @op
    def rounded(x):
        return x.astype(xp.int64), lambda dy: None

    y = rounded(leaf([1.5]))
    assert not y.requires_grad and y.origin is None
    with pytest.raises(RuntimeError, match="its dtype is int64"):
        y.backward()


# ------------------------------------------------------------------------------------ mistakes

def test_case_4_a_second_backward_doubles_the_leaf_or_is_a_clear_error():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    same(x.grad, [4, 8])
    with pytest.raises(RuntimeError, match=r"released by an earlier backward.*retain_graph=True"):
        y.backward()
    same(x.grad, [4, 8])


def test_a_graph_that_shares_a_released_part_is_an_error_before_anything_is_added():
    x = leaf([1.0])
    shared = x * x
    (shared * 2).backward()
    before = host(x.grad).copy()
    with pytest.raises(RuntimeError, match=r"released by an earlier backward \(at mul\)"):
        (shared * 3).backward()
    same(x.grad, before)


def test_backward_says_what_it_needs():
    x = normal(2, 3)
    with pytest.raises(RuntimeError, match=r"shape \(2, 3\) needs its gradient"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"gradient of shape \(3,\) for a tensor of shape\s+\(2, 3\)"):
        (x * 2).backward(xp.ones(3, xp.float32))
    with pytest.raises(RuntimeError, match="requires no gradient"):
        Tensor(x.data).sum().backward()


@pytest.mark.parametrize("lazy", [False, True])
def test_case_24_a_gradient_of_another_dtype_is_an_error(lazy):
    @op
    def careless(x):
        gradient = lambda dy: (dy * 2).astype(xp.float64)
        return x * 2, lambda dy: (lambda: gradient(dy)) if lazy else gradient(dy)

    for make in (lambda x: x, lambda x: x * 1):             # at a leaf, and on the way to one
        with pytest.raises(TypeError, match=r"float64.*float32") as error:
            careless(make(leaf([1.0]))).backward()
        assert "careless" in str(error.value) or lazy


def test_case_9_a_gradient_of_another_shape_is_an_error():
    @op
    def careless(x, b):
        return x + b, lambda dy: (dy, dy)

    with pytest.raises(TypeError, match=r"careless.*\(4, 4\).*\(4,\)"):
        careless(normal(4, 4), normal(4)).sum().backward()


def test_a_wrong_number_of_gradients_is_an_error():
    @op
    def forgetful(a, b):
        return a + b, lambda dy: dy

    with pytest.raises(TypeError, match="returned 1 gradients for 2"):
        forgetful(leaf([1.0]), leaf([1.0])).backward()


def test_debug_names_the_op_its_inputs_and_the_direction():
    x = leaf([0.0, 1.0])
    with np.errstate(all="ignore"), debug():
        with pytest.raises(NonFinite, match=r"log produced NaN or infinity.*inputs \(2,\)"):
            ops.log(x)
        rank.layer = "blocks.3"
        y = ops.exp(x * 60).sum()
        rank.layer = ""
        with pytest.raises(NonFinite, match=r"backward of exp.*blocks\.3"):
            y.backward(xp.asarray(np.float32(1e30)))
    assert not rank.debug


# ------------------------------------------------------------------------------------ depth and memory

def test_case_5_a_chain_of_5000_goes_back_without_recursion():
    x = y = leaf(1.0)
    for _ in range(5000):
        y = y + 1
    y.backward()
    same(x.grad, 1.0)


def test_case_5_dropping_the_last_reference_to_a_long_chain_does_not_recurse():
    y = leaf(1.0)
    for _ in range(200_000):
        y = ops.neg(y)
    del y


def test_a_wide_sum_of_many_uses_goes_back():
    x = leaf(1.0)
    y = x
    for _ in range(3000):
        y = y + x
    y.backward()
    same(x.grad, 3001.0)


def test_arrays_of_a_sum_die_with_their_last_user():
    with no_collector():
        x = leaf(np.ones(3))
        a, b = x * 2, x * 3
        watched = [weakref.ref(a.data), weakref.ref(b.data), weakref.ref(a), weakref.ref(b)]
        y = a + b
        del a, b
        assert [w() for w in watched] == [None] * 4
        y.sum().backward()
        same(x.grad, [5, 5, 5])


def test_backward_releases_as_it_goes():
    with no_collector():
        x = leaf(np.ones(3))
        y = ops.exp(x)
        watched = weakref.ref(y.data)
        z = y.sum()
        del y
        assert watched() is not None            # exp's backward needs it
        z.backward()
        assert watched() is None                # though z is still here
        assert z.origin[0].parents == ()


def test_case_39_forward_without_backward_leaves_nothing():
    with no_collector():
        x, watched = normal(4, 4), []
        for _ in range(200):
            y = ops.softmax(ops.linear(x, x) * 0.1).sum()
            watched += [weakref.ref(y), weakref.ref(y.origin[0]), weakref.ref(y.data)]
        del y
        assert all(w() is None for w in watched)


def test_case_40_the_item_of_a_loss_holds_no_graph():
    with no_collector():
        x, total, watched = leaf([1.0, 2.0]), 0.0, []
        for _ in range(100):
            loss = (x * x).sum()
            watched.append(weakref.ref(loss.origin[0]))
            total += loss.item()
        del loss
        assert total == 500.0
        assert all(w() is None for w in watched)


@pytest.mark.parametrize("fail", ["forward", "backward"])
def test_an_exception_leaves_nothing_alive(fail):
    @op
    def failing(x):
        def backward(dy):
            raise ZeroDivisionError
        if fail == "forward":
            raise ZeroDivisionError
        return x * 2, backward

    with no_collector():
        x = leaf(np.ones(3))
        y = x * 3
        watched = weakref.ref(y.data)
        try:
            z = failing(y)
            z.sum().backward()
        except ZeroDivisionError:
            pass
        y = z = None
        assert watched() is None
        assert rank.recording and rank.accumulation is None


# ------------------------------------------------------------------------------------ twins and hooks

def test_a_twin_is_tried_where_it_says_and_formulas_only_turns_it_off():
    calls = []

    @op
    def double(x):
        calls.append("formula")
        return x * 2, lambda dy: dy * 2

    @accelerates(double, when=lambda x: x.size > 2)
    def double_quickly(x):
        calls.append("twin")
        return x * 2, lambda dy: dy * 2

    double(normal(2))
    double(normal(3))
    with formulas_only():
        double(normal(3))
    assert calls == ["formula", "twin", "formula"]


def test_after_node_is_called_after_every_node_until_it_is_taken_away():
    calls = []
    x = leaf([1.0])
    rank.after_node = lambda: calls.append(1)
    try:
        ((x * 2) * 3 + 1).backward()
    finally:
        rank.after_node = None
    assert len(calls) == 3


def test_a_sink_receives_every_use_of_a_leaf():
    x = leaf([1.0, 2.0])
    received = []
    backpropagate((x * x).sum(), sink=lambda to, gradient: received.append((to, host(gradient).copy())))
    assert [to for to, _ in received] == [x, x]
    same(sum(g for _, g in received), [2, 4])
    assert x.grad is None


def test_retain_graph_gives_the_same_bits_again():
    x, w = normal(4, 5), normal(5, 3)
    y = (ops.softmax(ops.linear(x, w)) ** 2).sum()
    y.backward(retain_graph=True)
    first, w.grad = w.grad, None
    y.backward()
    same(w.grad, host(first))
