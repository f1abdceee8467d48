"""What `comm` asks of arrays. NumPy's body is here; others (CuPy, the strict stand-in) are handed over.

`comm` imports no array module but NumPy. It knows an array of a device by `__cuda_array_interface__`, and
finds the registered device that owns it. A device has these methods:

    owns(array)             is this array one of yours?
    empty(count, dtype)     a new 1-d array, 64-byte aligned, contents undefined
    pinned(count, dtype)    a 1-d NumPy array that the device copies to and from quickly
    like(shape, dtype)      a new array of that shape, contents undefined
    copy(target, source)    between any two of host and device, same shape, any strides; done when it returns
                            if one of them is on the host
    add_into(target, source)    target += source
    synchronize()           wait until everything that was started on arrays is finished
"""

import math

import numpy as np

ALIGNMENT = 64  # bytes: a cache line. Unaligned buffers cost up to 2.3 times as much: stores split lines.


class HostDevice:
    """NumPy arrays in ordinary memory."""

    def owns(self, array):
        return isinstance(array, (np.ndarray, np.generic))

    def empty(self, count, dtype):
        dtype = np.dtype(dtype)
        memory = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start:start + count * dtype.itemsize].view(dtype)

    pinned = empty

    def like(self, shape, dtype):
        return self.empty(math.prod(shape), dtype).reshape(shape)

    def copy(self, target, source):
        np.copyto(target, source)

    def add_into(self, target, source):
        np.add(target, source, out=target)

    def synchronize(self):
        """Nothing runs behind our back."""


class Staging:
    """A device's arrays, worked on in host memory, because the transport cannot read the device."""

    def __init__(self, device):
        self.empty = device.pinned


host = HostDevice()
_devices = []


def register(device):
    """Let `comm` take the arrays that `device` owns. A device of the same class is replaced."""
    _devices[:] = [d for d in _devices if type(d) is not type(device)] + [device]


def on_device(array):
    """Does this array live on a device? Asks its type: the attribute may refuse while work is pending."""
    return hasattr(type(array), "__cuda_array_interface__")


def device_of(array):
    """The host for a NumPy array, else the registered device that owns it; TypeError if nobody does."""
    if host.owns(array):
        return host
    for device in _devices:
        if device.owns(array):
            return device
    raise TypeError(
        f"comm cannot move a {type(array).__module__}.{type(array).__name__}: expected a NumPy array, a "
        "number, or an array of a device that was handed over with comm.device.register(device)")
