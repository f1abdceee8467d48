"""No step longer than a limit: https://arxiv.org/abs/1211.5063."""

from math import sqrt

from autograd.backend import device, xp

TILE = 64 * 1024            # elements: sums of this many squares in the gradient's precision, of those in float64


def global_norm(grad):
    """Length of the flat gradient, every parameter counted once (case 60): a float, on a device a 0-d array.

    A flat buffer holds a tied parameter once, and every rank holds the same sum, so nothing is exchanged.
    """
    if device != "cpu":
        return xp.sqrt(xp.vdot(grad, grad))
    return sqrt(sum(float(xp.dot(part, part)) for part in
                    (grad[start:start + TILE] for start in range(0, grad.size, TILE))))


def clip_factor(norm, longest):
    """What to multiply the gradient by so that it is no longer than `longest`; 0 is no limit."""
    if not longest:
        return 1.0
    if isinstance(norm, float):
        return longest / norm if norm > longest else 1.0
    return xp.minimum(longest / xp.maximum(norm, longest), 1)
