"""The contract of ops: what is right passes, and every promise that an op breaks is caught and named."""

import numpy as np
import pytest

from autograd import op, ops
from autograd.backend import device, xp
from autograd.gradcheck import ContractError, GradientError, check_op
from autograd.ops.common import shares

random = np.random.default_rng(11)


def array(*shape):
    return random.standard_normal(shape)


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
    check_op(ops.mul, [np.float64(2), array(3)], np.multiply)
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
