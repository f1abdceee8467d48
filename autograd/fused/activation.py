"""Twins of bias_gelu and relu: one pass in tiles, the derivative kept where the input was."""

import math

import numpy as np

from autograd import arena
from autograd.fused.tiles import column_sums, contiguous, first, rows_per_tile, scratch, spread
from autograd.ops.activation import bias_gelu, relu
from autograd.tape import accelerates

C0 = math.sqrt(2 / math.pi)
C1 = C0 * 0.044715


def _takes_gelu(x, bias):
    return contiguous(x, bias) and x.ndim >= 2


@accelerates(bias_gelu, when=_takes_gelu, consumes=True, overwrites=True)
def bias_gelu_tiled(x, bias, owned):
    """y = u s(u), u = x + b, s(u) = 1/2 + 1/2 tanh(C0 u + C1 u^3)

    y' = s + y (1 - s)(2 C0 + 6 C1 u^2) is computed at once, from what is in cache, into x if nobody
    else needs x: backward is then one product.
    """
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    slope = rows if owned else arena.empty(rows.shape)
    y = arena.empty(rows.shape)
    step = min(rows_per_tile(width), len(rows))
    biases, room = spread(0, bias, step), [scratch(k, step * width).reshape(step, width) for k in (1, 2, 3)]
    for i in range(0, len(rows), step):
        if i + step > len(rows):
            biases, room = first(biases, len(rows) - i), [each[:len(rows) - i] for each in room]
        _gelu_tile(rows[i:i + step], biases, y[i:i + step], slope[i:i + step], *room)

    def backward(dy, owned):
        dy = np.ascontiguousarray(dy).reshape(rows.shape)
        dx = dy if owned else arena.empty(dy.shape)
        np.multiply(dy, slope, out=dx)
        return dx.reshape(shape), column_sums(dx)

    shape = x.shape
    return y.reshape(shape), backward


def _gelu_tile(x, biases, y, slope, u, square, s):
    np.add(x, biases, out=u)
    np.multiply(u, u, out=square)
    np.multiply(square, C1, out=s)
    np.add(s, C0, out=s)
    np.multiply(s, u, out=s)
    np.tanh(s, out=s)
    np.multiply(s, 0.5, out=s)
    np.add(s, 0.5, out=s)
    np.multiply(u, s, out=y)
    np.multiply(square, 6 * C1, out=square)
    np.add(square, 2 * C0, out=square)
    np.multiply(square, y, out=square)
    np.subtract(1, s, out=u)
    np.multiply(square, u, out=square)
    np.add(square, s, out=slope)


@accelerates(relu, when=contiguous, overwrites=True)
def relu_in_place(x):
    y = arena.empty(x.shape)
    np.maximum(x, 0, out=y)

    def backward(dy, owned):
        dx = dy if owned else arena.empty(dy.shape)
        np.multiply(dy, y > 0, out=dx)
        return dx

    return y, backward
