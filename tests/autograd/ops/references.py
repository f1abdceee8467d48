"""What ops compute, written another way: with loops, with NumPy's own functions, with the standard library."""

import math

import numpy as np


def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis, keepdims=True)


def gelu(x, approximate="tanh"):
    if approximate == "erf":
        return np.vectorize(lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[float])(x)
    return np.vectorize(
        lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))), otypes=[float])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def swiglu(x):
    gate, up = np.split(x, 2, axis=-1)
    return gate * sigmoid(gate) * up


def layer_norm(x, gain, bias=None, eps=1e-5):
    y = (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + eps) * gain
    return y if bias is None else y + bias


def rms_norm(x, gain, eps=1e-5):
    return x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + eps) * gain


def residual(x, branch):
    return x if branch is None else x + branch


def batch_norm(x, gain, bias, axis=1):
    x = np.moveaxis(x, axis, -1)
    mean, var = x.reshape(-1, x.shape[-1]).mean(0), x.reshape(-1, x.shape[-1]).var(0)
    return np.moveaxis((x - mean) / np.sqrt(var + 1e-5) * gain + bias, -1, axis), mean, var


def attention(query, key, value, *, causal=True, mask=None, scale=None):
    """One query at a time."""
    b, h, t, d = query.shape
    s, groups = key.shape[2], h // key.shape[1]
    y = np.zeros((b, h, t, value.shape[3]))
    mask = np.broadcast_to(True if mask is None else mask, (b, h, t, s))
    for i, j, q in np.ndindex(b, h, t):
        keys = [k for k in range(s) if mask[i, j, q, k] and (not causal or k <= q + s - t)]
        scores = [query[i, j, q] @ key[i, j // groups, k] * (d**-0.5 if scale is None else scale) for k in keys]
        if keys:
            y[i, j, q] = softmax(np.array(scores)) @ value[i, j // groups, keys]
    return y


def packed_attention(qkv, *, d_head, groups=1, causal=True, scale=None):
    b, t, columns = qkv.shape
    shared = columns // d_head // (groups + 2)
    heads = shared * groups
    cut = qkv.reshape(b, t, heads + 2 * shared, d_head).transpose(0, 2, 1, 3)
    y = attention(cut[:, :heads], cut[:, heads:heads + shared], cut[:, heads + shared:], causal=causal, scale=scale)
    return y.transpose(0, 2, 1, 3).reshape(b, t, heads * d_head)


def cross_entropy(logits, targets, *, total=None, ignore=-1):
    logits, targets = logits.reshape(-1, logits.shape[-1]), np.reshape(targets, -1)
    losses = [-math.log(softmax(row)[t]) for row, t in zip(logits, targets) if t != ignore]
    return math.fsum(losses) / (total or len(losses) or 1)


def mse(x, y, *, total=None):
    return np.sum(np.square(x - y)) / (total or x.size or 1)


def dropout(x, p, keep):
    return x * keep / (1 - p) if p < 1 else np.zeros_like(x)


def split(x, parts, axis=0):
    return np.split(x, parts if isinstance(parts, int) else np.cumsum(parts)[:-1], axis)


def logsumexp(x, axis=None, keepdims=False):
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def of_count(function):
    """Of no elements, ops give 0 where NumPy gives NaN and warns."""
    def guarded(x, axis=None, keepdims=False):
        total = np.sum(x, axis=axis, keepdims=keepdims)
        return np.zeros_like(total) if x.size == 0 else function(x, axis=axis, keepdims=keepdims)
    return guarded


REFERENCES = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "neg": np.negative,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "abs": np.abs, "maximum": np.maximum, "minimum": np.minimum,
    "where": np.where, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
    "clip": lambda x, low=None, high=None: x.copy() if low is high is None else np.clip(x, low, high),
    "sum": np.sum, "mean": of_count(np.mean), "max": np.max, "min": np.min, "var": of_count(np.var),
    "argmax": np.argmax, "logsumexp": logsumexp, "softmax": softmax,
    "log_softmax": lambda x, axis=-1: np.log(softmax(x, axis)),
    "reshape": np.reshape, "transpose": lambda x, a=-2, b=-1: np.swapaxes(x, a, b), "permute": np.transpose,
    "broadcast_to": np.broadcast_to, "getitem": lambda x, index: x[index], "concat": np.concatenate,
    "stack": np.stack, "split": split, "pad": lambda x, widths, value: np.pad(x, widths, constant_values=value)
    if x.ndim else x, "matmul": np.matmul, "einsum": np.einsum,
    "linear": lambda x, w, b=None, transposed=False: x @ (w.T if transposed else w) + (0 if b is None else b),
    "relu": lambda x: x * (x > 0), "gelu": gelu, "bias_gelu": lambda x, b: gelu(x + b), "sigmoid": sigmoid,
    "tanh": np.tanh, "silu": lambda x: x * sigmoid(x), "swiglu": swiglu,
    "layer_norm": layer_norm, "rms_norm": rms_norm, "batch_norm": batch_norm,
    "add_layer_norm": lambda x, b, *rest: (residual(x, b), layer_norm(residual(x, b), *rest)),
    "add_rms_norm": lambda x, b, *rest: (residual(x, b), rms_norm(residual(x, b), *rest)),
    "embedding": lambda w, ids: np.take(w, ids, axis=0), "attention": attention,
    "packed_attention": packed_attention, "dropout": dropout, "cross_entropy": cross_entropy, "mse": mse,
}
