"""The module of the stand-in: CuPy's names and keywords, NumPy's results."""
import functools
import json
from pathlib import Path

import numpy as np

from autograd.strict.array import is_device, ndarray, refuse, run, to_numpy, wrap
from autograd.strict.rank import Cuda, stats

API = json.loads(Path(__file__).with_name("cupy_api.json").read_text())
FIRST_IS_ARRAY = {"a", "x", "arr", "m", "ary", "tup", "arrays", "condition"}   # names of parameters
ANY_FIRST = {"array", "asarray", "asanyarray", "astype", "broadcast_to", "isscalar", "ndim", "shape", "size"}
WAITING = {"argwhere", "bincount", "choose", "compress", "extract", "flatnonzero", "nonzero", "unique"}
ARRAY_ON_CUPY = {"allclose", "array_equal", "array_equiv", "count_nonzero"}    # NumPy: a Python number
NUMPY_TYPES = (np.generic, np.dtype, np.finfo, np.iinfo)
SHAPE_AT = {"zeros": slice(0, 1), "ones": slice(0, 1), "full": slice(0, 1), "eye": slice(0, 2),
            "reshape": slice(1, 2), "broadcast_to": slice(1, 2), "tile": slice(1, 2),
            "ndarray.reshape": slice(1, None)}                                 # arguments that are host ints
ATOMIC = ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128")


def _check_call(name, allowed, args, keywords):
    """Refuse what the signature of the CuPy function does not take."""
    if allowed is None:
        return
    for key in keywords:
        if key not in allowed:
            raise TypeError(f"cupy.{name}() got an unexpected keyword argument {key!r}")
    if len(args) > len(allowed) and not any(p.startswith("*") for p in allowed):
        raise TypeError(f"cupy.{name}() takes {len(allowed)} positional arguments, {len(args)} were given")


def _function(name, function, allowed):
    """The CuPy function of this name, computed by NumPy's."""
    needs_array = bool(allowed) and allowed[0] in FIRST_IS_ARRAY and name not in ANY_FIRST

    def call(*args, **keywords):
        _check_call(name, allowed, args, keywords)
        if needs_array and args and not is_device(args[0]):
            refuse(name, args[0])
        if name in SHAPE_AT and any(map(is_device, args[SHAPE_AT[name]])):
            raise TypeError(f"cupy.{name}: a device array is no shape: int(x) says that it waits")
        if name.removeprefix("ndarray.") in WAITING or (name == "where" and len(args) == 1):
            stats.wait(name)
        result = run(name, function, args, keywords)
        return wrap(np.asarray(result)) if name in ARRAY_ON_CUPY else result
    return call


class Ufunc:
    """A ufunc of CuPy: takes device arrays and scalars, and out, dtype, casting.  No where=, no lists."""

    def __init__(self, name):
        self.name, self._ufunc = name, getattr(np, name)
        self.nin, self.nout = self._ufunc.nin, self._ufunc.nout

    def __call__(self, *args, **keywords):
        _check_call(self.name, ("*", *API["ufunc_keywords"]), args, keywords)
        for x in args:
            if isinstance(x, tuple | list):
                refuse(self.name, x)
        out = keywords.get("out")
        if type(out) is tuple and len(out) == 1:
            keywords["out"] = out[0]
        result = run(self.name, self._ufunc, args, keywords)
        return args[-1] if len(args) == self.nin + 1 == self.nin + self.nout else result

    def _method(self, method, known, args, keywords):
        if self.name not in known:
            raise NotImplementedError(f"`{self.name}.{method}` is not supported by CuPy")
        return run(f"{self.name}.{method}", getattr(self._ufunc, method), args, keywords)

    def at(self, a, indices, b=None):
        if a.dtype.name not in ATOMIC:
            raise TypeError(f"cupy.{self.name}.at: no atomic operation on {a.dtype}")
        self._method("at", API["ufuncs_with_at"], (a, indices, b), {})

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return self._method("reduce", ("add", "multiply"), (array, axis, dtype, out, keepdims), {})

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return self._method("accumulate", ("add", "multiply"), (array, axis, dtype, out), {})

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        return self._method("reduceat", ("add",), (array, indices, axis, dtype, out), {})

    def outer(self, a, b, **keywords):
        return run(f"{self.name}.outer", self._ufunc.outer, (a, b), keywords)


def _matmul(*args, **keywords):
    _check_call("matmul", API["functions"]["matmul"], args, keywords)
    for x in args:
        if not isinstance(x, ndarray):
            refuse("matmul", x)
    if any(x.ndim > 2 and x.dtype.name == "bfloat16" for x in args):
        raise TypeError("cupy.matmul: data type 'E' not understood: no bfloat16 product of >2 dimensions")
    return run("matmul", np.matmul, args, keywords)


class Generator:
    """cupy.random.Generator: some of NumPy's distributions, drawn onto the device."""

    def __init__(self, seed=None):
        self._generator = np.random.default_rng(seed)

    def __getattr__(self, name):
        if name not in API["generator"]:
            raise AttributeError(f"cupy.random.Generator has no {name!r} (CuPy {API['version']})")
        return _function(f"random.Generator.{name}", getattr(self._generator, name), API["generator"][name])


class Random:
    """cupy.random without its global generator, which no library may touch."""

    Generator = Generator
    default_rng = Generator


def _is_numpy_type(x):
    return isinstance(x, type) and issubclass(x, NUMPY_TYPES)


class Namespace:
    """The module `cupy`, or one of its submodules: names are looked up in the frozen list once, then kept."""

    def __init__(self, prefix, module):
        self._prefix, self._module = prefix, module

    def __getattr__(self, name):
        full, value = self._prefix + name, getattr(self._module, name, None)
        if full in API["functions"] and callable(value):
            value = _function(full, value, API["functions"][full])
        elif full in API["ufuncs"]:
            value = Ufunc(name) if isinstance(value, np.ufunc) else _function(full, value, None)
        elif not any(full in API[kind] for kind in ("functions", "types", "constants")):
            raise AttributeError(f"cupy has no attribute {full!r} (CuPy {API['version']})")
        elif not isinstance(value, float) and not _is_numpy_type(value):
            raise AttributeError(f"autograd.strict does not model cupy.{full}")
        setattr(self, name, value)
        return value


def asarray(a, dtype=None, order=None, copy=None, blocking=False):
    """Copy a host array, a number or a list to the device; device arrays come back as they are."""
    if isinstance(a, ndarray):
        return a if dtype is None else a.astype(dtype, copy=False)
    return array(a, dtype)


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, blocking=False):
    """As asarray, always a copy."""
    if is_device(obj):
        return run("array", lambda x: np.array(x, dtype, ndmin=ndmin), (obj,), {})
    stats.h2d += 1
    host = np.array(obj, dtype, ndmin=ndmin)
    if host.dtype.kind in "OSUMm":
        raise ValueError(f"Unsupported dtype {host.dtype}")
    return wrap(host)


def asnumpy(a, stream=None, order="C", out=None, blocking=True):
    """Explicit copy to the host."""
    return a.get(out=out) if isinstance(a, ndarray) else np.asarray(a)


def empty(shape, dtype=float, order="C"):
    """Uninitialised memory: see _poisoned."""
    return ndarray(shape, dtype)


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    like = to_numpy(prototype, "empty_like")
    return ndarray(like.shape if shape is None else shape, dtype or like.dtype)


def _bind_methods():
    for name, allowed in API["methods"].items():
        if not hasattr(ndarray, name) and hasattr(np.ndarray, name):
            signature = None if allowed is None else ("self", *allowed)
            setattr(ndarray, name, _function(f"ndarray.{name}", getattr(np.ndarray, name), signature))


def _steps_aside(other):
    """Does Python ask `other` instead?  (A class says so by __array_ufunc__ = None, as Tensor does.)"""
    return getattr(type(other), "__array_ufunc__", False) is None


def _bind_operators():
    """CuPy has x @ y, but no x @= y: Python then makes a new array."""
    unary = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
    compare = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
               "ne": "not_equal"}
    in_place = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "pow": "power",
                "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
                "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift"}
    reflected = {**in_place, "divmod": "divmod", "matmul": "matmul"}
    for names, form, make in [(unary, "__{}__", lambda f: lambda a: f(a)),
                              (compare | reflected, "__{}__", _forward),
                              (reflected, "__r{}__", lambda f: lambda a, b: f(b, a)),
                              (in_place, "__i{}__", lambda f: lambda a, b: f(a, b, out=a))]:
        for symbol, name in names.items():
            setattr(ndarray, form.format(symbol), make(getattr(xp, name)))


def _forward(function):
    return lambda a, b: NotImplemented if _steps_aside(b) else function(a, b)


def _bind_protocols():
    """np.exp(x) and np.concatenate([x, y]) give device arrays, as with CuPy."""
    def array_ufunc(self, ufunc, method, *inputs, **keywords):
        function = getattr(xp, ufunc.__name__)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **keywords)

    def array_function(self, function, types, args, keywords):
        module = functools.reduce(getattr, function.__module__.split(".")[1:], xp)
        return getattr(module, function.__name__)(*args, **keywords)
    ndarray.__array_ufunc__, ndarray.__array_function__ = array_ufunc, array_function


xp = Namespace("", np)
vars(xp).update(
    ndarray=ndarray, cuda=Cuda, random=Random,
    linalg=Namespace("linalg.", np.linalg), fft=Namespace("fft.", np.fft),
    asarray=asarray, asanyarray=asarray, array=array, asnumpy=asnumpy, empty=empty, empty_like=empty_like,
    matmul=_matmul, newaxis=None, __name__="autograd.strict", __version__=API["version"],
    s_=np.s_, index_exp=np.index_exp)
_bind_methods()
_bind_operators()
_bind_protocols()
