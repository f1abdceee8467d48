"""The contract of layers: what is right passes, and every promise that a layer breaks is caught and named."""

import numpy as np
import pytest

from autograd import op, ops
from autograd.backend import to_host, xp
from autograd.gradcheck import ContractError, check_layer
from tests.autograd.leaves import normal

random = np.random.default_rng(11)


def array(*shape):
    return random.standard_normal(shape)


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
