"""Twins of layer_norm and add_layer_norm: statistics as matrix-vector products, one tile at a time."""

import math

import numpy as np

from autograd import arena
from autograd.fused.tiles import averaging, contiguous, first, ones, rows_per_tile, scratch, spread
from autograd.ops.normalization import add_layer_norm, layer_norm
from autograd.tape import accelerates


def _takes(x, gain, bias=None, eps=1e-5):
    return contiguous(x, gain, bias) and x.ndim >= 2


def _takes_sum(x, branch, gain, bias=None, eps=1e-5):
    return contiguous(x, branch, gain, bias) and x.ndim >= 2 and (branch is None or branch.shape == x.shape)


@accelerates(layer_norm, when=_takes, overwrites=True)
def layer_norm_tiled(x, gain, bias=None, eps=1e-5):
    _, y, kept = _normalize(x, None, gain, bias, eps)

    def backward(dy, owned):
        return _gradients(None, dy, (False, owned), gain, bias, *kept)

    return y, backward


@accelerates(add_layer_norm, when=_takes_sum, overwrites=True)
def add_layer_norm_tiled(x, branch, gain, bias=None, eps=1e-5):
    s, y, kept = _normalize(x, branch, gain, bias, eps)

    def backward(dys, owned):
        ds, dy = dys
        if dy is None:
            return ds, (None if branch is None else ds), None, None
        dx, dgain, dbias = _gradients(ds, dy, owned, gain, bias, *kept)
        return dx, (None if branch is None else dx), dgain, dbias

    return (s, y), backward


def _normalize(x, branch, gain, bias, eps):
    """s = x + branch, y = gain n + bias with n = (s - mean) / std;  keeps n and 1/std."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    count, step = len(rows), min(rows_per_tile(width), len(rows))
    n, y, scale = arena.empty(rows.shape), arena.empty(rows.shape), arena.empty((count, 1))
    s = rows if branch is None else arena.empty(rows.shape)
    gains, biases = spread(0, gain, step), None if bias is None else spread(1, bias, step)
    branch = None if branch is None else branch.reshape(rows.shape)
    for i in range(0, count, step):
        if i + step > count:
            gains, biases = first(gains, count - i), None if bias is None else first(biases, count - i)
        tile = slice(i, i + step)
        sums, normal, out = s[tile], n[tile], y[tile]
        if branch is not None:
            np.add(rows[tile], branch[tile], out=sums)
        _normalize_tile(sums, normal, scale[tile], eps)
        np.multiply(normal, gains, out=out)
        if bias is not None:
            np.add(out, biases, out=out)
    return s.reshape(x.shape), y.reshape(x.shape), (n, scale)


def _normalize_tile(s, n, scale, eps):
    """n = (s - mean) scale,  scale = 1 / sqrt(var + eps) = sqrt(width) / sqrt(sum of squares + width eps)"""
    width = s.shape[1]
    np.subtract(s, np.dot(s, averaging(width))[:, None], out=n)
    spread_of = np.vecdot(n, n)
    np.add(spread_of, width * eps, out=spread_of)
    np.sqrt(spread_of, out=spread_of)
    np.divide(math.sqrt(width), spread_of[:, None], out=scale)
    np.multiply(n, scale, out=n)


def _gradients(ds, dy, owned, gain, bias, n, scale):
    """dx = ds + (h - mean(h) - n mean(h n)) / std with h = gain dy;  dgain = sum dy n,  dbias = sum dy.

    The sums over rows are taken while the tile is in cache.  dx goes into ds or dy where they may
    be overwritten.
    """
    shape, (count, width) = dy.shape, n.shape
    dy = np.ascontiguousarray(dy).reshape(n.shape)
    ds = None if ds is None else np.ascontiguousarray(ds).reshape(n.shape)
    dx = ds if owned[0] and ds is not None else dy if owned[1] else arena.empty(n.shape)
    step = min(rows_per_tile(width), count)
    gains, mean_gain = spread(0, gain, step), gain * averaging(width)
    dgain, dbias = np.zeros((2, width), np.float32)
    rows, h, t = ones(step), *[scratch(k, step * width).reshape(step, width) for k in (2, 3)]
    for i in range(0, count, step):
        if i + step > count:
            rows, h, t, gains = rows[:count - i], h[:count - i], t[:count - i], first(gains, count - i)
        tile = slice(i, i + step)
        grad = dy[tile]
        np.multiply(grad, n[tile], out=t)
        dgain += np.dot(rows, t)
        dbias += np.dot(rows, grad)
        along, mean = np.dot(t, mean_gain), np.dot(grad, mean_gain)
        np.multiply(grad, gains, out=h)
        np.subtract(h, mean[:, None], out=h)
        np.multiply(n[tile], along[:, None], out=t)
        np.subtract(h, t, out=h)
        if ds is None:
            np.multiply(h, scale[tile], out=dx[tile])
        else:
            np.multiply(h, scale[tile], out=h)
            np.add(ds[tile], h, out=dx[tile])
    return dx.reshape(shape), dgain, None if bias is None else dbias
