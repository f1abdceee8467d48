"""Activations, elementwise."""

from math import pi, sqrt

from autograd.backend import xp
from autograd.ops.common import flat
from autograd.ops.special import erf, sigmoid_of
from autograd.tape import op

INNER, CUBE = sqrt(2 / pi), 0.044715            # Hendrycks and Gimpel, arxiv.org/abs/1606.08415


@op
def relu(x):
    """y = max(x, 0)            dx = dy where x > 0, and 0 at the kink"""
    y = xp.maximum(x, 0)
    return y, lambda dy: xp.where(y > 0, dy, 0)


@op
def sigmoid(x):
    """y = 1 / (1 + e^-x)       dx = dy y (1 - y)"""
    y = sigmoid_of(x)
    return y, lambda dy: dy * y * (1 - y)


@op
def tanh(x):
    """y = tanh x               dx = dy (1 - y^2)"""
    y = xp.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


@op
def silu(x):
    """y = x s,  s = sigmoid(x)             dx = dy s (1 + x (1 - s))"""
    s = sigmoid_of(x)
    return x * s, lambda dy: dy * s * (1 + x * (1 - s))


@op
def gelu(x, approximate="tanh"):
    """y = x P(N < x) for a standard normal N: x is kept with the probability that it is large.

    "tanh"  y = x/2 (1 + t),  t = tanh(sqrt(2/pi) (x + 0.044715 x^3)), as in GPT-2
            dx = dy ((1 + t)/2 + x/2 (1 - t^2) sqrt(2/pi) (1 + 3 0.044715 x^2))
    "erf"   y = x/2 (1 + erf(x / sqrt 2)), exact
            dx = dy (y/x + x e^(-x^2/2) / sqrt(2 pi))
    """
    if approximate not in ("tanh", "erf"):
        raise ValueError(f'gelu: approximate={approximate!r}, expected "tanh" or "erf"')
    return _gelu_tanh(x) if approximate == "tanh" else _gelu_erf(x)


def _gelu_tanh(x):
    t = xp.tanh(INNER * (x + CUBE * x * x * x))

    def backward(dy):
        inner = INNER * (1 + 3 * CUBE * x * x)
        return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)

    return 0.5 * x * (1 + t), backward


def _gelu_erf(x):
    p = 0.5 * (1 + erf(x * (1 / sqrt(2))))
    return x * p, lambda dy: dy * (p + x * xp.exp(-0.5 * x * x) * (1 / sqrt(2 * pi)))


@op
def bias_gelu(x, bias):
    """y = gelu(x + b), the tanh form       x: (..., m)   b: (m,)

    dx = the gelu's gradient    db = dx summed over all but the last axis, lazy
    """
    y, gelu_backward = _gelu_tanh(x + bias)

    def backward(dy):
        dx = gelu_backward(dy)
        return dx, lambda: flat(dx).sum(0)

    return y, backward


@op
def swiglu(x):
    """y = silu(gate) up        x = [gate, up]: (..., 2 f)   y: (..., f)     arxiv.org/abs/2002.05202

    dgate = dy up silu'(gate)   dup = dy silu(gate)
    """
    if x.shape[-1] % 2:
        raise ValueError(f"swiglu: the last axis holds gate and up side by side and must be even, got {x.shape}")
    f = x.shape[-1] // 2
    gate, up = x[..., :f], x[..., f:]
    s = sigmoid_of(gate)

    def backward(dy):
        return xp.concatenate([dy * up * s * (1 + gate * (1 - s)), dy * gate * s], -1)

    return gate * s * up, backward
