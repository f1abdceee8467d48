"""The array of the stand-in, and the border between it and NumPy."""
import math
from typing import NamedTuple

import numpy as np

from autograd.strict.rank import Device, stats

SCALARS = (bool, int, float, complex, str, type(None), slice, type(Ellipsis), np.generic, np.dtype, type)


class Flags(NamedTuple):
    """What cupy.ndarray.flags offers; NumPy's has more (writeable, aligned)."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool


class Memory(NamedTuple):
    """cupy.ndarray.data, of which kernels read the pointer."""

    ptr: int


def wrap(array, base=None):
    x = object.__new__(ndarray)
    x._array, x._device, x._base = array, stats.device, base
    return x


class ndarray:
    """An array on the pretended device.  Methods that need no care are bound from cupy_api.json below."""

    __slots__ = ("__weakref__", "_array", "_base", "_device")
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, shape, dtype=float):
        self._array, self._device, self._base = _poisoned(shape, dtype), stats.device, None

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    size = property(lambda self: self._array.size)
    strides = property(lambda self: self._array.strides)
    itemsize = property(lambda self: self._array.itemsize)
    nbytes = property(lambda self: self._array.nbytes)
    base = property(lambda self: self._base)
    device = property(lambda self: Device(self._device))
    data = property(lambda self: Memory(self._array.ctypes.data))
    T = property(lambda self: run("T", lambda a: a.T, (self,), {}))
    mT = property(lambda self: run("mT", lambda a: a.mT, (self,), {}))
    real = property(lambda self: run("real", lambda a: a.real, (self,), {}))
    imag = property(lambda self: run("imag", lambda a: a.imag, (self,), {}))

    @property
    def flags(self):
        flags = self._array.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self._base is None)

    def get(self, stream=None, order="C", out=None, blocking=True):
        """Explicit copy to the host, into `out` if given (same shape and dtype, contiguous)."""
        stats.wait("get()")
        if out is None:
            return self._array.copy(order)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype or out.shape != self.shape:
            raise TypeError(f"get(out=): expected a NumPy array {self.shape} {self.dtype}, got {_what(out)}")
        if not out.flags.c_contiguous:
            raise RuntimeError("get(out=): out is not contiguous, CuPy cannot copy into it")
        np.copyto(out, self._array)
        return out

    def set(self, arr, stream=None):
        """Explicit copy of a host array of the same shape and dtype into this one."""
        if not isinstance(arr, np.ndarray) or arr.dtype != self.dtype or arr.shape != self.shape:
            raise TypeError(f"set(): expected a NumPy array {self.shape} {self.dtype}, got {_what(arr)}")
        stats.h2d += 1
        np.copyto(self._array, arr)

    def item(self):
        """The only element as a Python number; waits."""
        stats.wait("item()")
        return self._array.item()

    def tolist(self):
        stats.wait("tolist()")
        return self._array.tolist()

    def tobytes(self, order="C"):
        stats.wait("tobytes()")
        return self._array.tobytes(order)

    def _number(self, convert):
        stats.wait(f"{convert.__name__}(x)")
        return convert(self._array)

    def __float__(self):
        return self._number(float)

    def __int__(self):
        return self._number(int)

    def __complex__(self):
        return self._number(complex)

    def __bool__(self):
        return self._number(bool)

    def __format__(self, spec):
        stats.wait("formatting")
        return format(self._array[()], spec)

    def __repr__(self):
        stats.wait("printing")
        return f"strict.{self._array!r}"

    def __index__(self):
        raise TypeError("a device array is no index: int(x) says that it waits for the device")

    def __contains__(self, value):
        raise TypeError("argument of type 'ndarray' is not iterable on a device: (x == value).any()")

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array: use to_host(x), which says that it waits")

    @property
    def __cuda_array_interface__(self):
        """Lets mpi4py take its GPU path, on what is really host memory.  Refused while work is unfinished."""
        if self._device in stats.dirty:
            raise RuntimeError("buffer exported while the stream has unfinished work: synchronize() first")
        strides = None if self._array.flags.c_contiguous else self._array.strides
        return {"shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "strides": strides,
                "data": (self._array.ctypes.data, False), "version": 3, "stream": 1}

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        return (self[i] for i in range(len(self._array)))

    def __getitem__(self, key):
        if _holds(key, "b"):
            stats.wait("x[mask]")
        return run("getitem", _get_item, (self, key), {})

    def __setitem__(self, key, value):
        if isinstance(value, list | tuple):
            refuse("x[...] = values", value)
        if _holds(key, "iu") and getattr(value, "size", 1) > 1:
            _check_unique(self._array, key)
        run("setitem", np.ndarray.__setitem__, (self, key, value), {})

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _from_host, (self.get(),)


def _from_host(array):
    stats.h2d += 1
    return wrap(array)


def _get_item(array, key):
    """array[key] as CuPy has it: picking one element gives a view of no dimensions, not a copied number."""
    picked = array[key]
    if isinstance(picked, np.generic):
        return array[(*key, ...) if isinstance(key, tuple) else (key, ...)]
    return picked


def _holds(key, kinds):
    """Does an index hold a device array whose dtype is of these kinds?"""
    key = key if isinstance(key, tuple) else (key,)
    return any(x.dtype.kind in kinds for x in key if isinstance(x, ndarray))


def _check_unique(array, key):
    key = tuple(map(to_numpy, key)) if isinstance(key, tuple) else to_numpy(key)
    chosen = np.arange(array.size).reshape(array.shape)[key]
    if np.unique(chosen).size < chosen.size:
        raise IndexError("an index comes twice in x[index] = values: on a GPU any of the values may win. "
                         "autograd.backend.add_at adds them")


def _what(x):
    return f"{type(x).__name__} {getattr(x, 'shape', '')} {getattr(x, 'dtype', '')}".strip()


def refuse(name, x):
    raise TypeError(f"{name}: unsupported type {type(x)}: host data in a device operation; use to_device")


def to_numpy(x, name="index"):
    """What NumPy computes on: the array inside x.  Refuses host arrays and arrays of another device."""
    if type(x) is ndarray:
        if x._device != stats.device:
            raise ValueError(f"{name}: array on device {x._device}, but the current device is {stats.device}")
        return x._array
    if isinstance(x, SCALARS) or callable(x):
        return x
    if isinstance(x, tuple | list):
        return type(x)(to_numpy(i, name) for i in x)
    return refuse(name, x)


def run(name, function, args, keywords):
    """Run a NumPy function on what is inside the arguments; its result lives on the device."""
    keywords_inside = {key: to_numpy(x, name) for key, x in keywords.items()}
    result = function(*(to_numpy(x, name) for x in args), **keywords_inside)
    result = keywords["out"] if keywords.get("out") is not None else _device(result, args)
    if not _is_view(result):
        stats.launches += 1
        stats.dirty.add(stats.device)
    return result


def _is_view(result):
    """Did an operation only name memory anew, which queues nothing on the stream?"""
    if isinstance(result, tuple | list):
        return bool(result) and all(map(_is_view, result))
    return type(result) is ndarray and result._base is not None


def _device(result, args):
    """result with every array in it wrapped; a view remembers the array among args whose memory it shows."""
    if isinstance(result, np.ndarray):
        for x in args:
            if type(x) is ndarray and x._array is result:
                return x
        return wrap(result, None if result.base is None else _owner(result, args))
    if isinstance(result, np.generic):
        return wrap(np.asarray(result))
    if isinstance(result, tuple | list):
        return type(result)(_device(r, args) for r in result)
    return result


def _owner(view, args):
    for x in args:
        if type(x) is ndarray and (x._array is view.base or x._array.base is view.base):
            return x if x._base is None else x._base
    return None


def _poisoned(shape, dtype=float):
    """Uninitialised memory, made visible: NaN, or a number that no index and no sum survives."""
    array = np.empty(shape, dtype)
    if array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    else:
        array.fill(True if array.dtype.kind == "b" else math.nan)
    return array


def is_device(x):
    return type(x) is ndarray or (isinstance(x, tuple | list) and any(map(is_device, x)))
