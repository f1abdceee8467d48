"""layer_norm, rms_norm, their fusions with the residual addition before them, and batch_norm.

n is x normalised, h = g dy its gradient.  Normalising takes the constant direction (layer_norm) and the
direction of n out of x, so backward takes the same directions out of h.
"""

from autograd.backend import xp
from autograd.ops.common import flat, shares
from autograd.tape import op


def _standardize(x, eps):
    """n = (x - mean) / r,  r = sqrt(var + eps), over the last axis; dx(h) = (h - mean(h) - n mean(h n)) / r"""
    centred = x - x.mean(-1, keepdims=True)
    r = xp.sqrt((centred * centred).mean(-1, keepdims=True) + eps)
    n = centred / r
    return n, lambda h: (h - h.mean(-1, keepdims=True) - n * (h * n).mean(-1, keepdims=True)) / r


def _rescale(x, eps):
    """n = x / r,  r = sqrt(mean(x^2) + eps), over the last axis; dx(h) = (h - n mean(h n)) / r"""
    r = xp.sqrt((x * x).mean(-1, keepdims=True) + eps)
    n = x / r
    return n, lambda h: (h - n * (h * n).mean(-1, keepdims=True)) / r


def _of_parameters(dy, n, bias):
    """dg = sum dy n   db = sum dy, over all but the last axis, lazy"""
    dgain, dbias = lambda: flat(dy * n).sum(0), lambda: flat(dy).sum(0)
    return (dgain,) if bias is None else (dgain, dbias)


@op
def layer_norm(x, gain, bias=None, eps=1e-5):
    """y = g n + b,  n = (x - mean) / sqrt(var + eps) over the last axis        arxiv.org/abs/1607.06450

    dx = (h - mean(h) - n mean(h n)) / sqrt(var + eps)  with h = g dy       dg = sum dy n   db = sum dy, lazy
    """
    n, dx = _standardize(x, eps)
    y = gain * n if bias is None else gain * n + bias
    return y, lambda dy: (dx(gain * dy), *_of_parameters(dy, n, bias))


@op
def rms_norm(x, gain, eps=1e-5):
    """y = g n,  n = x / sqrt(mean(x^2) + eps) over the last axis               arxiv.org/abs/1910.07467

    dx = (h - n mean(h n)) / sqrt(mean(x^2) + eps)  with h = g dy           dg = sum dy n, lazy
    """
    n, dx = _rescale(x, eps)
    return gain * n, lambda dy: (dx(gain * dy), *_of_parameters(dy, n, None))


@shares("y", "dy")
@op
def add_layer_norm(x, branch, gain, bias=None, eps=1e-5):
    """s = x + branch (x itself if branch is None),  y = layer_norm(s): the residual step of a block.

    -> (s, y)           ds = ds from above + the norm's own;  x and branch both receive it
    """
    s = _residual(x, branch)
    n, dx = _standardize(s, eps)
    y = gain * n if bias is None else gain * n + bias
    joined = branch is not None
    return (s, y), lambda dys: _through_residual(dys, joined, gain, n, dx, bias)


@shares("y", "dy")
@op
def add_rms_norm(x, branch, gain, eps=1e-5):
    """s = x + branch (x itself if branch is None),  y = rms_norm(s)

    -> (s, y)           ds = ds from above + the norm's own;  x and branch both receive it
    """
    s = _residual(x, branch)
    n, dx = _rescale(s, eps)
    joined = branch is not None
    return (s, gain * n), lambda dys: _through_residual(dys, joined, gain, n, dx, None)


def _residual(x, branch):
    if branch is not None and branch.shape != x.shape:
        raise ValueError(f"a residual stream of shape {x.shape} and a branch of shape {branch.shape}: "
                         "they must be equal")
    return x if branch is None else x + branch


def _through_residual(dys, joined, gain, n, dx, bias):
    ds, dy = dys
    of_parameters = ()
    if dy is not None:
        own = dx(gain * dy)
        ds = own if ds is None else ds + own
        of_parameters = _of_parameters(dy, n, bias)
    elif bias is not None:
        of_parameters = None, None
    else:
        of_parameters = None,
    return ds, ds if joined else None, *of_parameters


@op
def batch_norm(x, gain, bias, eps=1e-5, axis=1):
    """y = g n + b,  n = (x - mean) / sqrt(var + eps) over every axis but `axis`    arxiv.org/abs/1502.03167

    -> (y, mean, var): the statistics of this batch, (C,), for a running average.  All three have gradients:
    dx = (h - mean(h) - n mean(h n)) / sqrt(var + eps) + dmean / N + dvar 2 (x - mean) / N
    """
    if x.ndim < 2:
        raise ValueError(f"batch_norm: expected rows and channels, got {x.shape}")
    axis %= x.ndim
    others = tuple(i for i in range(x.ndim) if i != axis)
    column = tuple(-1 if i == axis else 1 for i in range(x.ndim))           # (C,) against x
    number = x.size // x.shape[axis] if x.size else 1
    mean = x.sum(others) / number
    centred = x - mean.reshape(column)
    var = (centred * centred).sum(others) / number
    r = xp.sqrt(var + eps).reshape(column)
    n = centred / r

    def average(h):
        return h.sum(others, keepdims=True) / number

    def backward(dys):
        dy, dmean, dvar = dys
        dx, dgain, dbias = xp.zeros_like(n), None, None
        if dy is not None:
            h = gain.reshape(column) * dy
            dx = (h - average(h) - n * average(h * n)) / r
            dgain, dbias = lambda: (dy * n).sum(others), lambda: dy.sum(others)
        if dmean is not None:
            dx = dx + dmean.reshape(column) / number
        if dvar is not None:
            dx = dx + dvar.reshape(column) * centred * (2 / number)
        return dx, dgain, dbias

    return (gain.reshape(column) * n + bias.reshape(column), mean, var), backward
