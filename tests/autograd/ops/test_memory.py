"""What ops keep for backward: nothing that it does not need."""

import weakref

import numpy as np
import pytest

from autograd import formulas_only, ops
from autograd.backend import xp
from tests.autograd.leaves import normal

ones = np.ones((3, 4), bool)
KEEP_NO_INPUT = {
    "x + y": lambda x: x + x, "x - y": lambda x: x - x, "2 x": lambda x: 2 * x, "x / 2": lambda x: x / 2,
    "2 - x": lambda x: 2 - x, "-x": ops.neg, "exp": ops.exp, "sqrt": ops.sqrt,
    "maximum": lambda x: ops.maximum(x, 0), "where": lambda x: ops.where(ones, x, 0),
    "clip": lambda x: ops.clip(x, -1, 1), "sum": ops.sum, "mean": ops.mean, "max": ops.max,
    "logsumexp": ops.logsumexp, "var": ops.var, "getitem": lambda x: x[[0, 1]],
    "pad": lambda x: ops.pad(x, [1, 1]), "concat": lambda x: ops.concat([x, x]),
    "stack": lambda x: ops.stack([x, x]), "relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh,
    "softmax": ops.softmax, "log_softmax": ops.log_softmax, "dropout": lambda x: ops.dropout(x, 0.1, ones),
    "layer_norm": lambda x: ops.layer_norm(x, xp.ones(4, xp.float32)),
    "add_rms_norm": lambda x: ops.add_rms_norm(x, x, xp.ones(4, xp.float32))[1],
    "cross_entropy": lambda x: ops.cross_entropy(x, [0, 1, 2]),
    "mse": lambda x: ops.mse(x, xp.ones((3, 4), xp.float32)),
}


@pytest.mark.parametrize("name", KEEP_NO_INPUT)
def test_the_input_dies_though_the_graph_lives(name):
    leaf = normal(3, 4)
    with formulas_only():
        x = ops.abs(leaf * 1)
        watched = weakref.ref(x.data)
        y = KEEP_NO_INPUT[name](x)
        del x
        assert watched() is None
        y.sum().backward()
    assert leaf.grad.shape == (3, 4)


def test_a_product_keeps_only_the_factors_that_somebody_needs():
    leaf, constant = normal(3, 4), xp.ones((3, 4), xp.float32)
    x = leaf * 1
    watched = weakref.ref(x.data)
    y = x * x
    del x
    assert watched() is not None                # both factors are needed
    del y
    assert watched() is None
    assert (leaf * constant).requires_grad
