"""softmax and log_softmax."""

from autograd.backend import xp
from autograd.ops.common import exponentials, softmax_of
from autograd.tape import op


@op
def softmax(x, axis=-1):
    """y_i = exp(x_i) / sum_j exp(x_j)

    The Jacobian is diag(y) - y y^T, so   dx = y * (dy - sum_j dy_j y_j).
    A row of nothing but -inf gives zeros, and zero gradients (CASES 34).
    """
    y = softmax_of(x, axis)

    def backward(dy):
        return y * (dy - (dy * y).sum(axis, keepdims=True))

    return y, backward


@op
def log_softmax(x, axis=-1):
    """y_i = x_i - log sum_j exp(x_j)

    dx = dy - e^y sum_j dy_j                A row of nothing but -inf stays -inf, with zero gradients.
    """
    e, top = exponentials(x, axis)
    total = e.sum(axis, keepdims=True)
    y = x - top - xp.log(xp.where(total == 0, 1, total))

    def backward(dy):
        dx = dy - xp.exp(y) * dy.sum(axis, keepdims=True)
        return xp.where(y == -xp.inf, 0, dx)

    return y, backward
