"""Modules, parameters, shards and their initialisation by name."""

import numpy as np
import pytest

from autograd import NonFinite, Tensor, debug, ops
from autograd.backend import device, to_host
from minigpt.flat import flatten
from minigpt.module import Module, Parameter, Shard, initialize, named_parameters, normal, ones, zeros


class Tied(Module):
    def __init__(self):
        self.first = Parameter((4, 3), normal(1.0))
        self.layers = [{"gain": Parameter((3,), ones)}, (Parameter((2,), zeros),)]
        self.again = self.first

    def forward(self, x):
        return ops.linear(x, self.first)


def test_names_are_paths_through_attributes_lists_and_dicts_and_a_tied_parameter_comes_once():
    model = Tied()
    named = named_parameters(model)
    assert [name for name, _ in named] == ["first", "layers.0.gain", "layers.1.0"]
    assert named[0][1] is model.first


def test_an_uninitialised_model_gives_nan_rather_than_something_that_looks_right():
    assert np.isnan(to_host(Tied()(Tensor(np.ones((2, 4), "f"))).data)).all()


def test_weights_depend_on_seed_and_name_only():
    one, two, other = initialize(Tied(), 1), initialize(Tied(), 1), initialize(Tied(), 2)
    np.testing.assert_array_equal(to_host(one.first.data), to_host(two.first.data))
    assert (to_host(one.first.data) != to_host(other.first.data)).all()
    assert to_host(one.layers[0]["gain"].data).tolist() == [1, 1, 1]


def test_float64_and_float32_models_start_at_the_same_point():
    narrow, wide = initialize(Tied(), 1), initialize(Tied(), 1, "float64")
    np.testing.assert_array_equal(to_host(wide.first.data).astype("f"), to_host(narrow.first.data))


@pytest.mark.parametrize("axis, sections", [(0, ()), (1, ()), (1, (6, 6, 12))])
def test_shards_put_together_are_the_whole_parameter_bit_for_bit(axis, sections):
    def weight(shard=None):
        class One(Module):
            def __init__(self):
                self.weight = Parameter((6, 24), normal(1.0), shard)
        return to_host(initialize(One(), 3).weight.data)

    whole, parts = weight(), [weight(Shard(axis, i, 3, sections)) for i in range(3)]
    widths = sections or (whole.shape[axis],)
    cut, start = [], 0
    for width in widths:
        cut += [part.take(range(start // 3, (start + width) // 3), axis) for part in parts]
        start += width
    np.testing.assert_array_equal(np.concatenate(cut, axis), whole)


def test_a_shard_that_does_not_divide_says_what_would():
    with pytest.raises(ValueError, match="section of 5 along axis 1 .* 2 equal parts: choose a width divisible by 2"):
        Shard(1, 0, 2, (4, 5)).region((3, 9))
    with pytest.raises(ValueError, match="add up to 8, but axis 1 of .* has 9"):
        Shard(1, 0, 2, (4, 4)).region((3, 9))


def test_debug_mode_names_the_layer():
    class Outer(Module):
        def __init__(self):
            self.inner = Tied()

        def forward(self, x):
            return self.inner(x)

    model = initialize(Outer(), 1)
    with np.errstate(all="ignore"), debug(), pytest.raises(NonFinite, match="linear .*in layer inner"):
        model(Tensor(np.full((2, 4), 3e38, "f")))


def test_a_layer_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        Module()(1)


# ------------------------------------------------------------------------------------ flat buffers

def test_parameters_and_gradients_are_aligned_views_of_two_buffers_in_order():
    model = initialize(Tied(), 1)
    before = to_host(model.first.data).copy()
    flat = flatten(model)
    assert list(flat.ranges) == ["first", "layers.0.gain", "layers.1.0"]
    assert [run.start % 16 for run in flat.ranges.values()] == [0, 0, 0]
    np.testing.assert_array_equal(to_host(model.first.data), before)
    flat.data[flat.ranges["first"]] = 7
    assert (to_host(model.first.data) == 7).all()
    ops.sum(model(Tensor(np.ones((1, 4), "f")))).backward()
    assert model.first.grad is model.first.buffer
    assert (to_host(flat.grad[flat.ranges["first"]]) == 1).all()


@pytest.mark.skipif(device != "cpu", reason="CuPy's pool aligns by itself")
def test_a_weight_and_its_bias_are_neighbours_and_every_parameter_starts_a_cache_line():
    from minigpt.layers import Linear
    layer = initialize(Linear(32, 32), 1)
    flat = flatten(layer)
    assert flat.ranges["weight"].stop == flat.ranges["bias"].start
    assert layer.weight.data.ctypes.data % 64 == 0 and layer.bias.buffer.ctypes.data % 64 == 0


def test_case_41_a_parameter_that_a_step_did_not_use_gets_a_zero_gradient():
    model = initialize(Tied(), 1)
    flat = flatten(model)
    flat.grad.fill(5)
    flat.zero_grad()
    ops.sum(model(Tensor(np.ones((1, 4), "f")))).backward()
    gradient = to_host(flat.gradient())
    assert (gradient[flat.ranges["layers.0.gain"]] == 0).all() and model.layers[0]["gain"].grad is None
    assert (gradient[flat.ranges["first"]] == 1).all()


def test_a_gradient_that_somebody_put_in_place_is_used():
    model = initialize(Tied(), 1)
    flat = flatten(model)
    model.first.grad = model.first.data * 2
    np.testing.assert_array_equal(to_host(flat.view(flat.gradient(), "first")), 2 * to_host(model.first.data))


@pytest.mark.parametrize("shape", [(4, 4, 3), (1, 3), (3,), ()])
def test_case_9_a_gradient_of_another_shape_is_refused_also_where_it_would_broadcast(shape):
    model = initialize(Tied(), 1)
    flat = flatten(model)
    model.first.grad = Tensor(np.ones(shape, "f")).data
    with pytest.raises(ValueError, match=r"first has shape \(4, 3\), but its grad was set to an array of shape"):
        flat.gradient()


def test_flatten_refuses_a_model_of_two_precisions_and_an_empty_one():
    model = initialize(Tied(), 1)
    model.first.data = model.first.data.astype("float64")
    with pytest.raises(ValueError, match="one dtype, these have .*float32.*float64"):
        flatten(model)
    with pytest.raises(ValueError, match="these have none"):
        flatten(Module())


def test_decay_is_for_matrices_once_each_unless_told_otherwise():
    model = initialize(Tied(), 1)
    assert flatten(model).decayed() == [slice(0, 12)]
    model.first.decay = False
    assert flatten(model).decayed() == []
