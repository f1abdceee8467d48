"""All parameters of a model in one buffer, all gradients in another.

Optimizer, clipping, the buckets of the all-reduce and checkpoints work on ranges of these.
"""

from autograd.backend import aligned_empty
from minigpt.module import named_parameters

LINE = 64                   # bytes: where every parameter starts, a cache line


class Flat:
    """The parameters of a model as views of `data`, their gradients as views of `grad`.

    parameters  {name: Parameter}, in the order of `named_parameters`, which is their order here
    ranges      {name: slice}
    data, grad  (n,) arrays of one dtype, 64-byte aligned; what lies between two parameters is zero in both

    Raises ValueError if the parameters are of several dtypes, or if there are none.
    """

    def __init__(self, model):
        self.parameters = dict(named_parameters(model))
        dtypes = {parameter.dtype for parameter in self.parameters.values()}
        if len(dtypes) != 1:
            raise ValueError(f"flatten takes parameters of one dtype, these have {sorted(map(str, dtypes)) or 'none'}")
        dtype = dtypes.pop()
        self.ranges, size = {}, 0
        for name, parameter in self.parameters.items():
            self.ranges[name] = slice(size, size + parameter.size)
            size += -(-parameter.size * dtype.itemsize // LINE) * LINE // dtype.itemsize
        self.data, self.grad = aligned_empty(size, dtype), aligned_empty(size, dtype)
        self.data.fill(0)
        self.grad.fill(0)
        for name, parameter in self.parameters.items():
            view = self.view(self.data, name)
            view[...] = parameter.data
            parameter.data, parameter.buffer, parameter.grad = view, self.view(self.grad, name), None

    @property
    def size(self):
        return self.data.size

    def view(self, buffer, name):
        """The range of `buffer` (as long as `data`) that belongs to the parameter `name`, in its shape."""
        return buffer[self.ranges[name]].reshape(self.parameters[name].shape)

    def zero_grad(self):
        """Forget the gradients: the first that comes overwrites."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def gradient(self):
        """`grad`, complete: zero where this step used no parameter (case 41), and what somebody put in place of a
        gradient is copied in. To be called between the last backward and any use of `grad`.

        Raises ValueError for a gradient of another shape than its parameter (case 9)."""
        for name, parameter in self.parameters.items():
            if parameter.grad is None:
                parameter.buffer[...] = 0
            elif parameter.grad is not parameter.buffer:
                if parameter.grad.shape != parameter.shape:
                    raise ValueError(f"{name} has shape {parameter.shape}, but its grad was set to an array of shape "
                                     f"{parameter.grad.shape}: they must be equal")
                parameter.buffer[...] = parameter.grad
        return self.grad

    def decayed(self):
        """The ranges that weight decay shrinks, each parameter once (case 141)."""
        return [self.ranges[name] for name, parameter in self.parameters.items() if parameter.decay]


def flatten(model):
    """Move the parameters of an initialised `model` into one buffer and give their gradients another: a Flat."""
    return Flat(model)


def empty_like(flat):
    """A zeroed buffer as long as `flat.data`: a moment of an optimizer."""
    buffer = aligned_empty(flat.size, flat.data.dtype)
    buffer.fill(0)
    return buffer
