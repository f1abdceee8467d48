import numpy as np
import pytest

from autograd import Deferred, formulas_only, ops
from autograd.backend import to_device
from autograd.tape import backpropagate
from tests.autograd.leaves import host, normal, same


def test_linear_computes_dx_at_once_and_the_rest_when_asked():
    x, w, b = normal(2, 3), normal(3, 4), normal(4)
    later = Deferred()
    with formulas_only():
        backpropagate(ops.linear(x, w, b).sum(), sink=later)
    assert x.grad is not None
    assert w.grad is None and b.grad is None and len(later) == 2
    later.run()
    same(b.grad, np.full(4, 2))
    np.testing.assert_allclose(host(w.grad), np.repeat(host(x).sum(0)[:, None], 4, 1), rtol=1e-6)


def test_a_tied_head_adds_to_the_gradient_of_the_embedding():
    w = normal(5, 3)
    ids = np.array([0, 2, 2])
    logits = ops.linear(ops.embedding(w, ids), w, transposed=True)
    logits.sum().backward()
    through_head = np.repeat(host(w)[ids].sum(0)[None], 5, 0)
    through_rows = np.zeros((5, 3))
    np.add.at(through_rows, ids, host(w).sum(0))
    np.testing.assert_allclose(host(w.grad), through_head + through_rows, rtol=1e-5)


@pytest.mark.parametrize("x, w, transposed", [((2, 3), (4, 5), False), ((2, 3), (3, 4), True)])
def test_linear_says_which_shapes_do_not_fit(x, w, transposed):
    with pytest.raises(ValueError, match=r"linear: x \(2, 3\)"):
        ops.linear(normal(*x), normal(*w), transposed=transposed)


def test_case_42_linear_of_no_rows_gives_zero_gradients():
    x, w, b = normal(0, 3), normal(3, 4), normal(4)
    y = ops.linear(x, w, b)
    y.sum().backward()
    same(w.grad, np.zeros((3, 4)))
    same(b.grad, np.zeros(4))
    assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("subscripts, shapes, words", [
    ("ij,jk->ik", [(2, 3)], "names 2 operands, got 1"), ("ij->i", [(2, 3, 4)], "names 2 axes"),
    ("ij,jk->ik", [(2, 3), (4, 5)], "'j' .* is 3 in one operand, 4 in another"), ("...ij->i", [(2,)], "or more"),
])
def test_einsum_says_which_subscript_does_not_fit(subscripts, shapes, words):
    with pytest.raises(ValueError, match=words):
        ops.einsum(subscripts, *(normal(*shape) for shape in shapes))


def test_integers_in_a_product_keep_float32():
    x, ints = normal(3), to_device(np.array([1, 2, 0]))
    for y in (ops.einsum("i,i", x, ints), ops.matmul(x, ints)):
        x.grad = None
        y.backward()
        same(x.grad, [1, 2, 0], "float32")


def test_einsum_stretches_axes_of_size_one():
    a, b = normal(1, 3), normal(4, 3, seed=1)
    ops.einsum("ij,ij->i", a, b).sum().backward()
    np.testing.assert_allclose(host(a.grad), host(b).sum(0, keepdims=True), rtol=1e-6)
