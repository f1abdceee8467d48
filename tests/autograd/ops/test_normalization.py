import numpy as np
import pytest

from autograd import Deferred, formulas_only, ops
from autograd.tape import backpropagate
from tests.autograd.leaves import host, leaf, normal, same


def test_fused_with_the_residual_equals_the_composition():
    x, branch, gain, bias = normal(3, 4), normal(3, 4, seed=1), normal(4, seed=2), normal(4, seed=3)
    s, y = ops.add_layer_norm(x, branch, gain, bias)
    (s * s + y).sum().backward()
    fused = [t.grad for t in (x, branch, gain, bias)]
    for t in (x, branch, gain, bias):
        t.grad = None
    s = x + branch
    (s * s + ops.layer_norm(s, gain, bias)).sum().backward()
    for a, t in zip(fused, (x, branch, gain, bias)):
        np.testing.assert_allclose(host(a), host(t.grad), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", [ops.add_layer_norm, ops.add_rms_norm])
def test_each_of_the_two_results_may_go_unused(norm):
    x, gain = normal(3, 4), normal(4, seed=1)
    s, _ = norm(x, None, gain)
    s.sum().backward()
    same(x.grad, np.ones((3, 4)))
    same(gain.grad, np.zeros(4))
    x.grad = None
    _, y = norm(x, None, gain)
    y.sum().backward()
    assert x.grad is not None


def test_gain_and_bias_wait_until_they_are_wanted():
    x, gain, bias = normal(3, 4), normal(4), normal(4)
    later = Deferred()
    with formulas_only():
        backpropagate(ops.layer_norm(x, gain, bias).sum(), sink=later)
    assert x.grad is not None and gain.grad is None and len(later) == 2


def test_a_branch_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="residual stream"):
        ops.add_rms_norm(normal(3, 4), normal(4), normal(4))


@pytest.mark.parametrize("norm", [ops.layer_norm, ops.rms_norm])
def test_a_constant_row_stays_finite(norm):
    x, gain = leaf(np.zeros((2, 4))), normal(4)
    norm(x, gain).sum().backward()
    assert np.isfinite(host(x.grad)).all()


def test_batch_norm_gives_its_statistics_for_a_running_average():
    x = normal(5, 3, 2, dtype="float64")
    _, mean, var = ops.batch_norm(x, leaf(np.ones(3), "float64"), leaf(np.zeros(3), "float64"))
    np.testing.assert_allclose(host(mean), host(x).mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(host(var), host(x).var((0, 2)), rtol=1e-12)
