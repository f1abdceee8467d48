"""What the formulas share: shapes of gradients, normalised axes, checked indices, and the mark of sharing."""

import numpy

from autograd.backend import device, is_array, to_device, xp


def shares(*what):
    """Declare, above `@op`, which memory an op may share with what it is given.

    "y"     an output may be an input or a view of one
    "dy"    a gradient may be the incoming gradient or a view of it

    Everything else must be new memory, which `check_op` verifies.
    """
    if not set(what) <= {"y", "dy"}:
        raise ValueError(f'shares{what}: expected "y" or "dy"')

    def mark(lifted):
        lifted.shares = frozenset(what)
        return lifted
    return mark


def alike(a, b):
    """Operands whose result has the floating dtype of the one that matters.

    Integers take the other's floating dtype, and so does an array without axes beside one with axes:
    a count or a scale never promotes float32 (CASES 20-23), be it a number or an array on the device.
    """
    if is_array(a) and is_array(b) and a.dtype != b.dtype:
        if _yields(b, a):
            return a, b.astype(a.dtype)
        if _yields(a, b):
            return a.astype(b.dtype), b
    return a, b


def _yields(x, other):
    return other.dtype.kind == "f" and (x.dtype.kind in "iub" or (x.ndim == 0 and other.ndim > 0))


def like(x):
    """What a gradient of x must look like, (shape, dtype), without keeping x; None if x takes no gradient."""
    return (x.shape, x.dtype) if is_array(x) and x.dtype.kind == "f" else None


def unbroadcast(dy, form):
    """Undo broadcasting: sum dy over the axes along which an operand of this form, `like(x)`, was repeated.

    The result has the operand's own shape and dtype (CASES 7, 8, 21-24); None for one without gradient.
    """
    if form is None:
        return None
    shape, dtype = form
    if dy.shape != shape:
        if dy.ndim > len(shape):
            dy = dy.sum(tuple(range(dy.ndim - len(shape))))
        stretched = tuple(i for i, n in enumerate(shape) if n == 1 and dy.shape[i] != 1)
        if stretched:
            dy = dy.sum(stretched, keepdims=True)
    return dy.astype(dtype, copy=False)


def shares_memory(a, b):
    """Whether an element of one array is an element of the other."""
    return bool(xp.shares_memory(a, b))


def flat(x):
    """(..., n) -> (rows, n): a view if the memory allows."""
    rows = 1
    for n in x.shape[:-1]:
        rows *= n
    return x.reshape(rows, x.shape[-1])


def spread(dy, shape, axis, keepdims):
    """Give what a reduction of `shape` over `axis` left its place back: a view that broadcasts to `shape`."""
    if keepdims:
        return dy
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {a % len(shape) for a in axes}
    return dy.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def count(x, axis):
    """How many elements of x a reduction over `axis` puts into one."""
    number = 1
    for a in range(x.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,)):
        number *= x.shape[a]
    return number


def checked_indices(ids, size, what, ignore=None):
    """Integer indices 0 <= id < size as an array of `xp`.

    Checked where they are on the host, so that nothing waits for a device (CASES 14): a batch is
    checked as it enters, in NumPy, before it is copied.  Raises TypeError for what is no integer,
    IndexError naming the first bad id and the size.
    """
    if device != "cpu" and is_array(ids):
        return ids
    ids = numpy.asarray(ids)
    if ids.size == 0:
        return to_device(ids.astype("int64"))
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{what}: expected integers, got {ids.dtype}")
    outside = (ids < 0) | (ids >= size)
    if ignore is not None:
        outside &= ids != ignore
    if outside.any():
        raise IndexError(f"{what}: id {ids[outside][0]} is out of range for size {size}: "
                         f"expected 0 <= id < {size}" + (f" or {ignore}" if ignore is not None else ""))
    return to_device(ids.astype("int64") if ids.dtype.kind == "u" else ids)      # unsigned has no -1 to ignore


def exponentials(x, axis):
    """exp(x - max) and the maximum that was taken off, which keeps exp in range.

    A row of nothing but -inf, where nothing may be looked at, gives zeros (CASES 33, 34).
    """
    if count(x, axis) == 0:
        return x, x.sum(axis, keepdims=True)
    top = x.max(axis, keepdims=True)
    top = xp.where(xp.isinf(top), 0, top)
    return xp.exp(x - top), top


def softmax_of(x, axis=-1):
    """The values of softmax; a row of nothing but -inf gives zeros."""
    y, _ = exponentials(x, axis)
    total = y.sum(axis, keepdims=True)
    return y / xp.where(total == 0, 1, total)
