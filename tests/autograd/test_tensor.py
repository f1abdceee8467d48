"""Tensor: what it takes, what it is made of, how it is used."""

import numpy as np
import pytest

from autograd import Tensor, ops
from autograd.backend import is_array, xp
from tests.autograd.leaves import leaf, normal, same


@pytest.mark.parametrize("data, dtype", [
    (1.5, "float32"), ([1.0, 2.0], "float32"), ([[1.0], [2.0]], "float32"), (np.ones(2), "float64"),
    (np.ones(2, "float16"), "float16"), (np.float64(2), "float64"), ([True, False], "bool"), ([1, 2], "int64"),
])
def test_numbers_become_float32_and_arrays_keep_their_dtype(data, dtype):
    t = Tensor(data)
    assert t.dtype == dtype and is_array(t.data)
    assert t.shape == np.shape(data) and t.ndim == np.ndim(data) and t.size == np.size(data)


@pytest.mark.parametrize("data", [[1, 2], [True], np.arange(3)])
def test_case_16_only_floating_point_can_require_a_gradient(data):
    with pytest.raises(TypeError, match="only floating point can require a gradient"):
        Tensor(data, requires_grad=True)


def test_a_tensor_of_a_tensor_is_refused():
    with pytest.raises(TypeError, match="detach"):
        Tensor(leaf([1.0]))


def test_detach_shares_the_data_and_not_the_past():
    x = leaf([1.0, 2.0])
    y = (x * 2).detach()
    assert not y.requires_grad and y.origin is None
    (y * x).sum().backward()
    same(x.grad, [2, 4])


def test_item_float_int_bool_and_numpy():
    t = leaf(2.5)
    assert t.item() == float(t) == leaf([[2.5]]).item() == 2.5 and int(t) == 2 and bool(t)
    assert isinstance(t.numpy(), np.ndarray)
    assert len(normal(3, 2)) == 3


def test_the_representation_tells_the_past():
    x = leaf([1.0])
    assert "requires_grad" in repr(x) and "from mul" in repr(x * 2) and "Tensor" in repr(x.detach())


def test_a_tensor_takes_weak_references_and_is_a_key():
    import weakref
    x = leaf([1.0])
    assert weakref.ref(x)() is x
    assert {x: 1}[x] == 1


@pytest.mark.parametrize("method", ["sum", "mean", "max", "min", "var", "argmax", "logsumexp", "exp", "sqrt", "abs",
                                    "relu", "gelu", "silu", "sigmoid", "tanh", "softmax", "log_softmax", "log"])
def test_methods_are_the_ops(method):
    x = Tensor(xp.asarray(np.array([[1.0, 2.0], [0.5, 3.0]], "float32")))
    same(getattr(x, method)(), getattr(ops, method)(x).numpy())


def test_reversed_operators_with_host_numbers_of_numpy():
    x = leaf([2.0])
    for y in (np.float32(3) * x, np.float64(3) * x, np.int64(3) * x):
        assert isinstance(y, Tensor)
        same(y, [6], "float32")


def test_a_loss_can_be_formatted_and_not_iterated_over():
    loss = leaf(2.5)
    assert f"{loss:.2f}" == "2.50" and "Tensor" in f"{loss}"
    with pytest.raises(TypeError, match="cannot be iterated over"):
        list(loss)
    assert [float(x) for x in leaf([1.0, 2.0])] == [1, 2]


def test_numpy_does_not_take_a_tensor_apart_element_by_element():
    with pytest.raises(TypeError, match=r"x\.numpy\(\) gives its values"):
        np.asarray(normal(3))


def test_a_host_array_joins_only_where_the_device_is_the_host():
    x, array = leaf([2.0]), np.array([3.0], "float32")
    if is_array(array):
        for y in (array * x, x * array):
            assert isinstance(y, Tensor)
            same(y, [6])
    else:
        with pytest.raises(TypeError):
            x * array
