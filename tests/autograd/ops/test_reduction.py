import numpy as np
import pytest

from autograd import ops
from autograd.backend import xp
from tests.autograd.leaves import host, leaf, normal, same


def test_case_17_argmax_claims_no_gradient_and_says_so():
    y = ops.argmax(normal(4)) + 2
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="argmax"):
        y.sum().backward()


def test_case_16_an_index_from_a_traced_value_is_detached():
    x, w = leaf([0.0, 3.0, 1.0]), normal(3, 2)
    w[x.argmax()].sum().backward()
    same(w.grad, [[0, 0], [1, 1], [0, 0]])
    w.grad = None
    w[int(x.max() - 1)].sum().backward()
    same(w.grad, [[0, 0], [0, 0], [1, 1]])
    assert x.grad is None


def test_case_18_max_plus_the_input_it_came_from():
    x = leaf([[2.0, 3.0]])
    (x.max() + x).sum().backward()
    same(x.grad, [[1, 3]])              # twice through max, which is broadcast, and once directly
    x.grad = None
    (x.max(axis=1, keepdims=True) + x)[0, 1:].sum().backward()
    same(x.grad, [[0, 2]])
    x.grad = None
    ((x.max() + x) * xp.asarray(np.array([[1.0, 0.0]], "float32"))).sum().backward()
    same(x.grad, [[1, 1]])


def test_case_28_tied_maxima_share_the_gradient():
    x = leaf([0.5, 0.97705078, 0.97705078])
    x.max().backward()
    same(x.grad, [0, 0.5, 0.5])


def test_case_30_logsumexp_keeps_dims_and_its_gradient_is_softmax():
    x = leaf([[1.0, 2.0, 3.0], [1000.0, 1000.0, -1000.0]], "float64")
    y = ops.logsumexp(x, axis=-1, keepdims=True)
    assert y.shape == (2, 1)
    np.testing.assert_allclose(host(y)[1], 1000 + np.log(2), rtol=1e-15)
    y.sum().backward()
    np.testing.assert_allclose(host(x.grad), np.exp(host(x) - host(y)), rtol=1e-12)


def test_logsumexp_of_nothing_visible_is_minus_infinity_with_zero_gradient():
    x = leaf([[-np.inf, -np.inf], [0.0, -np.inf]])
    y = ops.logsumexp(x, axis=1)
    same(y, [-np.inf, 0])
    y.backward(xp.ones(2, xp.float32))
    same(x.grad, [[0, 0], [1, 0]])


def test_logsumexp_of_infinity_is_infinity():
    same(ops.logsumexp(leaf([np.inf, 0.0])), np.inf)


@pytest.mark.parametrize("op", [ops.sum, ops.mean, ops.var])
@pytest.mark.parametrize("shape, axis", [((0,), None), ((0, 3), 0), ((2, 0), 1), ((2, 0, 3), (1, 2))])
def test_case_42_reductions_of_nothing_are_zero_and_have_gradients(op, shape, axis):
    x = normal(*shape)
    y = op(x, axis=axis)
    same(y, np.zeros(np.zeros(shape).sum(axis).shape))
    y.sum().backward()
    assert x.grad.shape == shape


def test_mean_and_var_stay_float32_through_counts():
    x = normal(3, 4)
    for y in (x.mean(), x.var(axis=1), x.mean(axis=(0, 1), keepdims=True)):
        x.grad = None
        y.sum().backward()
        assert y.dtype == x.grad.dtype == xp.float32


def test_var_is_not_negative_where_the_mean_is_large():
    x = leaf(1e4 + np.arange(4.0))
    np.testing.assert_allclose(host(x.var()), 1.25, rtol=1e-5)
