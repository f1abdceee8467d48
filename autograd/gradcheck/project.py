"""Outputs of any number and shape as one number, and inputs of any kind as leaves."""

import numpy

from autograd.backend import is_array, to_device, xp
from autograd.tape import op
from autograd.tensor import Tensor


@op
def project(outputs, weights):
    """y = sum_i <w_i, y_i>     dy_i = dy w_i: one number whose gradient is the whole Jacobian's, along w"""
    return (sum((y * w).sum() for y, w in zip(outputs, weights)),
            lambda dy: [(w * dy).astype(y.dtype, copy=False) for y, w in zip(outputs, weights)])


def floating_outputs(result):
    """The floating-point Tensors among what a function returned."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    for y in results:
        if not isinstance(y, Tensor):
            raise TypeError(f"expected Tensors as outputs, got {type(y).__name__}")
    return [y for y in results if y.dtype.kind == "f"]


def random_like(generator, y):
    """Standard normal, drawn on the host so that every device checks along the same direction."""
    return to_device(numpy.asarray(generator.standard_normal(y.shape)).astype(str(y.dtype)))


class Inputs:
    """Inputs of a call as leaves of one dtype that can be moved.

    Floating-point arrays and Tensors, also those in lists, become leaves (fresh copies);
    everything else is passed on as it is.  leaves: [(name, Tensor)]
    """

    def __init__(self, inputs, dtype, names=(), arrange=lambda array: array):
        self.leaves, self.args = [], []
        for i, x in enumerate(inputs):
            name = names[i] if i < len(names) else f"input {i}"
            if isinstance(x, (list, tuple)) and any(map(_is_floating, x)):
                self.args.append([self._leaf(y, f"{name}[{j}]", dtype, arrange) for j, y in enumerate(x)])
            else:
                self.args.append(self._leaf(x, name, dtype, arrange))

    def _leaf(self, x, name, dtype, arrange):
        if not _is_floating(x):
            return x
        array = x.data if isinstance(x, Tensor) else to_device(x)
        leaf = Tensor(arrange(xp.array(array, dtype=dtype)), requires_grad=True)
        self.leaves.append((name, leaf))
        return leaf


def _is_floating(x):
    array = x.data if isinstance(x, Tensor) else x
    return (is_array(array) or isinstance(array, (numpy.ndarray, numpy.generic))) and array.dtype.kind == "f"
