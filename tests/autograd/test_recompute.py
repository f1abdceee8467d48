"""Recomputing gives the same bits and holds less."""

import gc
import weakref

import numpy as np
import pytest

from autograd import Deferred, Tensor, accumulation, no_grad, ops, streams
from autograd.graph import kept_bytes
from autograd.rank import rank
from autograd.recompute import recompute
from autograd.tape import backpropagate
from tests.autograd.leaves import host, leaf, normal, same


class Block:
    """A pre-norm feed-forward block with dropout, whose mask follows from its coordinates."""

    def __init__(self, seed, width=8, p=0.1):
        self.gain, self.up, self.down = normal(width, seed=seed), normal(width, 32, seed=seed + 1), normal(
            32, width, seed=seed + 2)
        self.p, self.name, self.calls = p, f"blocks.{seed}", 0

    def parameters(self):
        return [self.gain, self.up, self.down]

    def __call__(self, x):
        self.calls += 1
        h = ops.linear(ops.gelu(ops.linear(ops.rms_norm(x, self.gain), self.up)), self.down)
        keep = streams.keep_mask(self.p, 3, self.name, step=5, samples=np.arange(2), positions=np.arange(3), channels=8)
        return x + ops.dropout(h, self.p, keep)


def train(blocks, x, how):
    """-> (loss, all gradients)"""
    for p in [x, *(p for b in blocks for p in b.parameters())]:
        p.grad = None
    y = x
    for block in blocks:
        y = how(block, y)
    loss = (y * y).sum()
    loss.backward()
    return loss.item(), [host(p.grad).copy() for p in [x, *(p for b in blocks for p in b.parameters())]]


def plainly(block, y):
    return block(y)


def again(block, y):
    return recompute(block, y, parameters=block.parameters())


def test_case_64_loss_and_gradients_equal_bit_for_bit_with_dropout():
    blocks, x = [Block(seed) for seed in (10, 20, 30)], normal(2, 3, 8)
    loss, gradients = train(blocks, x, plainly)
    loss_again, gradients_again = train(blocks, x, again)
    assert loss == loss_again
    for a, b in zip(gradients, gradients_again):
        np.testing.assert_array_equal(a, b)
    assert [b.calls for b in blocks] == [3, 3, 3]           # once plainly, twice recomputed


def test_blocks_that_share_their_parameters_equal_too():
    block, x = Block(10), normal(2, 3, 8)
    _, gradients = train([block, block], x, plainly)
    _, gradients_again = train([block, block], x, again)
    for a, b in zip(gradients, gradients_again):
        np.testing.assert_array_equal(a, b)


def test_a_recomputation_inside_another_equals_too():
    blocks, x = [Block(seed) for seed in (10, 20)], normal(2, 3, 8)
    _, gradients = train(blocks, x, plainly)
    parameters = [p for b in blocks for p in b.parameters()]
    whole = lambda y: again(blocks[1], again(blocks[0], y))
    _, gradients_again = train(blocks, x, lambda block, y: y if block is blocks[1] else
                               recompute(whole, y, parameters=parameters))
    for a, b in zip(gradients, gradients_again):
        np.testing.assert_array_equal(a, b)


def test_it_keeps_only_its_inputs():
    block, x = Block(10), normal(2, 3, 8)
    y = recompute(block, x * 1, parameters=block.parameters())
    assert kept_bytes(y) == x.data.nbytes
    assert kept_bytes(block(x * 1)) > 5 * x.data.nbytes


def test_nothing_is_left_alive():
    gc.collect()
    gc.disable()
    try:
        block, x = Block(10), normal(2, 3, 8)
        y = recompute(block, x * 1, parameters=block.parameters())
        watched = [weakref.ref(y), weakref.ref(y.origin[0]), weakref.ref(y.data)]
        y.sum().backward()
        del y
        assert all(w() is None for w in watched)
    finally:
        gc.enable()


def test_parameters_count_as_uses_and_complete_once():
    block, x, complete = Block(10), normal(2, 3, 8).detach(), []
    with accumulation(block.parameters(), backwards=2, on_complete=complete.append):
        for _ in range(2):
            recompute(block, x, parameters=block.parameters()).sum().backward()
    assert sorted(map(id, complete)) == sorted(map(id, block.parameters()))
    assert rank.accumulation is None


def test_lazy_gradients_of_parameters_stay_lazy():
    block, x, later = Block(10), normal(2, 3, 8), Deferred()
    backpropagate(recompute(block, x, parameters=block.parameters()).sum(), sink=later)
    assert x.grad is not None
    assert block.up.grad is None and block.down.grad is None
    later.run()
    deferred = [host(p.grad) for p in block.parameters()]
    for p in block.parameters():
        p.grad = None
    block(x).sum().backward()
    for p, g in zip(block.parameters(), deferred):
        same(p.grad, g)


def test_several_outputs_some_unused_and_inputs_that_are_no_tensors():
    w = normal(4, 4)

    def f(x, factor, none):
        assert none is None
        y = ops.linear(x, w)
        return y * factor, ops.tanh(y), y.argmax(axis=-1)

    x = normal(3, 4)
    a, b, places = recompute(f, x, 2.0, None, parameters=[w])
    assert not places.requires_grad
    (a.sum() + b.sum()).backward()
    got = host(x.grad), host(w.grad)
    x.grad = w.grad = None
    a, b, _ = f(x, 2.0, None)
    (a.sum() + b.sum()).backward()
    same(x.grad, got[0])
    same(w.grad, got[1])
    x.grad = w.grad = None
    _, b, _ = recompute(f, x, 2.0, None, parameters=[w])
    b.sum().backward()
    got = host(w.grad)
    w.grad = None
    f(x, 2.0, None)[1].sum().backward()
    same(w.grad, got)


def test_an_input_without_gradient_still_gives_the_parameters_theirs():
    block, data = Block(10), Tensor(normal(2, 3, 8).data)
    recompute(block, data, parameters=block.parameters()).sum().backward()
    assert data.grad is None and all(p.grad is not None for p in block.parameters())


def test_a_tied_parameter_named_twice_counts_once():
    x, w = normal(3, 3), normal(3, 3)
    recompute(lambda t: ops.linear(ops.linear(t, w), w), x, parameters=[w, w]).sum().backward()
    got, w.grad = host(w.grad), None
    ops.linear(ops.linear(x, w), w).sum().backward()
    same(w.grad, got)


def test_a_parameter_that_is_not_used_gets_zero():
    x, w = normal(3), normal(3)
    recompute(lambda t: t * 2, x, parameters=[w]).sum().backward()
    same(w.grad, np.zeros(3))


def test_under_no_grad_and_without_anything_to_learn_it_is_the_function():
    block, x = Block(10), normal(2, 3, 8)
    with no_grad():
        assert recompute(block, x, parameters=block.parameters()).origin is None
    assert recompute(lambda t: t * 2, x.detach()).origin is None


def test_it_goes_back_twice_over_a_kept_graph():
    block, x = Block(10), normal(2, 3, 8)
    y = recompute(block, x, parameters=block.parameters()).sum()
    y.backward(retain_graph=True)
    first, x.grad = host(x.grad), None
    y.backward()
    same(x.grad, first)


def test_a_forgotten_parameter_is_an_error():
    block, x = Block(10), normal(2, 3, 8)
    with pytest.raises(RuntimeError, match=r"a leaf of shape \(8, 32\) .* name it"):
        recompute(block, x, parameters=[block.gain, block.down]).sum().backward()
    assert rank.recording and rank.accumulation is None


def test_a_result_from_outside_is_an_error():
    x = leaf([1.0, 2.0])
    outside = x * 3
    with pytest.raises(RuntimeError, match="made by mul: pass it as an input"):
        recompute(lambda t: t * outside, x).sum().backward()
