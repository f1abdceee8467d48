"""The contract kit: it passes what is right, and every promise that an op breaks is caught and named."""

import warnings

import numpy as np
import pytest

from autograd import op, ops
from autograd.backend import device, to_host, xp
from autograd.gradcheck import (
    ContractError,
    GradientError,
    Unchecked,
    check_adjoint,
    check_layer,
    check_op,
    gradcheck,
)
from autograd.ops.common import shares
from tests.autograd.leaves import normal

random = np.random.default_rng(11)


def array(*shape):
    return random.standard_normal(shape)


# ------------------------------------------------------------------------------------ gradcheck

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


# ------------------------------------------------------------------------------------ check_op: a broken op each

@op
def honest(a, b):
    """y = a b"""
    return a * b, lambda dy: (dy * b, dy * a)


def broken(fail, words, inputs=None, kind=ContractError, **keywords):
    """A case of an op that breaks one promise: `fail(x)` -> (y, backward)."""
    return pytest.param(op(fail), words, inputs, kind, keywords, id=fail.__name__)


def writes_into_its_input(x):
    x *= 2
    return x * 1, lambda dy: dy * 1


def writes_into_dy(x):
    def backward(dy):
        dy *= 2
        return dy * 1
    return 2 * x, backward


def writes_into_its_input_in_backward(x):
    def backward(dy):
        x.fill(0)
        return 2 * dy
    return 2 * x, backward


def returns_a_view(x):
    return x[:], lambda dy: dy * 1


def returns_its_input(x):
    return x, lambda dy: dy * 1


def passes_dy_on(x):
    return x * 1, lambda dy: dy


def passes_a_view_of_dy_on(x):
    return x.reshape(-1) * 1, lambda dy: dy.reshape(x.shape)


def gives_its_output_as_gradient(x):
    """Right, until somebody adds to the gradient in place."""
    y = x * 0
    return y, lambda dy: y


def keeps_the_shape_of_dy(a, b):
    return a + b, lambda dy: (dy * 1, dy * 1)


def promotes(x):
    return x * np.float64(2), lambda dy: dy * 2.0


def promotes_its_gradient(x):
    return x * 2.0, lambda dy: dy * xp.full(x.shape, 2.0)


def returns_a_lazy_float64(x):
    return x * 2.0, lambda dy: lambda: dy * xp.full(x.shape, 2.0)


def assumes_contiguous_memory(x):
    flat = x if x.flags.c_contiguous else x * 0
    return flat * 2, lambda dy: dy * 2


def assumes_contiguous_dy(x):
    return x * 2, lambda dy: (dy if dy.flags.c_contiguous else dy * 0) * 2


def keeps_itself_alive(x):
    def backward(dy):
        return backward.factor * dy
    backward.factor = 2.0
    return x * 2.0, backward


kept_for_ever = []


def keeps_its_inputs(x):
    kept_for_ever.append(x)
    return x * 2, lambda dy: dy * 2


def fails_on_nothing(x):
    return x / float(x.size > 0 or 1) * (1 if x.size else [][0]), lambda dy: dy * 1


BROKEN = [
    broken(writes_into_its_input, "two calls gave two results", kind=GradientError),
    broken(writes_into_dy, "backward wrote into dy"),
    broken(writes_into_its_input_in_backward, "wrote into input 0"),
    broken(returns_a_view, r'output 0 shares memory with input 0: copy it, or declare @shares\("y"\)'),
    broken(returns_its_input, "output 0 shares memory with input 0"),
    broken(passes_dy_on, r'gradient of input 0 shares memory with dy: copy it, or declare @shares\("dy"\)'),
    broken(passes_a_view_of_dy_on, "shares memory with dy"),
    broken(gives_its_output_as_gradient, "shares memory with an input or an output"),
    broken(keeps_the_shape_of_dy, r"gradient of shape \(3, 4\)", [array(3, 4), array(1, 4)]),
    broken(promotes, "output 0 is float64, its inputs are float32"),
    broken(promotes_its_gradient, "float64.*float32"),
    broken(returns_a_lazy_float64, "float64.*float32"),
    broken(assumes_contiguous_memory, "output 0 changes when inputs are non-contiguous"),
    broken(assumes_contiguous_dy, "gradient of input 0 changes when inputs or dy are non-contiguous"),
    broken(keeps_itself_alive, "still alive after forward.*its backward"),
    broken(keeps_its_inputs, "still alive after forward.*input 0"),
    broken(fails_on_nothing, "list index", kind=IndexError, empty=[np.zeros((0, 4))]),
]


@pytest.mark.parametrize("function, words, inputs, kind, keywords", BROKEN)
def test_every_broken_promise_is_caught(function, words, inputs, kind, keywords):
    with pytest.raises(kind, match=words):
        check_op(function, inputs or [array(3, 4)], **keywords)
    kept_for_ever.clear()


def test_an_honest_op_passes_everything():
    check_op(honest, [array(3, 4), array(3, 4)], np.multiply, empty=[np.zeros((0, 4)), np.zeros((0, 4))])


def test_values_are_held_against_the_reference():
    with pytest.raises(ContractError, match="honest: output 0 in float64 differs from the reference by"):
        check_op(honest, [array(3, 4), array(3, 4)], lambda a, b: a * b * (1 + 1e-6))
    with pytest.raises(ContractError, match=r"has shape \(3, 4\), the reference \(12,\)"):
        check_op(honest, [array(3, 4), array(3, 4)], lambda a, b: (a * b).ravel())
    with pytest.raises(ContractError, match="1 outputs, the reference has 2"):
        check_op(honest, [array(3, 4), array(3, 4)], lambda a, b: (a, b))
    with pytest.raises(ContractError, match="by inf"):
        check_op(honest, [array(3, 4), array(3, 4)], lambda a, b: a * b * np.nan)


def test_case_3_an_op_that_forgets_its_second_use_of_one_array_is_caught():
    @op
    def once(a, b):
        return a * b, lambda dy: (dy * b, None if a is b else dy * a)

    with pytest.raises(GradientError, match="one array as inputs 0 and 1"):
        check_op(once, [array(3), array(3)])


def test_sharing_may_be_declared_at_the_op_or_at_the_call():
    declared = shares("y")(op(returns_a_view))
    check_op(declared, [array(3)])
    check_op(op(returns_a_view), [array(3)], views=True)
    check_op(op(passes_dy_on), [array(3)], passes=True)
    with pytest.raises(ContractError, match="shares memory"):
        check_op(declared, [array(3)], views=False)
    with pytest.raises(ValueError, match='expected "y" or "dy"'):
        shares("x")


def test_composites_and_options_are_checked_too():
    check_op(lambda x, axis: ops.softmax(x * 2, axis) + 1, [array(3, 4)], axis=0)


def on_the_host(x):
    """y = 2 x, with a constant that stays on the host."""
    two = np.full(x.shape, 2, str(x.dtype))
    return x * two, lambda dy: dy * two


stays_on_the_host = op(on_the_host)
stays_on_the_host.__qualname__ = "stays_on_the_host"


@pytest.mark.skipif(device != "cpu", reason="starts a child on the strict device")
def test_a_host_array_inside_is_caught_on_the_strict_device():
    check_op(stays_on_the_host, [array(3)])                 # NumPy does not mind
    with pytest.raises(AssertionError, match=r"fails on the strict device(?s:.*)host"):
        check_op(stays_on_the_host, [array(3)], strict=True)
    check_op(ops.gelu, [array(3)], strict=True)
    with pytest.raises(ValueError, match="cannot be imported by a child"):
        check_op(op(lambda x: (x * 1, lambda dy: dy * 1)), [array(3)], strict=True)


@pytest.mark.strict
def test_a_host_array_inside_is_caught_here():
    with pytest.raises(TypeError, match="host"):
        check_op(stays_on_the_host, [array(3)])


# ------------------------------------------------------------------------------------ check_layer

class Dense:
    """y = tanh(x W + b), with its parameters in a list and in a dict."""

    def __init__(self):
        self.weights, self.more = [normal(4, 3)], {"bias": normal(3)}

    def __call__(self, x):
        return ops.tanh(ops.linear(x, self.weights[0], self.more["bias"]))


def test_an_honest_layer_passes_and_keeps_its_state():
    layer = Dense()
    layer.weights[0].grad = kept = xp.ones((4, 3), xp.float32)
    data = layer.weights[0].data
    check_layer(layer, [array(2, 4)], empty=[np.zeros((0, 4))],
                reference=lambda x: np.tanh(x @ to_host(data) + to_host(layer.more["bias"].data)))
    assert layer.weights[0].data is data and layer.weights[0].grad is kept


def test_parameters_are_found_by_name():
    seen = []

    class Named(Dense):
        def named_parameters(self):
            seen.append(1)
            return [("w", self.weights[0]), ("b", self.more["bias"])]

    check_layer(Named(), [array(2, 4)])
    assert seen


class ForgetsAParameter(Dense):
    def __call__(self, x):
        return ops.tanh(ops.linear(x, self.weights[0]))


class KeepsItsActivations(Dense):
    def __call__(self, x):
        self.hidden = super().__call__(x)
        return self.hidden


class RemembersTheCall(Dense):
    calls = 0

    def __call__(self, x):
        self.calls += 1
        return super().__call__(x) * self.calls


class WidensToFloat64(Dense):
    def __call__(self, x):
        y = super().__call__(x)
        return y * xp.ones(3, xp.float64)


class ChangesAParameter(Dense):
    def __call__(self, x):
        y = super().__call__(x)
        self.more["bias"].data[0] = 0
        return y


class WrongGradient(Dense):
    def __call__(self, x):
        return wrong_bias(super().__call__(x), self.more["bias"])


@op
def wrong_bias(x, b):
    return x + b, lambda dy: (dy * 1, lambda: 2 * dy.sum(0))


@pytest.mark.parametrize("layer, words", [
    (ForgetsAParameter, r"more\.bias got no gradient"), (KeepsItsActivations, "must not keep what it computes"),
    (RemembersTheCall, "two results|second call"), (WidensToFloat64, "output 0 is float64, parameters and inputs are"),
    (ChangesAParameter, r"more\.bias was changed by forward"),
    (WrongGradient, r"gradient of more\.bias \(3,\) is wrong"),
])
def test_every_broken_layer_is_caught(layer, words):
    with pytest.raises(AssertionError, match=words):
        check_layer(layer(), [array(2, 4)])


def test_a_parameter_may_be_said_to_be_unused():
    check_layer(ForgetsAParameter(), [array(2, 4)], unused=["more.bias"])
    with pytest.raises(ContractError, match="though it is said to be unused"):
        check_layer(Dense(), [array(2, 4)], unused=["more.bias"])
