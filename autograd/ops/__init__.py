"""All ops, one family a file; the registry that tests walk; and the table of Tensor's operators and methods.

    ops.softmax(x)      x.sum(axis=0)       x @ w + b       x[:, [0, 0]]
"""

from autograd.ops.activation import bias_gelu, gelu, relu, sigmoid, silu, swiglu, tanh
from autograd.ops.arithmetic import (
    abs,
    add,
    clip,
    div,
    equal,
    exp,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    maximum,
    minimum,
    mul,
    neg,
    not_equal,
    pow,
    sqrt,
    sub,
    where,
)
from autograd.ops.attention import attention, packed_attention
from autograd.ops.dropout import dropout
from autograd.ops.embedding import embedding
from autograd.ops.loss import cross_entropy, mse
from autograd.ops.matmul import einsum, linear, matmul
from autograd.ops.normalization import add_layer_norm, add_rms_norm, batch_norm, layer_norm, rms_norm
from autograd.ops.reduction import argmax, logsumexp, max, mean, min, sum, var
from autograd.ops.shape import (
    broadcast_to,
    concat,
    getitem,
    pad,
    permute,
    reshape,
    split,
    stack,
    transpose,
    without_tensors,
)
from autograd.ops.softmax import log_softmax, softmax
from autograd.tensor import Tensor

__all__ = [
    "REGISTRY", "abs", "add", "add_layer_norm", "add_rms_norm", "argmax", "attention", "batch_norm", "bias_gelu",
    "broadcast_to", "clip", "concat", "cross_entropy", "div", "dropout", "einsum", "embedding", "equal", "exp",
    "gelu", "getitem", "greater", "greater_equal", "layer_norm", "less", "less_equal", "linear", "log",
    "log_softmax", "logsumexp", "matmul", "max", "maximum", "mean", "min", "minimum", "mse", "mul", "neg",
    "not_equal", "packed_attention", "pad", "permute", "pow", "relu", "reshape", "rms_norm", "sigmoid", "silu",
    "softmax", "split", "sqrt", "stack", "sub", "sum", "swiglu", "tanh", "transpose", "var", "where",
]

REGISTRY = {name: globals()[name] for name in __all__ if name != "REGISTRY"}


def _iterate(x):
    """Along the first axis."""
    if x.ndim == 0:
        raise TypeError("a Tensor without axes cannot be iterated over: x.item() gives its value")
    return (x[i] for i in range(len(x)))


def _format(x, spec):
    """f"{loss:.3f}" formats the value of a Tensor of one element."""
    return format(x.item(), spec) if spec and x.size == 1 else object.__format__(x, spec)


def _no_host_array(x, *_, **__):
    """numpy.asarray(tensor) would otherwise build an array of Tensors, element by element."""
    raise TypeError("a Tensor is no NumPy array: x.numpy() gives its values, x.data its array")


def _swapped(f):
    return lambda x, other: f(other, x)


def _of_sizes(f):
    """x.reshape(2, 3) is x.reshape((2, 3))."""
    return lambda x, *sizes: f(x, sizes[0] if len(sizes) == 1 else sizes)


METHODS = {
    "__add__": add, "__radd__": _swapped(add), "__sub__": sub, "__rsub__": _swapped(sub),
    "__mul__": mul, "__rmul__": _swapped(mul), "__truediv__": div, "__rtruediv__": _swapped(div),
    "__pow__": pow, "__rpow__": _swapped(pow), "__matmul__": matmul, "__rmatmul__": _swapped(matmul),
    "__neg__": neg, "__pos__": lambda x: x, "__abs__": abs,
    "__lt__": less, "__le__": less_equal, "__gt__": greater, "__ge__": greater_equal,
    "__eq__": equal, "__ne__": not_equal, "__hash__": object.__hash__,
    "__int__": lambda x: int(x.data), "__array__": _no_host_array,
    "__iter__": _iterate, "__format__": _format,
    "__getitem__": lambda x, index: getitem(x, index=without_tensors(index)),
    "T": property(permute),
    "reshape": _of_sizes(reshape), "permute": _of_sizes(permute), "broadcast_to": _of_sizes(broadcast_to),
    "transpose": transpose, "split": split,
    "sum": sum, "mean": mean, "max": max, "min": min, "var": var, "argmax": argmax, "logsumexp": logsumexp,
    "exp": exp, "log": log, "sqrt": sqrt, "abs": abs, "clip": clip,
    "relu": relu, "gelu": gelu, "silu": silu, "sigmoid": sigmoid, "tanh": tanh,
    "softmax": softmax, "log_softmax": log_softmax,
}

for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
