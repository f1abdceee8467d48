"""Twin of cross_entropy: the gradient takes the place of the logits, a tile of rows at a time."""

import numpy as np

from autograd import arena
from autograd.fused.tiles import contiguous, ones, rows_per_tile, within
from autograd.ops.common import checked_indices
from autograd.ops.loss import cross_entropy
from autograd.tape import accelerates


def _takes(logits, targets, *, total=None, ignore=-1):
    return (contiguous(logits) and logits.ndim >= 2 and type(targets) is np.ndarray
            and targets.dtype.kind == "i" and targets.shape == logits.shape[:-1] and not isinstance(total, np.ndarray))


@accelerates(cross_entropy, when=_takes, consumes=True)
def cross_entropy_in_place(logits, targets, *, total=None, ignore=-1, owned):
    """Logits and their gradient are the largest arrays of a step: one buffer serves for both.

    Forward already knows the gradient, (softmax - one-hot) / total, and writes it over the logits
    if they were made for this call, as in cross_entropy(model(batch), targets).
    """
    wanted = None
    if not within(targets, logits.shape[-1]) or ignore >= 0:
        targets = checked_indices(targets, logits.shape[-1], "cross_entropy targets", ignore)
        wanted = targets.reshape(-1) != ignore
    total = max(1, (targets.size if wanted is None else wanted.sum()) if total is None else float(total))
    rows, picked = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    gradient = rows if owned else arena.empty(rows.shape)
    step, loss = min(rows_per_tile(rows.shape[1]), len(rows)), 0.0
    for i in range(0, len(rows), step):
        tile = slice(i, i + step)
        keep = None if wanted is None else wanted[tile]
        loss += _cross_entropy_tile(rows[tile], picked[tile], keep, 1 / total, gradient[tile])

    def backward(dy):
        out = gradient.reshape(shape)
        return out if dy == 1 else out * dy

    shape = logits.shape
    return np.array(loss / total, np.float32), backward


def _cross_entropy_tile(logits, targets, wanted, weight, gradient):
    """-> the sum of losses of a tile of rows; gradient := (softmax(logits) - one_hot(targets)) weight"""
    if wanted is not None:
        targets = np.where(wanted, targets, 0)
    starts, flat = np.arange(0, gradient.size, gradient.shape[1]), gradient.reshape(-1)
    places = starts + targets
    highest = logits.reshape(-1).take(starts + logits.argmax(axis=1))       # quicker than max in short rows
    np.subtract(logits, highest[:, None], out=gradient)
    picked = flat.take(places)
    np.exp(gradient, out=gradient)
    sums = np.dot(gradient, ones(gradient.shape[1]))
    losses = np.log(sums)
    np.subtract(losses, picked, out=losses)
    scale = np.divide(weight, sums)
    if wanted is not None:
        losses, scale = np.where(wanted, losses, 0), np.where(wanted, scale, 0)
        weight = np.where(wanted, weight, 0).astype(np.float32)
    np.multiply(gradient, scale[:, None], out=gradient)
    if wanted is not None:
        gradient[~wanted] = 0           # 0 times what an ignored row holds may be NaN
    flat[places] -= weight
    return float(np.add.reduce(losses, dtype=np.float64))
