"""Gradients of leaves: lazy, deferred, accumulated, complete."""

import numpy as np
import pytest

from autograd import Deferred, Lazy, Tensor, accumulation, no_grad, op, ops
from autograd.backend import xp
from autograd.rank import rank
from autograd.tape import backpropagate
from tests.autograd.leaves import host, leaf, normal, same


def network(x, weights):
    for w in weights:
        x = ops.tanh(ops.linear(x, w))
    return (x * x).sum()


def test_deferred_gradients_equal_eager_ones_bit_for_bit():
    x, weights = normal(6, 4), [normal(4, 4, seed=i) for i in range(3)]
    network(x, weights).backward()
    eager = [host(w.grad) for w in weights]
    for w in weights:
        w.grad = None
    later = Deferred()
    backpropagate(network(x, weights), sink=later)
    assert len(later) >= 3 and all(w.grad is None for w in weights)
    later.run()
    assert len(later) == 0
    for w, g in zip(weights, eager):
        same(w.grad, g)


def test_lazy_gradients_written_into_a_buffer_equal_eager_ones_bit_for_bit():
    x, w = normal(6, 4), normal(4, 3)
    ops.linear(x, w).sum().backward()
    ops.linear(x, w).sum().backward()
    eager, w.grad = host(w.grad), None
    flat = xp.zeros(20, xp.float32)
    w.buffer = flat[4:16].reshape(4, 3)
    ops.linear(x, w).sum().backward()
    assert w.grad is w.buffer
    ops.linear(x, w).sum().backward()
    same(w.grad, eager)
    same(flat[:4], np.zeros(4))
    same(flat[16:], np.zeros(4))


def test_a_lazy_gradient_nobody_wants_is_never_computed():
    calls = []

    @op
    def watched(x, w):
        return x * w, lambda dy: (dy * w, lambda: calls.append(1) or dy * x)

    x, w = leaf([1.0]), Tensor(xp.ones(1, xp.float32))
    watched(x, w).backward()
    assert calls == []
    watched(x, leaf([1.0])).backward()
    assert calls == [1]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_lazy_gradient_writes_or_adds_and_returns_an_array_when_called(fresh):
    def write(out, fresh):
        out[...] = 5 if fresh else out + 5

    lazy = Lazy(write, (2,), np.dtype("float32"))
    same(lazy(), [5, 5], "float32")

    @op
    def with_lazy(x):
        return x * 5, lambda dy: lazy

    x = leaf([1.0, 1.0])
    x.buffer = xp.ones(2, xp.float32)
    if not fresh:
        x.grad = x.buffer
    with_lazy(x).sum().backward()
    same(x.grad, [5, 5] if fresh else [6, 6])


def test_a_buffer_goes_on_from_a_gradient_that_somebody_replaced():
    x = leaf([1.0, 1.0])
    x.buffer = xp.zeros(2, xp.float32)
    (x * 2).sum().backward()
    x.grad = xp.full(2, 10, xp.float32)
    (x * 2).sum().backward()
    same(x.grad, [12, 12])
    assert x.grad is x.buffer


def test_a_buffer_of_a_leaf_without_gradient_is_overwritten_first():
    x = leaf([1.0])
    x.buffer = xp.full(1, np.nan, xp.float32)
    (x * 2).backward()
    same(x.grad, [2])


# ------------------------------------------------------------------------------------ accumulation

def test_leaves_complete_when_the_last_use_of_the_last_backward_is_added():
    a, b, c = leaf([1.0]), leaf([2.0]), leaf([3.0])
    complete = []
    with accumulation([a, b, c], backwards=2, on_complete=lambda p: complete.append((p, host(p.grad).copy()))):
        (a * b * c + a).sum().backward()
        assert complete == []
        (a * b * c + a).sum().backward()
        assert len(complete) == 3
    assert dict(complete) == {a: [14], b: [6], c: [4]}


def test_case_41_unused_leaves_are_flushed_at_the_end_in_the_order_of_the_parameters():
    a, b, c, d = (leaf([1.0]) for _ in range(4))
    complete = []
    with accumulation([d, c, b, a], on_complete=complete.append):
        (b * 2).backward()
        assert complete == [b]
    assert complete == [b, d, c, a]
    assert a.grad is None and d.grad is None


def test_deferred_gradients_complete_their_leaves_when_they_run():
    x, w = normal(2, 3).detach(), normal(3, 3)
    complete, later = [], Deferred()
    with accumulation([w], on_complete=complete.append):
        backpropagate(ops.linear(ops.linear(x, w), w).sum(), sink=later)
        assert complete == []
        later.run()
        assert complete == [w]


@pytest.mark.parametrize("backwards, run, words", [(2, 1, "1 backwards missing"), (1, 2, "more backwards than")])
def test_more_or_fewer_backwards_than_announced_are_errors(backwards, run, words):
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match=words), accumulation([x], backwards=backwards):
        for _ in range(run):
            (x * 2).backward()
    assert rank.accumulation is None


def test_a_deferred_that_never_ran_is_an_error():
    x, w = normal(2, 3), normal(3, 3)
    with pytest.raises(RuntimeError, match="1 gradients still owed"), accumulation([w]):
        backpropagate(ops.linear(x.detach(), w).sum(), sink=Deferred())


def test_accumulations_do_not_nest():
    with accumulation([], backwards=0), pytest.raises(RuntimeError, match="inside accumulation"), accumulation([]):
        pass


def test_an_exception_inside_closes_the_accumulation():
    with pytest.raises(ZeroDivisionError), accumulation([leaf([1.0])]):
        raise ZeroDivisionError
    assert rank.accumulation is None


def test_evaluation_inside_an_accumulation_does_not_count():
    x = leaf([1.0])
    with accumulation([x]):
        with no_grad():
            (x * 2).sum()
        (x * 2).backward()


def test_leaves_wanted_at_once_are_not_deferred():
    """A stage's input: the stage before waits for its gradient, however the op computes it."""
    x, w = normal(4, 3), normal(3, 2)
    later = Deferred(at_once=[x])
    backpropagate(ops.linear(x, w).sum(), sink=later)
    assert x.grad is not None and w.grad is None
    later.run()
    assert w.grad is not None


def test_only_announced_leaves_are_reported():
    x, w, heard = normal(4, 3), normal(3, 2), []
    with accumulation([w], on_complete=heard.append):
        ops.linear(x, w).sum().backward()
    assert len(heard) == 1 and heard[0] is w
