"""Losses: sums over what counts, divided by a global count, in every layout (CASES 47, 51)."""

from autograd.backend import is_array, xp
from autograd.ops.common import alike, checked_indices, exponentials, flat, like, unbroadcast
from autograd.tape import op


@op
def cross_entropy(logits, targets, *, total=None, ignore=-1):
    """y = sum over counted rows of -log p_target / total,  p = softmax(logits)

    logits (..., V);  targets (...) integers, a row whose target is `ignore` counts for nothing
    total    what to divide by, over all ranks and micro-batches; by default the counted rows here
    dlogits = (p - onehot(target)) dy / total on counted rows, 0 on the others

    Fused with log-softmax: p_target may underflow where its logarithm does not.
    Nothing counted gives 0, and zero gradients.  Raises IndexError for a target outside 0 <= id < V.
    """
    shape = logits.shape
    targets = checked_indices(targets, shape[-1], "cross_entropy targets", ignore)
    if targets.shape != shape[:-1]:
        raise ValueError(f"cross_entropy: logits {shape} want targets {shape[:-1]}, got {targets.shape}")
    rows, targets = flat(logits), targets.reshape(-1)
    counted = targets != ignore
    targets = xp.where(counted, targets, 0)
    places = xp.arange(len(targets)), targets
    e, top = exponentials(rows, -1)
    sums = e.sum(-1, keepdims=True)
    sums = xp.where(sums == 0, 1, sums)                     # a row of nothing but -inf: no NaN
    losses = xp.log(sums[:, 0]) - (rows - top)[places]
    divisor = _divisor(counted.sum() if total is None else total, logits.dtype)

    def backward(dy):
        drows = e / sums
        drows[places] -= 1
        drows *= (counted * (dy / divisor))[:, None]
        return drows.reshape(shape)

    return xp.where(counted, losses, 0).sum() / divisor, backward


def _divisor(total, dtype):
    """The count that a loss is divided by; 1 instead of 0, since then nothing was counted."""
    if is_array(total):
        return xp.maximum(total, 1).astype(dtype)
    return max(float(total), 1)


@op
def mse(x, y, *, total=None):
    """sum (x - y)^2 / total    x and y of one shape; total is by default the number of elements

    dx = 2 (x - y) dy / total   dy = -dx
    """
    if x.shape != y.shape:
        raise ValueError(f"mse: shapes {x.shape} and {y.shape} must be equal: broadcasting would add up pairs")
    (p, q), of_x, of_y = alike(x, y), like(x), like(y)
    difference = p - q
    divisor = _divisor(difference.size if total is None else total, difference.dtype)

    def backward(dloss):
        dx = difference * (2 / divisor * dloss)
        return unbroadcast(dx, of_x), of_y and unbroadcast(-dx, of_y)

    return (difference * difference).sum() / divisor, backward
