"""Hypothesis draws calls of ops: shapes and options by Hypothesis, values by a seeded generator.

    for_op("linear", "float32")     a strategy of (inputs, options); inputs are NumPy arrays, numbers or lists
"""

import math

import numpy as np
from hypothesis import strategies as st

STRATEGIES = {}         # op name -> function(Draw) -> (inputs, options)


def for_op(name, dtype="float64"):
    """Calls of the op of this name: a strategy of (tuple of inputs, dict of options)."""
    @st.composite
    def calls(draw):
        return STRATEGIES[name](Draw(draw, dtype))
    return calls()


def strategy(*names):
    def register(build):
        STRATEGIES.update(dict.fromkeys(names, build))
        return build
    return register


class Draw:
    """What the strategies below draw from."""

    def __init__(self, draw, dtype):
        self.draw, self.dtype = draw, dtype
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def size(self, low=0, high=5):
        return self.draw(st.integers(low, high))

    def shape(self, low=0, high=3, smallest=0):
        return tuple(self.draw(st.lists(st.integers(smallest, 4), min_size=low, max_size=high)))

    def choose(self, *options):
        return self.draw(st.sampled_from(options))

    def normal(self, *shape):
        return np.asarray(self.random.standard_normal(shape), self.dtype)

    def positive(self, *shape):
        return np.asarray(self.random.uniform(0.5, 2, shape), self.dtype)

    def integers(self, high, *shape):
        return self.random.integers(0, high, shape)

    def booleans(self, *shape):
        return self.random.random(shape) < 0.6

    def broadcastable(self, shape):
        """A shape that broadcasts to `shape`: fewer axes, or some of size 1."""
        kept = shape[self.size(0, len(shape)):]
        return tuple(1 if self.draw(st.booleans()) else n for n in kept)

    def axes(self, ndim):
        """An axis argument: None, one, or several."""
        if ndim == 0:
            return None
        several = self.draw(st.lists(st.integers(-ndim, ndim - 1), min_size=1, max_size=ndim,
                                     unique_by=lambda a: a % ndim))
        return self.choose(None, several[0], tuple(several))


# ------------------------------------------------------------------------------------ elementwise

@strategy("add", "sub", "mul", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal",
          "not_equal")
def two_operands(d):
    shape = d.shape()
    a, b = d.normal(*shape), d.normal(*d.broadcastable(shape))
    return d.choose((a, b), (b, a), (a, 1.5), (2, a)), {}


@strategy("div")
def quotient(d):
    shape = d.shape()
    a, b = d.normal(*shape), d.positive(*d.broadcastable(shape))
    return d.choose((a, b), (a, 3), (2.5, b)), {}


@strategy("pow")
def power(d):
    shape = d.shape()
    a, b = d.positive(*shape), d.normal(*d.broadcastable(shape))
    return d.choose((a, b), (a, 2), (a, -0.5), (d.normal(*shape), 3), (1.5, b)), {}


@strategy("neg", "exp", "abs", "sigmoid", "tanh", "silu", "relu")
def one_operand(d):
    return (d.normal(*d.shape()),), {}


@strategy("log", "sqrt")
def one_positive_operand(d):
    return (d.positive(*d.shape()),), {}


@strategy("where")
def choice(d):
    shape = d.shape()
    a, b = d.normal(*shape), d.normal(*d.broadcastable(shape))
    return (d.booleans(*shape), *d.choose((a, b), (b, a), (a, 0.5), (0, a))), {}


@strategy("clip")
def clipped(d):
    return (d.normal(*d.shape()), *d.choose((-0.5, 0.5), (None, 0), (-1, None), ())), {}


@strategy("gelu")
def gelu(d):
    return (d.normal(*d.shape()), d.choose("tanh", "erf")), {}


@strategy("bias_gelu")
def bias_gelu(d):
    shape = d.shape(1)
    return (d.normal(*shape), d.normal(shape[-1])), {}


@strategy("swiglu")
def swiglu(d):
    return (d.normal(*d.shape(0, 2), 2 * d.size()),), {}


# ------------------------------------------------------------------------------------ reductions and shapes

@strategy("sum", "mean", "var")
def reduction(d):
    shape = d.shape()
    return (d.normal(*shape),), {"axis": d.axes(len(shape)), "keepdims": d.choose(False, True)}


@strategy("max", "min", "logsumexp")
def extreme(d):
    shape = d.shape(smallest=1)
    return (d.normal(*shape),), {"axis": d.axes(len(shape)), "keepdims": d.choose(False, True)}


@strategy("argmax")
def where_is_the_maximum(d):
    shape = d.shape(1, smallest=1)
    return (d.normal(*shape),), {"axis": d.choose(None, *range(-len(shape), len(shape)))}


@strategy("softmax", "log_softmax")
def softmax(d):
    shape = d.shape(1)
    return (3 * d.normal(*shape), d.choose(*range(-len(shape), len(shape)))), {}


@strategy("reshape")
def reshape(d):
    shape = d.shape(1, smallest=1)
    n = math.prod(shape)
    return (d.normal(*shape), d.choose(n, -1, shape[::-1], (1, n), (*shape, 1), (shape[0], -1))), {}


@strategy("transpose")
def transpose(d):
    shape = d.shape(2)
    axes = range(-len(shape), len(shape))
    return (d.normal(*shape), *d.choose((), (d.choose(*axes), d.choose(*axes)))), {}


@strategy("permute")
def permute(d):
    shape = d.shape()
    order = tuple(d.draw(st.permutations(range(len(shape)))))
    return (d.normal(*shape), *d.choose((), (order,), (tuple(a - len(shape) for a in order),))), {}


@strategy("broadcast_to")
def broadcast_to(d):
    shape = d.shape()
    return (d.normal(*d.broadcastable(shape)), shape), {}


@strategy("getitem")
def getitem(d):
    a, b = d.size(1, 4), d.size(1, 4)
    rows, columns = d.integers(a, d.size()), d.integers(b, d.size())
    index = d.choose(0, -1, slice(None), slice(0, a, 2), slice(None, None, -1), Ellipsis, None, (Ellipsis, 0),
                     (None, slice(1), Ellipsis), (0, -1), rows, rows - a, [0, 0], (slice(None), columns),
                     (rows[:, None], columns), d.booleans(a, b), d.booleans(a), (Ellipsis, columns))
    return (d.normal(a, b),), {"index": index}


@strategy("concat")
def concat(d):
    shape, axis = d.shape(1), d.size(0, 2)
    axis %= len(shape)
    parts = [d.normal(*shape[:axis], d.size(), *shape[axis + 1:]) for _ in range(d.size(1, 3))]
    return (parts, d.choose(axis, axis - len(shape))), {}


@strategy("stack")
def stack(d):
    shape = d.shape()
    return ([d.normal(*shape) for _ in range(d.size(1, 3))], d.choose(*range(-len(shape) - 1, len(shape) + 1))), {}


@strategy("split")
def split(d):
    sizes, rest = [d.size() for _ in range(d.size(1, 3))], d.size()
    return d.choose((d.normal(sum(sizes), rest), sizes), (d.normal(rest, sum(sizes)), sizes, -1),
                    (d.normal(rest, 6), d.choose(1, 2, 3, 6), 1)), {}


@strategy("pad")
def pad(d):
    shape = d.shape()
    return (d.normal(*shape), [(d.size(0, 2), d.size(0, 2)) for _ in shape], d.choose(0, 1.5)), {}


# ------------------------------------------------------------------------------------ products

@strategy("matmul")
def matmul(d):
    n, k, m, batch = d.size(), d.size(), d.size(), d.shape(0, 2)
    a, b = d.normal(*batch, n, k), d.normal(*d.broadcastable(batch), k, m)
    return d.choose((a, b), (a, d.normal(k)), (d.normal(k), b), (d.normal(k), d.normal(k))), {}


@strategy("linear")
def linear(d):
    n, m = d.size(1), d.size(1)
    transposed = d.choose(False, True)
    weight = d.normal(m, n) if transposed else d.normal(n, m)
    bias = d.choose((), (None,), (d.normal(m),))
    return (d.normal(*d.shape(0, 2), d.choose(1, 3), n), weight, *bias), {"transposed": transposed}


@strategy("einsum")
def einsum(d):
    subscripts = d.choose("ij,jk->ik", "ij,jk", "bthd,bshd->bhts", "ii->i", "ii", "iij->j", "ij->", "ij->ji", "i,j->ij",
                          "...ij,...jk->...ik", "...i,i", "i...,ij->...j", "ij,ij,ij->i", "ij,kl->il")
    sizes = {letter: d.size(1, 4) for letter in "bdhijklst"}
    dots = d.shape(0, 2, smallest=1)
    operands = []
    for term in subscripts.partition("->")[0].split(","):
        before, _, after = term.partition("...")
        operands.append(d.normal(*(sizes[c] for c in before), *(dots if "..." in term else ()),
                                 *(sizes[c] for c in after)))
    return (subscripts, *operands), {}


# ------------------------------------------------------------------------------------ layers

@strategy("layer_norm")
def layer_norm(d):
    n = d.size(2)
    return (d.normal(*d.shape(0, 2), n), d.normal(n), *d.choose((), (None,), (d.normal(n),))), {}


@strategy("rms_norm")
def rms_norm(d):
    n = d.size(1)
    return (d.normal(*d.shape(0, 2), n), d.normal(n)), d.choose({}, {"eps": 1e-3})


@strategy("add_layer_norm")
def add_layer_norm(d):
    shape = (*d.shape(0, 2), d.size(2))
    return (d.normal(*shape), d.choose(None, d.normal(*shape)), d.normal(shape[-1]),
            *d.choose((), (None,), (d.normal(shape[-1]),))), {}


@strategy("add_rms_norm")
def add_rms_norm(d):
    shape = (*d.shape(0, 2), d.size(1))
    return (d.normal(*shape), d.choose(None, d.normal(*shape)), d.normal(shape[-1])), {}


@strategy("batch_norm")
def batch_norm(d):
    shape = (d.size(2), d.size(1), *d.shape(0, 2, smallest=1))
    axis = d.choose(1, 1 - len(shape))
    return (d.normal(*shape), d.normal(shape[1]), d.normal(shape[1])), {"axis": axis}


@strategy("embedding")
def embedding(d):
    vocabulary = d.size(1)
    return (d.normal(vocabulary, d.size(1)), d.integers(vocabulary, *d.shape())), {}


@strategy("attention")
def attention(d):
    batch, kv_heads, groups, t, width = d.size(0, 2), d.size(1, 2), d.size(1, 2), d.size(1, 4), d.size(1, 4)
    s = t + d.size(0, 2)
    query = d.normal(batch, kv_heads * groups, t, width)
    mask = d.choose(None, d.booleans(t, s), d.booleans(batch, 1, 1, s))
    return ((query, d.normal(batch, kv_heads, s, width), d.normal(batch, kv_heads, s, d.choose(width, width + 1))),
            {"causal": d.choose(True, False), "mask": mask, "scale": d.choose(None, 0.7)})


@strategy("packed_attention")
def packed_attention(d):
    shared, groups, width = d.size(1, 2), d.size(1, 2), d.size(1, 4)
    qkv = d.normal(d.size(0, 2), d.size(0, 4), (shared * groups + 2 * shared) * width)
    return (qkv,), {"d_head": width, "groups": groups, "causal": d.choose(True, False), "scale": d.choose(None, 0.7)}


@strategy("dropout")
def dropout(d):
    shape, p = d.shape(), d.choose(0, 0.1, 0.5, 1)
    return (d.normal(*shape), p, d.random.random(shape) >= p), {}


@strategy("cross_entropy")
def cross_entropy(d):
    shape, vocabulary = d.shape(0, 2), d.size(1)
    ignore = d.choose(-1, -100)
    targets = np.where(d.booleans(*shape), d.integers(vocabulary, *shape), ignore)
    return (3 * d.normal(*shape, vocabulary), targets), {"ignore": ignore, "total": d.choose(None, 7, 2.5)}


@strategy("mse")
def mse(d):
    shape = d.shape()
    return (d.normal(*shape), d.normal(*shape)), {"total": d.choose(None, 7)}
