"""Sums, means, extremes.  axis: None for all, an int, or a tuple; keepdims as in NumPy."""

from autograd.backend import xp
from autograd.ops.common import count, exponentials, shares, spread
from autograd.tape import op


@shares("dy")
@op
def sum(x, axis=None, keepdims=False):
    """y = sum x                dx = dy, repeated"""
    shape = x.shape
    return x.sum(axis, keepdims=keepdims), lambda dy: xp.broadcast_to(spread(dy, shape, axis, keepdims), shape)


@op
def mean(x, axis=None, keepdims=False):
    """y = sum x / n            dx = dy / n, repeated"""
    shape, n = x.shape, count(x, axis) or 1
    return (x.sum(axis, keepdims=keepdims) / n,
            lambda dy: xp.broadcast_to(spread(dy, shape, axis, keepdims) / n, shape))


@op
def max(x, axis=None, keepdims=False):
    """y = max x                dy goes to where the maximum is; equal ones share it"""
    y = x.max(axis, keepdims=True)
    return _squeezed(y, axis, keepdims), _to_extremes(x == y, axis, keepdims)


@op
def min(x, axis=None, keepdims=False):
    """y = min x                dy goes to where the minimum is; equal ones share it"""
    y = x.min(axis, keepdims=True)
    return _squeezed(y, axis, keepdims), _to_extremes(x == y, axis, keepdims)


def _squeezed(y, axis, keepdims):
    """A reduction that was computed with its axes kept, without them unless they are wanted."""
    return y.copy() if keepdims else y.squeeze(axis).copy()


def _to_extremes(here, axis, keepdims):
    def backward(dy):
        ties = here.sum(axis, keepdims=True).astype(dy.dtype)
        return xp.where(here, spread(dy, here.shape, axis, keepdims) / ties, 0)
    return backward


@op
def logsumexp(x, axis=None, keepdims=False):
    """y = log sum e^x          dx = dy e^(x - y), the softmax of x

    The maximum is taken off before exp and added after log, which cancels (CASES 30).
    """
    e, top = exponentials(x, axis)
    total = e.sum(axis, keepdims=True)
    y = xp.where(total == 0, -xp.inf, xp.log(xp.where(total == 0, 1, total)) + top)

    def backward(dy):
        return spread(dy, e.shape, axis, keepdims) * e / xp.where(total == 0, 1, total)

    return _squeezed(y, axis, keepdims), backward


@op
def var(x, axis=None, keepdims=False):
    """y = sum (x - mean)^2 / n             dx = dy 2 (x - mean) / n

    The mean's own dependence on x drops out, because the deviations sum to zero.
    """
    n = count(x, axis) or 1
    deviation = x - x.sum(axis, keepdims=True) / n
    y = (deviation * deviation).sum(axis, keepdims=keepdims) / n
    return y, lambda dy: spread(dy, deviation.shape, axis, keepdims) * deviation * (2 / n)


@op
def argmax(x, axis=None, keepdims=False):
    """Where the maximum is, as int64.  No gradient flows through an index: asking for one is an error."""
    return x.argmax(axis, keepdims=keepdims), None
