"""Dropout.  The mask comes from a stream keyed by name and coordinates: `autograd.streams.keep_mask`."""

from autograd.backend import to_device, xp
from autograd.tape import op


@op
def dropout(x, p, keep):
    """y = x keep / (1 - p)     keep: booleans, True with probability 1 - p      jmlr.org/papers/v15/srivastava14a

    dx = dy keep / (1 - p)      so y has the expectation of x, and inference needs no factor
    """
    keep = to_device(keep)
    if keep.dtype != bool:
        raise TypeError(f"dropout: keep must be booleans, got {keep.dtype}")
    if keep.shape != x.shape:
        raise ValueError(f"dropout: keep has shape {keep.shape}, x {x.shape}: they must be equal")
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p={p}, expected a probability, 0 <= p <= 1")
    factor = 1 / (1 - p) if p < 1 else 1                    # with p = 1 nothing is kept
    return xp.where(keep, x * factor, 0), lambda dy: xp.where(keep, dy * factor, 0)
