"""A device in ordinary memory that is as late as a GPU: what is started on it happens at `synchronize`.

Its arrays refuse to become NumPy arrays, and refuse to show their memory while work is pending.
"""

import math
import threading

import numpy as np

_rank = threading.local()  # .pending: what was started and has not happened, on this rank's stream


def pending():
    if not hasattr(_rank, "pending"):
        _rank.pending = []
    return _rank.pending


class FakeArray:
    """Enough of an array for `comm`."""

    def __init__(self, memory):
        self._memory = memory
        self.shape, self.dtype, self.size, self.ndim = memory.shape, memory.dtype, memory.size, memory.ndim
        self.nbytes = memory.nbytes

    @property
    def __cuda_array_interface__(self):
        if pending():
            raise RuntimeError("memory read while work is pending: synchronize first")
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self._memory.ctypes.data, False),
                "version": 3, "strides": None if self._memory.flags.c_contiguous else self._memory.strides}

    def __array__(self, *_, **__):
        raise TypeError("a device's array does not turn into a NumPy array by itself")

    def __getitem__(self, key):
        return FakeArray(self._memory[key])

    def reshape(self, *shape):
        shared = self._memory.reshape(*shape)
        assert np.shares_memory(shared, self._memory) or not shared.size, "not a view"
        return FakeArray(shared)

    def transpose(self, *axes):
        return FakeArray(self._memory.transpose(*axes))

    def fill(self, value):
        pending().append(lambda: self._memory.fill(value))


class FakeDevice:
    """The protocol of comm/device.py."""

    def __init__(self):
        self.staged = 0  # how often pinned memory was asked for

    def owns(self, array):
        return isinstance(array, FakeArray)

    def empty(self, count, dtype):
        return self.like((count,), dtype)

    def pinned(self, count, dtype):
        self.staged += 1
        return np.empty(count, dtype)

    def like(self, shape, dtype):
        memory = np.empty(math.prod(shape) + 1, dtype)[1:].reshape(shape)
        return FakeArray(memory)

    def copy(self, target, source):
        to, come = (x._memory if self.owns(x) else x for x in (target, source))
        if self.owns(target) and self.owns(source):
            pending().append(lambda: np.copyto(to, come))
        else:
            np.copyto(to, come)

    def add_into(self, target, source):
        assert self.owns(target)
        assert self.owns(source)
        pending().append(lambda: np.add(target._memory, source._memory, out=target._memory))

    def synchronize(self):
        for work in pending():
            work()
        pending().clear()


def on_device(values, device):
    """An array of the device with these values."""
    values = np.asarray(values)
    array = device.like(values.shape, values.dtype)
    device.copy(array, values)
    return array


def values_of(array, device):
    """Its values, when everything has happened."""
    device.synchronize()
    return array._memory.copy()
