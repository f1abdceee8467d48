import numpy as np

from autograd import Tensor, no_grad, ops
from examples import neuron
from tests.examples.running import run


def test_fact_2_a_linear_network_of_46_parameters_equals_one_layer_of_8():
    model = neuron.network(neuron.SIZES, activation=None, bias=0.5)
    weight, bias = neuron.collapsed(model)
    x = np.random.default_rng(3).normal(size=(50, 3))
    with no_grad():
        np.testing.assert_allclose(model(Tensor(x)).numpy(), x @ weight + bias, rtol=0, atol=1e-13)
    assert neuron.count(model) == 46 and weight.size + bias.size == 8


def test_fact_2_with_relu_it_does_not_collapse():
    x = np.random.default_rng(3).normal(size=(200, 3))
    straight, bent = (neuron.network(neuron.SIZES, activation, bias=0.5) for activation in (None, ops.relu))
    assert neuron.distance_from_linear(straight, x) < 1e-12
    assert neuron.distance_from_linear(bent, x) > 0.1


def test_only_the_network_with_a_bend_learns_exclusive_or():
    loss, outputs = neuron.learn_xor(None)
    assert abs(loss - 0.25) < 1e-3
    loss, outputs = neuron.learn_xor(ops.relu)
    assert loss < 1e-3 and outputs.round().tolist() == [0, 1, 1, 0]


def test_fact_2_is_printed():
    said = run("neuron.py")
    assert "3-4-4-2: 46 parameters" in said and "with 8 parameters" in said
    assert "without activation  loss 0.2500" in said
