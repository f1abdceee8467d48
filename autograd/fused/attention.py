"""Twin of packed_attention: causal blocks that skip what lies above the diagonal.

Letters: B batch, T time, H heads, D head width, G groups of h heads (H = G h), Q queries in a block.
Block c holds queries c Q ... (c+1) Q - 1 and all keys up to them.  Its scores are kept as
(key, head, query): reductions over keys then run along long contiguous rows, and a sum over keys is
one product with ones.  Softmax is divided by its sum only after the product with the values,
where T x D numbers are fewer than T x T.
"""

import math
from functools import lru_cache

import numpy as np

from autograd import arena
from autograd.fused.tiles import contiguous, ones, scratch
from autograd.ops.attention import packed_attention
from autograd.tape import accelerates

BLOCK = 64                  # queries in a block, at least
SCORES = 1 << 17            # scores computed at a time: 512 KiB, a quarter of a 2 MiB cache


def _takes(qkv, *, d_head, groups=1, causal=True, scale=None):
    return contiguous(qkv) and qkv.ndim == 3 and groups == 1 and causal and qkv.shape[2] % (3 * d_head) == 0


@accelerates(packed_attention, when=_takes, consumes=True)
def packed_attention_blocked(qkv, *, d_head, groups=1, causal=True, scale=None, owned):
    """softmax(scale Q K^T) V of queries that see keys up to themselves; scales Q in place if owned."""
    layout = _layout(*qkv.shape, d_head)
    scale = 1 / math.sqrt(d_head) if scale is None else scale
    kept = qkv if owned else arena.empty(qkv.shape)
    _scale_queries(qkv, kept, layout.width, scale)
    out = arena.empty((layout.batch, layout.time, layout.width))
    weights, inverse = layout.weights(), layout.inverse()
    for part in layout.parts():
        _forward_part(layout, part, kept, weights, inverse, out)

    def backward(dy):
        dqkv = arena.empty(kept.shape)
        dy = np.ascontiguousarray(dy)
        for part in layout.parts():
            _backward_part(layout, part, kept, weights, inverse, out, dy, dqkv)
        queries = dqkv[..., :layout.width]
        np.multiply(queries, scale, out=queries)
        return dqkv

    return out, backward


def _scale_queries(qkv, kept, width, scale):
    np.multiply(qkv[..., :width], scale, out=kept[..., :width])
    if kept is not qkv:
        kept[..., width:] = qkv[..., width:]


class _Layout:
    """How one call is cut: how many heads share a matrix product, how many queries make a block."""

    def __init__(self, batch, time, packed, d_head):
        self.batch, self.time, self.d_head, self.width = batch, time, d_head, packed // 3
        heads = self.width // d_head
        self.blocks = max(c for c in range(1, max(1, time // BLOCK) + 1) if time % c == 0)
        self.queries = time // self.blocks
        self.heads = max(h for h in range(1, heads + 1)
                         if heads % h == 0 and (h == 1 or h * time * self.queries <= SCORES))
        self.groups = heads // self.heads
        self.samples = max(1, SCORES // (self.heads * time * self.queries))
        above = np.triu(np.full((self.queries, self.queries), -np.inf, np.float32), 1).T    # (key, query)
        self.above = np.ascontiguousarray(np.repeat(above[:, None], self.heads, axis=1))

    def weights(self):
        """For every block the softmax numerators, (B, G, keys, h, Q)."""
        return [arena.empty((self.batch, self.groups, (c + 1) * self.queries, self.heads, self.queries))
                for c in range(self.blocks)]

    def inverse(self):
        """For every query 1 / the sum of its numerators."""
        return arena.empty((self.batch, self.groups, self.blocks, self.heads, self.queries))

    def parts(self):
        """(samples, group) pairs that are computed together."""
        return [(slice(i, min(self.batch, i + self.samples)), g)
                for i in range(0, self.batch, self.samples) for g in range(self.groups)]

    def split(self, packed, part):
        """Views (n, h, T, D) of the queries, keys and values of one part."""
        n, g = part
        views = packed.reshape(self.batch, self.time, 3, self.groups, self.heads, self.d_head)
        return [views[n, :, i, g].transpose(0, 2, 1, 3) for i in range(3)]

    def by_head(self, x, part):
        """The view (n, h, T, D) of one part of (B, T, H D)."""
        n, g = part
        heads = x.reshape(self.batch, self.time, self.groups, self.heads, self.d_head)
        return heads[n, :, g].transpose(0, 2, 1, 3)

    def rows(self, block):
        return slice(block * self.queries, (block + 1) * self.queries)


_layout = lru_cache(64)(_Layout)


def _forward_part(layout, part, qkv, weights, inverse, out):
    query, key, value = layout.split(qkv, part)
    y = layout.by_head(out, part)
    for c in range(layout.blocks):
        rows, keys = layout.rows(c), (c + 1) * layout.queries
        scores = weights[c][part]                                       # (n, keys, h, Q)
        flat = scores.reshape(len(scores), keys, -1)
        by_head = scores.transpose(0, 2, 1, 3)                          # (n, h, keys, Q)
        np.matmul(key[..., :keys, :], query[..., rows, :].swapaxes(-1, -2), out=by_head)
        diagonal = scores[:, rows]
        np.add(diagonal, layout.above, out=diagonal)
        np.subtract(flat, np.maximum.reduce(flat, axis=1, keepdims=True), out=flat)
        np.exp(flat, out=flat)
        sums = np.matmul(ones(keys), flat).reshape(len(scores), layout.heads, layout.queries)
        scale = inverse[part][:, c]
        np.divide(1, sums, out=scale)
        target = y[..., rows, :]
        np.matmul(by_head.swapaxes(-1, -2), value[..., :keys, :], out=target)
        np.multiply(target, scale[..., None], out=target)


def _backward_part(layout, part, qkv, weights, inverse, out, dy, dqkv):
    """dV = P^T dO,  dS = P (dO V^T - sum(dO O)),  dQ = dS K,  dK = dS^T Q  with P = E / sum(E).

    The division is moved onto dO once.  Blocks run from the last, which alone reaches all keys and so
    sets dK and dV; the others add.
    """
    query, key, value = layout.split(qkv, part)
    dquery, dkey, dvalue = layout.split(dqkv, part)
    dout, y = layout.by_head(dy, part), layout.by_head(out, part)
    n, heads, time, d_head = dout.shape
    scaled = scratch(0, dout.size).reshape(dout.shape)
    for c in range(layout.blocks):
        rows = layout.rows(c)
        np.multiply(dout[..., rows, :], inverse[part][:, c, ..., None], out=scaled[..., rows, :])
    along = np.vecdot(scaled, y)                                        # (n, h, T)
    for c in reversed(range(layout.blocks)):
        rows, keys = layout.rows(c), (c + 1) * layout.queries
        numerators = weights[c][part]
        by_head = numerators.transpose(0, 2, 1, 3)
        dscores = scratch(1, numerators.size).reshape(numerators.shape)
        flat, ds = dscores.reshape(n, keys, -1), dscores.transpose(0, 2, 1, 3)
        np.matmul(value[..., :keys, :], scaled[..., rows, :].swapaxes(-1, -2), out=ds)
        np.subtract(flat, np.ascontiguousarray(along[..., rows]).reshape(n, 1, -1), out=flat)
        np.multiply(flat, numerators.reshape(flat.shape), out=flat)
        np.matmul(ds.swapaxes(-1, -2), key[..., :keys, :], out=dquery[..., rows, :])
        _add_matmul(by_head, scaled[..., rows, :], dvalue[..., :keys, :], c == layout.blocks - 1)
        _add_matmul(ds, query[..., rows, :], dkey[..., :keys, :], c == layout.blocks - 1)


def _add_matmul(a, b, out, fresh):
    if fresh:
        np.matmul(a, b, out=out)
        return
    product = scratch(2, out.size).reshape(out.shape)
    np.matmul(a, b, out=product)
    np.add(out, product, out=out)
