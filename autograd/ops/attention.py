"""Attention as a formula: the whole table of scores is there to be seen.

B batch, H query heads, T queries, S keys, D width of a head; key and value may have fewer heads.
"""

from math import sqrt

from autograd.backend import to_device, xp
from autograd.ops.common import softmax_of
from autograd.tape import op


@op
def attention(query, key, value, *, causal=True, mask=None, scale=None):
    """y = P v,  P = softmax(q k^T scale), over the keys that a query may look at       arxiv.org/abs/1706.03762

    query (B, H, T, D);  key, value (B, H_kv, S, D), each of their heads serving H / H_kv query heads
    causal   queries are the last T of the S positions, and none looks past itself
    mask     booleans that broadcast to (B, H, T, S); True: may look
    scale    1 / sqrt(D) by default: the width of a head, not of the model (CASES 46)

    dv = P^T dy    dP = dy v^T    ds = P (dP - sum dP P)    dq = ds k scale    dk = ds^T q scale
    A query that may look at nothing gets zeros and gives zero gradients (CASES 34).
    """
    groups = _check(query, key, value, causal)
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    k, v = key.repeat(groups, 1), value.repeat(groups, 1)                   # (B, H, S, D)
    allowed = _allowed(query.shape[2], key.shape[2], causal, mask)
    scores = query @ k.swapaxes(2, 3) * scale                               # (B, H, T, S)
    p = softmax_of(scores if allowed is None else xp.where(allowed, scores, -xp.inf))

    def backward(dy):
        dv = p.swapaxes(2, 3) @ dy
        dp = dy @ v.swapaxes(2, 3)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
        dq, dk = ds @ k, ds.swapaxes(2, 3) @ query
        return dq, _sum_groups(dk, groups), _sum_groups(dv, groups)

    return p @ v, backward


def _sum_groups(dx, groups):
    """Add the gradients of the query heads that share a key head."""
    b, h, s, d = dx.shape
    return dx.reshape(b, h // groups, groups, s, d).sum(2)


def _allowed(t, s, causal, mask):
    """Which query may look at which key, or None if all may."""
    if mask is not None:
        mask = to_device(mask)
        if mask.dtype != bool:
            raise TypeError(f"attention: mask must be booleans (True: may look), got {mask.dtype}")
    if not causal:
        return mask
    past = xp.tril(xp.ones((t, s), bool), s - t)
    return past if mask is None else past & mask


def _check(query, key, value, causal):
    """-> how many query heads share a key head.  Raises ValueError where shapes do not fit."""
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ValueError("attention: expected (batch, heads, positions, width), got "
                         f"{query.shape}, {key.shape}, {value.shape}")
    (b, h, t, d), (_, h_kv, s, _) = query.shape, key.shape
    if key.shape != (b, h_kv, s, d) or value.shape[:3] != key.shape[:3]:
        raise ValueError(f"attention: query {query.shape}, key {key.shape} and value {value.shape} do not fit")
    if h_kv == 0 or h % h_kv:
        raise ValueError(f"attention: {h} query heads cannot share {h_kv} key heads evenly")
    if causal and t > s:
        raise ValueError(f"attention: causal, but {t} queries and only {s} keys: queries are the last positions")
    return h // h_kv


@op
def packed_attention(qkv, *, d_head, groups=1, causal=True, scale=None):
    """Attention on the output of one projection.

    qkv (B, T, (H + 2 H / groups) D), columns [query heads | key heads | value heads]  ->  (B, T, H D)
    dqkv = [dq | dk | dv]
    """
    heads = _count_heads(qkv, d_head, groups)
    shared = heads // groups
    shape = b, t, _ = qkv.shape
    cut = qkv.reshape(b, t, heads + 2 * shared, d_head).swapaxes(1, 2)      # (B, H + 2 H/groups, T, D)
    q, k, v = cut[:, :heads], cut[:, heads:heads + shared], cut[:, heads + shared:]
    y, attention_backward = attention.formula.function(q, k, v, causal=causal, scale=scale)

    def backward(dy):
        dy = dy.reshape(b, t, heads, d_head).swapaxes(1, 2)
        dqkv = xp.concatenate(attention_backward(dy), 1)
        return dqkv.swapaxes(1, 2).reshape(shape)

    return y.swapaxes(1, 2).reshape(b, t, heads * d_head), backward


def _count_heads(qkv, d_head, groups):
    columns = qkv.shape[-1]
    heads = columns // d_head * groups // (groups + 2)
    if qkv.ndim != 3 or heads % groups or columns != (heads + 2 * heads // groups) * d_head:
        raise ValueError(f"packed_attention: {qkv.shape} is not (B, T, (H + 2 H/groups) D) "
                         f"with D = {d_head}, groups = {groups}")
    return heads
