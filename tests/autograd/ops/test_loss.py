import math
import warnings

import numpy as np
import pytest

from autograd import ops
from autograd.backend import to_device, xp
from tests.autograd.leaves import host, leaf, normal, same


def test_nothing_counted_gives_a_finite_zero_and_zero_gradients():
    x = normal(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = ops.cross_entropy(x, np.array([-1, -1]))
        loss.backward()
    same(loss, 0.0, "float32")
    same(x.grad, np.zeros((2, 3)))


def test_case_42_no_rows_at_all():
    x = normal(0, 3)
    loss = ops.cross_entropy(x, np.zeros(0, "int64"))
    loss.backward()
    same(loss, 0.0)
    assert x.grad.shape == (0, 3)


def test_case_51_parts_divided_by_the_global_count_add_up_to_the_whole():
    x, targets = normal(6, 4, dtype="float64"), np.array([0, 3, -1, -1, -1, 2])
    whole = ops.cross_entropy(x, targets)
    parts = [ops.cross_entropy(x[i:i + 3], targets[i:i + 3], total=3) for i in (0, 3)]
    np.testing.assert_allclose(float(parts[0] + parts[1]), float(whole), rtol=1e-14)


def test_the_count_may_be_a_number_on_the_device():
    x, targets = normal(2, 3), np.array([0, 1])
    a = ops.cross_entropy(x, targets, total=to_device(np.int64(5)))
    b = ops.cross_entropy(x, targets, total=5)
    assert a.dtype == b.dtype == xp.float32
    np.testing.assert_allclose(host(a), host(b), rtol=1e-6)


def test_a_loss_beyond_the_range_of_exp_is_right():
    x = leaf([[0.0, 1000.0]])
    loss = ops.cross_entropy(x, np.array([0]))
    loss.backward()
    same(loss, 1000.0)
    same(x.grad, [[-1, 1]])


def test_an_ignored_row_may_hold_anything():
    x = leaf([[np.inf, -np.inf], [-np.inf, -np.inf], [0.0, 0.0]])
    with np.errstate(invalid="ignore"):
        loss = ops.cross_entropy(x[1:], np.array([-1, 0]))
        loss.backward()
    np.testing.assert_allclose(float(loss), math.log(2), rtol=1e-6)
    same(x.grad, [[0, 0], [0, 0], [-0.5, 0.5]])


@pytest.mark.parametrize("bad", [3, -2, 100])
def test_case_14_a_target_out_of_range_is_named_with_the_size(bad):
    with pytest.raises(IndexError, match=rf"id {bad} is out of range for size 3"):
        ops.cross_entropy(normal(2, 3), np.array([0, bad]))


def test_targets_of_another_shape_or_kind_are_refused():
    with pytest.raises(ValueError, match=r"want targets \(2,\)"):
        ops.cross_entropy(normal(2, 3), np.array([[0], [1]]))
    with pytest.raises(TypeError, match="expected integers"):
        ops.cross_entropy(normal(2, 3), np.array([0.0, 1.0]))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64"])
def test_targets_of_any_integer_type_may_be_counted(dtype):
    x = normal(2, 3)
    a, b = (ops.cross_entropy(x, np.array([2, 0], t)) for t in (dtype, "int64"))
    same(a, host(b))


def test_mse_of_integers_stays_float32():
    x = normal(3)
    loss = ops.mse(x, to_device(np.array([0, 1, 2])))
    loss.backward()
    assert loss.dtype == x.grad.dtype == xp.float32


def test_mse_refuses_to_broadcast():
    with pytest.raises(ValueError, match="must be equal"):
        ops.mse(normal(3, 1), normal(3))


def test_mse_gives_both_sides_their_gradients():
    x, y = leaf([1.0, 2.0]), leaf([0.0, 4.0])
    ops.mse(x, y).backward()
    same(x.grad, [1, -2])
    same(y.grad, [-1, 2])
