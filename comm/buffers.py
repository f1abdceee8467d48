"""From any array to the flat contiguous memory that plans run on, and back."""

import numpy as np

from comm.device import device_of, host, on_device


def as_array(x):
    """`x` itself if a device owns it, else a NumPy array of it. Raises TypeError for what cannot travel as bytes."""
    if on_device(x):
        device_of(x)
        return x
    x = np.asarray(x)
    if x.dtype.hasobject:
        raise TypeError(f"comm moves numbers as bytes and cannot move dtype {x.dtype}: convert it to numbers first")
    return x


class _At:
    """Memory by its address, for NumPy's array interface; refers to nobody."""

    def __init__(self, address, nbytes):
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


def address_of(array):
    return array.__array_interface__["data"][0]


def memory_of(array):
    """The memory of a contiguous host array as a 1-d array that does not keep it alive.

    A plan that is cached for a caller's buffer must not own it. The plan only ever runs while its caller holds an
    array at this address, so the memory is there when it is used.
    """
    return np.asarray(_At(address_of(array), array.nbytes)).view(array.dtype)


def same_memory(x, y):
    """Do two arrays of one shape and dtype name the same bytes in the same order?"""
    return x is y or (on_device(x) == on_device(y) is False and x.strides == y.strides
                      and address_of(x) == address_of(y))


def is_contiguous(array):
    """One run of memory in C order? A device's array must be synchronised first."""
    if on_device(array):
        return array.__cuda_array_interface__.get("strides") is None
    return array.flags.c_contiguous


def check_out(out, shape, dtype):
    """Raise ValueError unless results of this shape and dtype can be written into `out`."""
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}, the result shape {shape} and {dtype}")
    if not on_device(out) and not out.flags.writeable:
        raise ValueError("out is read-only: pass an array that can be written")


def to_host(x):
    """A contiguous host array with the contents of `x`: `x` itself if it is one."""
    device = device_of(x)
    if device is host:
        return np.ascontiguousarray(x).reshape(x.shape)
    device.synchronize()
    staged = device.pinned(x.size, x.dtype).reshape(x.shape)
    device.copy(staged, x)
    device.synchronize()
    return staged


def to_device_of(like, y):
    """`y`, a host array, as an array of the device that owns `like`."""
    device = device_of(like)
    if device is host:
        return y
    result = device.like(y.shape, y.dtype)
    device.copy(result, y)
    return result
