"""Twins of linear and embedding: BLAS writes where the result belongs."""

import numpy as np

from autograd import arena
from autograd.fused.tiles import FLOAT32, column_sums, contiguous, ones, within
from autograd.gradients import Lazy
from autograd.ops.embedding import embedding
from autograd.ops.matmul import linear
from autograd.tape import accelerates


def _add_product(a, b, out, fresh):
    """out = a b, or out += a b"""
    if fresh:
        np.dot(a, b, out=out)
    else:
        product = arena.empty(out.shape)
        np.dot(a, b, out=product)
        np.add(out, product, out=out)


def _takes(x, weight, bias=None, transposed=False):
    return (contiguous(x, weight, bias) and weight.ndim == 2 and x.ndim >= 2
            and x.shape[-1] == weight.shape[bool(transposed)])


@accelerates(linear, when=_takes)
def linear_blas(x, weight, bias=None, *, transposed=False):
    """Three products straight into their buffers; the gradient of the bias is a product with ones."""
    matrix = weight.T if transposed else weight
    rows = x.reshape(-1, x.shape[-1])
    y = arena.empty((*x.shape[:-1], matrix.shape[1]))
    flat = y.reshape(len(rows), -1)
    np.dot(rows, matrix, out=flat)
    if bias is not None:
        np.add(flat, bias, out=flat)

    def backward(dy):
        dy = np.ascontiguousarray(dy).reshape(flat_shape)

        def dx():
            out = arena.empty(shape)
            np.dot(dy, matrix.T, out=out.reshape(rows.shape))
            return out

        def dweight(out, fresh):
            a, b = (dy, rows) if transposed else (rows, dy)
            _add_product(a.T, b, out, fresh)

        def dbias(out, fresh):
            if fresh:
                np.dot(ones(len(dy)), dy, out=out)
            else:
                np.add(out, column_sums(dy), out=out)

        return (dx, Lazy(dweight, weight.shape, FLOAT32),
                None if bias is None else Lazy(dbias, bias.shape, FLOAT32))

    shape, flat_shape = x.shape, flat.shape
    return y, backward


ONE_HOT = 256               # rows of a table up to which a product with a one-hot matrix is quickest


def _takes_ids(weight, ids):
    return contiguous(weight) and type(ids) is np.ndarray and ids.size > 0 and within(ids, len(weight))


@accelerates(embedding, when=_takes_ids)
def embedding_sorted(weight, ids):
    """Rows of the gradient are sums over equal ids: a one-hot product, or sums of sorted runs."""
    y = arena.empty((*ids.shape, weight.shape[1]))
    np.take(weight, ids, axis=0, out=y, mode="clip")
    shape, ids = weight.shape, ids.reshape(-1)

    def backward(dy):
        dy = np.ascontiguousarray(dy).reshape(len(ids), -1)
        return Lazy(lambda out, fresh: _add_rows(out, ids, dy, fresh), shape, FLOAT32)

    return y, backward


def _add_rows(out, ids, dy, fresh):
    """out[ids[i]] += dy[i] for all i, equal ids too."""
    if len(out) <= ONE_HOT:
        one_hot = np.zeros((len(out), len(ids)), np.float32)
        one_hot[ids, np.arange(len(ids))] = 1
        _add_product(one_hot, dy, out, fresh)
        return
    if fresh:
        out.fill(0)
    order = np.argsort(ids, kind="stable")
    rows, starts = np.unique(ids[order], return_index=True)
    out[rows] += np.add.reduceat(dy[order], starts, axis=0)
