"""Rows of a table by number."""

from autograd.backend import add_at, xp
from autograd.ops.common import checked_indices
from autograd.tape import op


@op
def embedding(weight, ids):
    """y = W[ids]               W: (V, d)   ids: (...) integers   y: (..., d)

    dW[ids] += dy, lazy: a token that comes twice gets both gradients (CASES 12, 13)
    Raises IndexError for an id outside 0 <= id < V, where ids are on the host (CASES 14).
    """
    ids, (shape, dtype) = checked_indices(ids, len(weight), "embedding"), (weight.shape, weight.dtype)

    def gradient(dy):
        dw = xp.zeros(shape, dtype)
        if dy.size:
            add_at(dw, ids, dy)
        return dw

    return weight[ids], lambda dy: lambda: gradient(dy)
