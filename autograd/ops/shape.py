"""Ops that move elements.  Those marked as sharing return views of their input, as NumPy does."""

import numpy

from autograd.backend import add_at, device, is_array, to_device, xp
from autograd.ops.common import like, shares, unbroadcast
from autograd.tape import op
from autograd.tensor import Tensor


@shares("y", "dy")
@op
def reshape(x, shape):
    """The same elements in another shape; one size may be -1       dx = dy in the shape of x"""
    shape, before = tuple(shape) if isinstance(shape, list) else shape, x.shape
    return x.reshape(shape), lambda dy: dy.reshape(before)


@shares("y", "dy")
@op
def transpose(x, first=-2, second=-1):
    """Two axes exchanged                   dx = dy with the same two exchanged"""
    return x.swapaxes(first, second), lambda dy: dy.swapaxes(first, second)


@shares("y", "dy")
@op
def permute(x, axes=None):
    """Axis i of y is axis axes[i] of x; None reverses them         dx = dy, permuted back"""
    axes = tuple(range(x.ndim))[::-1] if axes is None else tuple(a % x.ndim for a in axes)
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return x.transpose(axes), lambda dy: dy.transpose(back)


@shares("y", "dy")
@op
def broadcast_to(x, shape):
    """x repeated along new or stretched axes                       dx = dy, summed over them"""
    form = like(x)
    return xp.broadcast_to(x, tuple(shape)), lambda dy: unbroadcast(dy, form)


@shares("y")
@op
def getitem(x, *, index):
    """y = x[index]: ints, slices, None, ..., boolean masks, integer arrays.

    dx is zero except dx[index] += dy; an element that was taken twice gets both (CASES 12, 13).
    Raises IndexError for integers out of range, before anything is read (CASES 14).
    """
    index, (shape, dtype) = _on_device(index, x.shape), (x.shape, x.dtype)

    def backward(dy):
        dx = xp.zeros(shape, dtype)
        if _may_repeat(index):
            if dy.size:
                add_at(dx, index, dy)
        else:
            dx[index] = dy
        return dx

    return x[index], backward


def without_tensors(index):
    """An index with the arrays of its Tensors in their place: no gradient flows through it (CASES 16)."""
    if isinstance(index, tuple):
        return tuple(without_tensors(part) for part in index)
    return index.data if isinstance(index, Tensor) else index


def _may_repeat(index):
    parts = index if isinstance(index, tuple) else (index,)
    return any(is_array(part) and part.dtype.kind in "iu" for part in parts)


def _on_device(index, shape):
    """An index with lists and host arrays as arrays of `xp`, checked while they are on the host."""
    if not isinstance(index, tuple):
        return _part_on_device(index, shape[:1])
    sizes, known = iter(shape), True
    parts = []
    for part in index:
        known = known and part is not Ellipsis                  # after ..., which axis this is depends on the rest
        if part is None or part is Ellipsis or not known:
            parts.append(_part_on_device(part, ()))
            continue
        axes = part.ndim if is_array(part) and part.dtype.kind == "b" else 1
        parts.append(_part_on_device(part, tuple(n for n, _ in zip(sizes, range(axes)))))
    return tuple(parts)


def _part_on_device(part, size):
    if isinstance(part, numpy.integer):
        return int(part)
    if not isinstance(part, (list, numpy.ndarray)):
        return part
    host = numpy.asarray(part)
    host = host.astype("int64") if host.size == 0 and host.dtype.kind == "f" else host
    if device != "cpu" and size and host.size and host.dtype.kind in "iu":
        outside = (host < -size[0]) | (host >= size[0])
        if outside.any():
            raise IndexError(f"getitem: index {host[outside][0]} is out of range for an axis of size {size[0]}")
    return to_device(host)


@op
def concat(tensors, axis=0):
    """The tensors one after the other along an axis that exists            dx_i = its part of dy"""
    _check_list("concat", tensors)
    sizes = [x.shape[axis] for x in tensors]
    return xp.concatenate(tensors, axis), lambda dy: [part.copy() for part in _parts(dy, sizes, axis)]


@op
def stack(tensors, axis=0):
    """The tensors one after the other along a new axis                     dx_i = its slice of dy"""
    _check_list("stack", tensors)
    sizes = [1] * len(tensors)
    return xp.stack(tensors, axis), lambda dy: [part.squeeze(axis).copy() for part in _parts(dy, sizes, axis)]


def _check_list(name, tensors):
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise TypeError(f"{name}: expected a list of one or more tensors, got {tensors!r:.60}")


@shares("y")
@op
def split(x, parts, axis=0):
    """A tuple of consecutive parts: so many equal ones, or ones of these sizes.

    dx = the gradients of the parts, one after the other; zero for a part that nobody used.
    """
    sizes = _sizes(x.shape[axis], parts)
    ys = tuple(_parts(x, sizes, axis))
    shapes, dtype = [y.shape for y in ys], x.dtype

    def backward(dys):
        dys = dys if isinstance(dys, tuple) else (dys,)
        return xp.concatenate([xp.zeros(shape, dtype) if dy is None else dy for shape, dy in zip(shapes, dys)], axis)

    return ys, backward


def _sizes(total, parts):
    if isinstance(parts, int):
        if parts < 1 or total % parts:
            raise ValueError(f"split: an axis of size {total} cannot be cut into {parts} equal parts: give the sizes")
        return [total // parts] * parts
    if sum(parts) != total or min(parts, default=0) < 0:
        raise ValueError(f"split: sizes {list(parts)} add up to {sum(parts)}, the axis has {total}")
    return list(parts)


def _parts(x, sizes, axis):
    """Consecutive slices of x along an axis: views."""
    start, before = 0, (slice(None),) * (axis % x.ndim)
    for size in sizes:
        yield x[(*before, slice(start, start + size))]
        start += size


@op
def pad(x, widths, value=0):
    """x with a margin of `value`: widths = (before, after) for every axis          dx = the inner part of dy"""
    widths = [(w, w) if isinstance(w, int) else tuple(w) for w in widths]
    if len(widths) != x.ndim:
        raise ValueError(f"pad: {len(widths)} widths for {x.ndim} axes: give (before, after) for each")
    inner = tuple(slice(before, before + n) for (before, _), n in zip(widths, x.shape))
    y = xp.full(tuple(sum(w) + n for w, n in zip(widths, x.shape)), value, x.dtype)
    y[inner] = x
    return y, lambda dy: dy[inner].copy()
