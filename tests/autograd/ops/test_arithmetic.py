import warnings

import numpy as np
import pytest

from autograd import Tensor, ops
from autograd.backend import to_device, xp
from tests.autograd.leaves import host, leaf, normal, same


def test_case_3_one_tensor_as_both_operands_and_three_times():
    x = leaf(np.ones((2, 3)))
    (x * x).sum().backward()
    same(x.grad, np.full((2, 3), 2))
    x.grad = None
    (x * x * x).sum().backward()
    same(x.grad, np.full((2, 3), 3))


@pytest.mark.parametrize("op", [ops.add, ops.sub, ops.mul, ops.div, ops.maximum, ops.pow])
@pytest.mark.parametrize("shapes", [((3, 4), (1, 4)), ((5, 4), (1,)), ((4, 1), (1, 4)), ((2, 3, 4), (3, 1)),
                                    ((), (2, 2)), ((0, 3), (1, 3)), ((1,), (0,))])
def test_case_7_gradients_have_the_operands_own_shapes(op, shapes):
    a, b = (leaf(np.full(shape, 2.0)) for shape in shapes)
    op(a, b).sum().backward()
    assert (a.grad.shape, b.grad.shape) == shapes
    assert a.grad.dtype == b.grad.dtype == xp.float32


def test_case_8_an_operand_without_axes_gets_a_gradient_without_axes():
    c, v = leaf([1, 2]), leaf(3.0)
    (c * v).sum().backward()
    same(v.grad, 3.0, "float32")
    same(c.grad, [3, 3])


def test_case_20_a_python_scalar_does_not_promote():
    y = ops.maximum(leaf([1, 2], "float16"), 3.1)
    same(y, np.array([3.1, 3.1], "float16"), "float16")


@pytest.mark.parametrize("number", [3, 2.5, np.float64(3), np.int64(3), np.float32(3), True],
                         ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("op", [ops.add, ops.sub, ops.mul, ops.div, ops.pow, ops.maximum, ops.minimum])
def test_case_23_scalars_of_any_kind_keep_float32(op, number):
    for swap in (False, True):
        x = leaf([1, 2, 3])
        y = op(number, x) if swap else op(x, number)
        y.sum().backward()
        assert y.dtype == x.grad.dtype == xp.float32


@pytest.mark.parametrize("count", [np.array(3), np.array(3.0), np.array([1, 2, 3]), np.array([True, False, True])],
                         ids=["0-d int", "0-d float64", "integers", "booleans"])
def test_counts_in_arrays_keep_float32_too(count):
    """On a device every count is a 0-d array, which NumPy's rules would let promote."""
    for op in (ops.add, ops.mul, ops.maximum, lambda a, b: ops.where(True, a, b)):
        x = leaf([1, 2, 3])
        y = op(x, to_device(count))
        y.sum().backward()
        assert y.dtype == x.grad.dtype == xp.float32


def test_case_21_22_float32_gradients_of_counts_and_squares():
    x = leaf([0.5, 2, 3])
    ops.maximum(x, 1).sum().backward()
    same(x.grad, [0, 1, 1], "float32")
    x.grad = None
    (x ** 2).sum().backward()
    same(x.grad, [1, 4, 6], "float32")


def test_case_23_sigmoid_cross_entropy_stays_float32():
    x, t = leaf([-1, 2]), np.array([0, 1], "float32")
    loss = (ops.log(1 + ops.exp(-x)) + x * to_device(1 - t)).sum() / np.float64(2)
    loss.backward()
    assert loss.dtype == x.grad.dtype == xp.float32


def test_case_25_norms_at_zero_have_zero_gradients():
    for norm in (lambda x: ops.sqrt((x * x).sum()), lambda x: (x * x).sum() ** 0.5,
                 lambda x: ((x ** 2).sum() ** 0.5) ** 2, lambda x: ops.abs(x).sum()):
        x = leaf(np.zeros(3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            norm(x).backward()
        same(x.grad, np.zeros(3))


def test_powers_at_zero_have_their_own_slope():
    for exponent, slope in ((1, 1), (2, 0), (0, 0), (3, 0)):
        x = leaf([0.0])
        (x ** exponent).sum().backward()
        same(x.grad, [slope])


def test_case_35_gradients_of_the_two_inputs_of_add_do_not_share_memory():
    x, y = leaf([2.0, 4.0], "float64"), leaf([1.0, 3.0], "float64")
    z = x + y
    (x / z).sum().backward()
    dz = -host(x) / host(z)**2
    np.testing.assert_allclose(host(y.grad), dz, rtol=1e-15)
    np.testing.assert_allclose(host(x.grad), dz + 1 / host(z), rtol=1e-15)
    assert not xp.shares_memory(x.grad, y.grad)


def test_case_37_in_place_operators_make_new_tensors():
    x = leaf([1.0, 2.0])
    before = x
    y = x * x                                   # saves x
    x += y
    assert x is not before
    same(before, [1, 2])
    x.sum().backward()
    same(before.grad, [3, 5])


def test_equal_operands_of_maximum_share_the_gradient():
    a, b = leaf([1.0, 2.0, 3.0]), leaf([1.0, 3.0, 2.0])
    ops.maximum(a, b).sum().backward()
    same(a.grad, [0.5, 0, 1])
    same(b.grad, [0.5, 1, 0])


def test_numbers_and_arrays_on_the_left():
    x = leaf([1.0, 2.0])
    array = xp.asarray(np.array([3.0, 4.0], "float32"))
    same(3 - x, [2, 1])
    same(2 / x, [2, 1])
    same(2 ** x, [2, 4])
    same(array - x, [2, 2])
    assert isinstance(array * x, Tensor)
    same(abs(-x), [1, 2])


def test_comparisons_are_elementwise_and_tensors_stay_keys():
    x, y = normal(3), normal(3, seed=1)
    same(x < y, host(x) < host(y))
    same(x == x, [True] * 3)
    assert len({x, y, x}) == 2
    same(ops.where(x > y, x, y), np.maximum(host(x), host(y)))


def test_where_keeps_nan_of_the_other_branch_out_of_the_gradient():
    x = leaf([-1.0, 4.0])
    with np.errstate(invalid="ignore"):
        ops.where(x > 0, ops.sqrt(ops.where(x > 0, x, 1)), 0).sum().backward()
    same(x.grad, [0, 0.25])


def test_clip_passes_gradients_inside_and_at_its_bounds():
    x = leaf([-2.0, -1.0, 0.0, 1.0, 2.0])
    ops.clip(x, -1, 1).sum().backward()
    same(x.grad, [0, 1, 1, 1, 0])
