"""From any array to the flat contiguous memory that plans run on."""

import numpy as np

from comm.device import device_of, host, on_device


def as_array(x):
    """`x` itself if a device owns it, else a NumPy array of it. Raises TypeError for what is no number."""
    if on_device(x):
        device_of(x)
        return x
    x = np.asarray(x)
    if x.dtype.hasobject:
        raise TypeError(f"comm moves the bytes of numbers and cannot move dtype {x.dtype}: convert it first")
    if not x.dtype.itemsize:
        raise TypeError(f"dtype {x.dtype!r} has no bytes to move: expected one with at least 1")
    return x


class At:
    """Memory by its address, for NumPy's array interface; refers to nobody."""

    def __init__(self, address, nbytes):
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1",
                                    "version": 3}


def address_of(array):
    """Where a host array begins in memory."""
    return array.__array_interface__["data"][0]


def memory_of(array):
    """The memory of a contiguous host array as a 1-d array that does not keep it alive.

    A plan that is kept for a caller's buffer must not own it. It is only run while its caller holds an array
    at this address, so the memory is there whenever it is used.
    """
    return np.asarray(At(address_of(array), array.nbytes)).view(array.dtype)


def same_memory(x, y):
    """Do two arrays of one shape and dtype name the same bytes in the same order?"""
    if x is y:
        return True
    return not on_device(x) and not on_device(y) and x.strides == y.strides and address_of(x) == address_of(y)


def is_contiguous(array):
    """One run of memory in C order? An array of a device must be synchronised first."""
    if on_device(array):
        return array.__cuda_array_interface__.get("strides") is None
    return array.flags.c_contiguous


def overlap(x, y):
    """Might two arrays share memory? Arrays of a device are only known to if they are the same."""
    return x is y if on_device(x) or on_device(y) else np.may_share_memory(x, y)


def copy_of(x):
    """A new array of the same device with the same contents."""
    device = device_of(x)
    copy = device.like(x.shape, x.dtype)
    device.copy(copy, x)
    return copy


def check_writable(out, name="out"):
    """Raise unless `out` is an array that can be written. name: of the argument."""
    if not on_device(out) and not isinstance(out, np.ndarray):
        raise TypeError(f"{name} is a {type(out).__name__}: expected an array")
    if not on_device(out) and not out.flags.writeable:
        raise ValueError(f"{name} is read-only: pass an array that can be written")


def check_out(out, shape, dtype):
    """Raise unless `out` is an array that a result of this shape and dtype can be written into."""
    check_writable(out)
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}: expected {shape} and {dtype}")


def contiguous(x, takes_devices):
    """`x`, or a copy of it, in one run of memory that the transport can read."""
    device = device_of(x)
    device.synchronize()
    if device is host or not takes_devices:
        if device is host and x.flags.c_contiguous:
            return x
        copy = device.pinned(x.size, x.dtype).reshape(x.shape)
    elif is_contiguous(x):
        return x
    else:
        return copy_of(x)
    device.copy(copy, x)
    return copy


def landing(out, takes_devices):
    """`out` if the transport can write there, else something of its shape to be copied into it afterwards."""
    device = device_of(out)
    device.synchronize()
    if device is not host and not takes_devices:
        return device.pinned(out.size, out.dtype).reshape(out.shape)
    return out if is_contiguous(out) else device.like(out.shape, out.dtype)
