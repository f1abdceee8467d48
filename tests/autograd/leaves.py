"""Leaves and comparisons that tests of the tape and of the ops share, on any device."""

import numpy as np

from autograd import Tensor
from autograd.backend import to_host, xp


def leaf(values, dtype="float32"):
    """A Tensor that requires a gradient."""
    return Tensor(xp.asarray(np.asarray(values, dtype)), requires_grad=True)


def normal(*shape, seed=0, dtype="float32"):
    return leaf(np.random.default_rng(seed).standard_normal(shape), dtype)


def host(x):
    """Values of a Tensor or an array, in NumPy."""
    return to_host(x.data if isinstance(x, Tensor) else x)


def same(x, expected, dtype=None):
    """x holds exactly these values, in their shape (and this dtype)."""
    np.testing.assert_array_equal(host(x), expected, strict=False)
    assert host(x).shape == np.shape(expected)
    assert dtype is None or host(x).dtype == dtype
