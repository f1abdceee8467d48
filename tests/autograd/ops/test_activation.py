import math
import warnings

import numpy as np
import pytest

from autograd import ops
from autograd.backend import to_device, to_host
from autograd.ops.special import erf
from tests.autograd.leaves import host, leaf, normal, same


def test_erf_is_the_error_function():
    x = np.concatenate([np.linspace(-8, 8, 401), [1e-300, 1e-8, 0.0, -0.0, np.inf, -np.inf]])
    expected = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(to_host(erf(to_device(x))), expected, rtol=1e-13)


@pytest.mark.parametrize("op", [ops.sigmoid, ops.tanh, ops.silu, ops.gelu, ops.relu,
                                lambda x: ops.gelu(x, "erf")])
def test_large_inputs_neither_overflow_nor_warn(op):
    x = leaf([-1e4, -100.0, 0.0, 100.0, 1e4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = op(x)
        y.sum().backward()
    assert np.isfinite(host(y)).all() and np.isfinite(host(x.grad)).all()


def test_sigmoid_keeps_the_digits_of_small_values():
    np.testing.assert_allclose(host(ops.sigmoid(leaf([-80.0]))), [math.exp(-80)], rtol=1e-5)


def test_relu_is_flat_at_its_kink():
    x = leaf([-1.0, 0.0, 1.0])
    ops.relu(x).sum().backward()
    same(x.grad, [0, 0, 1])


def test_bias_gelu_is_gelu_of_the_sum():
    x, b = normal(2, 3), normal(3, seed=1)
    np.testing.assert_allclose(host(ops.bias_gelu(x, b)), host(ops.gelu(x + b)), rtol=1e-6)


def test_options_that_do_not_exist_and_odd_widths_are_refused():
    with pytest.raises(ValueError, match='expected "tanh" or "erf"'):
        ops.gelu(normal(2), "exact")
    with pytest.raises(ValueError, match="must be even"):
        ops.swiglu(normal(2, 3))
