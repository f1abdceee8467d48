import warnings

import numpy as np

from autograd import ops
from autograd.backend import xp
from tests.autograd.leaves import host, leaf, normal, same


def test_case_31_softmax_along_an_axis_then_cross_entropy_equals_the_fused_loss():
    targets = np.array([0, 2, 1])
    x = normal(3, 4, dtype="float64")
    p = ops.softmax(x, axis=1)
    loss = -ops.log(p[np.arange(3), targets]).mean()
    loss.backward()
    apart, x.grad = x.grad, None
    fused = ops.cross_entropy(x, targets)
    fused.backward()
    np.testing.assert_allclose(host(loss), host(fused), rtol=1e-12)
    np.testing.assert_allclose(host(apart), host(x.grad), atol=1e-12)


def test_case_32_log_softmax_takes_the_sum_of_dy_off():
    x = leaf([0.1, 0.9], "float64")
    y = ops.log_softmax(x)
    y.backward(xp.ones(2))
    np.testing.assert_allclose(host(x.grad), [0.3799490, -0.3799490], atol=1e-6)


def test_case_33_each_row_is_shifted_by_its_own_maximum():
    p = ops.softmax(leaf([[1000.0, 999.0], [0.0, 1.0]]))
    np.testing.assert_allclose(host(p).sum(1), [1, 1], rtol=1e-6)
    np.testing.assert_allclose(host(p)[1], [0.26894142, 0.73105858], rtol=1e-6)


def test_case_34_a_fully_masked_row_is_zero_and_poisons_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf([[-np.inf, -np.inf], [0.0, 0.0]])
        p = ops.softmax(x)
        same(p, [[0, 0], [0.5, 0.5]])
        (p * xp.asarray(np.array([[1.0, 2.0], [1.0, 2.0]], "float32"))).sum().backward()
    same(x.grad, [[0, 0], [-0.25, 0.25]])


def test_case_34_log_softmax_of_a_fully_masked_row_has_zero_gradients():
    x = leaf([[-np.inf, -np.inf], [0.0, 0.0]])
    y = ops.log_softmax(x)
    same(y, np.array([[-np.inf] * 2, [np.log(0.5)] * 2], "float32"))
    y.backward(xp.asarray(np.array([[1.0, 2.0], [1.0, 0.0]], "float32")))
    same(x.grad, [[0, 0], [0.5, -0.5]])
