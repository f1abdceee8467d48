"""Gradients against differences: right ones pass, wrong ones are named, kinks are no excuse and no alarm."""

import warnings

import numpy as np
import pytest

from autograd import op, ops
from autograd.backend import to_host, xp
from autograd.gradcheck import GradientError, Unchecked, check_adjoint, gradcheck
from tests.autograd.leaves import normal

random = np.random.default_rng(11)


def array(*shape):
    return random.standard_normal(shape)


def test_it_returns_what_it_compared_for_every_input():
    checked = gradcheck(ops.linear, [array(3, 4), array(4, 5), array(5)], names=["x", "weight", "bias"])
    assert [c.name for c in checked] == ["x", "weight", "bias"]
    assert all(abs(c.numeric - c.analytic) < 1e-8 * abs(c.numeric) for c in checked)


def test_a_gradient_that_is_off_by_a_millionth_is_caught():
    @op
    def square(x, error):
        return x * x, lambda dy: 2 * x * dy * (1 + error)

    gradcheck(lambda x: square(x, 1e-8), [array(20)])
    with pytest.raises(GradientError):
        gradcheck(lambda x: square(x, 1e-5), [array(20)])


def test_one_wrong_element_is_named_with_both_values():
    @op
    def double(x):
        def backward(dy):
            dx = 2 * dy
            dx[1, 2] = 0
            return dx
        return 2 * x, backward

    with pytest.raises(GradientError, match=r"gradient of table \(3, 4\) is wrong.*differences give .*backward gives"
                                            r".*1 of 12 elements are off, worst at \(1, 2\).*backward -?0$"):
        gradcheck(double, [array(3, 4)], names=["table"])


def test_a_gradient_that_is_missing_is_caught():
    @op
    def forgetful(a, b):
        return a * b, lambda dy: (dy * b, None)

    with pytest.raises(GradientError, match="input 1"):
        gradcheck(forgetful, [array(3), array(3)])


def test_case_26_a_kink_is_moved_away_from_and_said_so():
    checked, = gradcheck(ops.relu, [np.zeros(5)])
    assert checked.note.startswith("moved off a kink")
    for function in (ops.abs, lambda x: ops.maximum(x, 0), lambda x: ops.clip(x, 0, 1)):
        assert gradcheck(function, [np.zeros(3)])[0].note


def test_case_26_a_kink_next_to_the_point_is_noticed_too():
    for distance in (1e-6, 5e-5, 1e-4, 1.5e-4):
        gradcheck(ops.relu, [np.array([distance, -distance, 1.0])])


def test_a_wrong_gradient_is_not_excused_by_a_kink():
    @op
    def leaky(x):
        return xp.maximum(x, 0), lambda dy: dy

    with pytest.raises(GradientError):
        gradcheck(leaky, [np.zeros(5)])


def test_case_28_tied_entries_do_not_make_max_flaky():
    x = np.array([0.1, 0.97705078, 0.97705078])
    for seed in range(20):
        assert gradcheck(ops.max, [x], seed=seed)[0].note.startswith("moved")


def test_a_function_of_steps_is_skipped_with_a_warning():
    @op
    def steps(x):
        return xp.floor(x * 1e5) * 1e-3, lambda dy: dy * 0

    with pytest.warns(Unchecked, match="input 0 was skipped"):
        checked, = gradcheck(steps, [np.zeros(50)])
    assert checked.note == "skipped: kinks everywhere"


def test_steep_and_curved_functions_are_no_kinks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (lambda x: ops.exp(3 * x), lambda x: (10 * x) ** 3, lambda x: ops.tanh(20 * x),
                         lambda x: 1 / (x * x + 0.1)):
            assert not gradcheck(function, [np.linspace(-1, 1, 7)])[0].note


def test_large_values_do_not_hide_small_gradients_nor_make_false_alarms():
    gradcheck(lambda x: x * 1e-3 + 1e4, [array(4)])
    gradcheck(lambda x: x * 1e6, [array(4)])

    @op
    def wrong(x):
        return x * 1e-3 + 1e4, lambda dy: dy * 2e-3

    with pytest.raises(GradientError):
        gradcheck(wrong, [array(4)])


def test_randomness_is_found_and_so_is_float32_inside():
    with pytest.raises(GradientError, match="two calls gave two results"):
        gradcheck(lambda x: x * float(random.random()), [array(3)])

    @op
    def narrow(x):
        return x.astype(xp.float32), lambda dy: dy.astype(xp.float64)

    with pytest.raises(GradientError, match="float32 from float64"):
        gradcheck(narrow, [array(3)])


def test_a_point_outside_the_domain_is_named_as_such():
    with np.errstate(all="ignore"), pytest.raises(GradientError, match="NaN or infinity"):
        gradcheck(ops.log, [np.array([-1.0])])


def test_lists_integers_masks_and_empty_arrays_among_the_inputs():
    gradcheck(ops.concat, [[array(2), array(3)]])
    gradcheck(ops.embedding, [array(4, 2), np.array([0, 0, 3])])
    checked, = gradcheck(lambda x: ops.exp(x), [array(0, 3)])
    assert checked.note == "no elements"
    with pytest.raises(ValueError, match="no input is floating point"):
        gradcheck(lambda x: x, [np.arange(3)])


def test_the_users_arrays_tensors_and_gradients_stay_as_they_were():
    x, t, p = array(3), normal(3), normal(3)
    p.grad = xp.ones(3, xp.float32)
    before = x.copy(), to_host(t.data).copy(), p.data, p.grad
    gradcheck(lambda a, b: a * b * p, [x, t], parameters=[("p", p)])
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(to_host(t.data), before[1])
    assert p.data is before[2] and p.grad is before[3] and t.grad is None


def test_wrong_gradients_of_parameters_are_named():
    p = normal(3)

    @op
    def wrong(x, w):
        return x * w, lambda dy: (dy * w, dy)

    with pytest.raises(GradientError, match="gradient of scale"):
        gradcheck(lambda x: wrong(x, p), [array(3)], parameters=[("scale", p)])
    assert p.dtype == xp.float32


def test_the_adjoint_of_a_linear_function():
    check_adjoint(lambda x: ops.pad(x.T, [(1, 0), (0, 2)]), array(3, 4))

    @op
    def crooked(x):
        return x[::-1].copy(), lambda dy: dy.copy()

    with pytest.raises(GradientError, match="not the transpose"):
        check_adjoint(crooked, array(4))
