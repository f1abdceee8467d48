"""Tensor: an array, where it came from, and its gradient.

Python's operators and the methods named after ops (`x.sum()`, `x @ w`) are bound to the ops
in one table at the end of `autograd/ops/__init__.py`.
"""

from autograd.backend import is_array, to_host, xp


class Tensor:
    """An array of `xp` that remembers how it was made.

    data            the array; NumPy arrays and numbers are brought to the device
    grad            array of the same shape and dtype, or None: filled by `backward` for leaves only
    requires_grad   whether gradients flow here
    origin          (node, output number) for the result of an op, None for a leaf
    buffer          where a leaf's gradient shall be accumulated (a view of a flat buffer), or None

    Python numbers and lists become float32 (bools and integers stay what they are); arrays keep
    their dtype. Raises TypeError if a gradient is asked for something that is not floating point.
    """

    __slots__ = ("data", "grad", "requires_grad", "origin", "buffer", "__weakref__")
    __array_priority__ = 200        # array + Tensor asks Tensor.__radd__
    __array_ufunc__ = None

    def __init__(self, data, requires_grad=False):
        if isinstance(data, Tensor):
            raise TypeError("expected an array, got a Tensor: x.detach() is its data without its past")
        array = data if is_array(data) else _from_host(data)
        if requires_grad and array.dtype.kind != "f":
            raise TypeError(f"only floating point can require a gradient, got {array.dtype}: "
                            "convert the data first, for example data.astype('float32')")
        self.data, self.grad, self.origin, self.buffer = array, None, None, None
        self.requires_grad = requires_grad

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        leaf = ", requires_grad" if self.requires_grad else ""
        past = f", from {self.origin[0].name}" if self.origin else leaf
        return f"Tensor({to_host(self.data)!r}{past})"

    def __bool__(self):
        return bool(self.data)

    def __float__(self):
        return float(self.data)

    def item(self):
        """The value of a tensor of one element as a Python number.

        Keep `loss.item()` for a running mean, never the loss itself: a tensor keeps its whole graph alive.
        """
        return self.data.item()

    def numpy(self):
        """The data as a NumPy array on the host (the same memory when it already is one)."""
        return to_host(self.data)

    def detach(self):
        """The same data without a past."""
        return Tensor(self.data)

    def backward(self, grad=None, retain_graph=False):
        """Add the gradient of this tensor to `.grad` of every leaf it depends on.

        grad          dL/d(self), same shape; may be left out for a tensor of one element
        retain_graph  keep what the ops saved, so that backward may run again

        Raises RuntimeError if nothing here requires a gradient, if the graph was released by an
        earlier backward, or if grad is needed or has another shape.
        """
        from autograd.tape import backpropagate  # the tape itself needs Tensor
        backpropagate(self, grad, retain_graph)


def _from_host(data):
    """Lists and numbers: floats become float32; NumPy arrays keep their dtype."""
    array = xp.asarray(data)
    typed = hasattr(data, "dtype")
    return array.astype(xp.float32) if array.dtype == xp.float64 and not typed else array
