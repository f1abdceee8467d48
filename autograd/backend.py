"""The array module, chosen once: the only file that tells NumPy from CuPy from the strict stand-in.

    from autograd.backend import xp

`MINIGPT_DEVICE` is read at the first import and never again:

    auto    CuPy when a GPU passes `gpu_status`, else NumPy (the default)
    cpu     NumPy
    cuda    CuPy, or an error that says why not and what to install
    strict  `autograd.strict`: NumPy underneath, refusing what CuPy refuses, for tests without a GPU

A rank is a process with one device, so nothing takes a `device` argument and nothing is dispatched per call.
"""
import functools
import math
import os
from importlib.util import find_spec

import numpy as np

DEVICES = ("auto", "cpu", "cuda", "strict")
ALIGNMENT = 64                                  # bytes: one cache line, one AVX-512 register
CUPY_VERSIONS = "14"                            # 13 finds no pip-installed NVRTC and has no bfloat16


@functools.cache
def gpu_status():
    """-> (ok, reason): can CuPy compute here?  Never raises.

    Runs one compiled kernel and one matrix product, because a GPU whose NVRTC or cuBLAS is missing still
    allocates and copies, and would fail at the first training step instead.
    """
    if find_spec("cupy") is None:
        return False, f"CuPy is not installed; {_install_hint()}"
    try:
        import cupy
    except Exception as error:                  # a broken or doubled install raises many types
        return False, f"CuPy is installed but does not import ({_describe(error)}); {_install_hint()}"
    if cupy.__version__.split(".")[0] != CUPY_VERSIONS:
        return False, f"CuPy {cupy.__version__} is installed, {CUPY_VERSIONS}.x is needed; {_install_hint()}"
    return _probe(cupy)


def _probe(cupy):
    """The part of `gpu_status` that needs CuPy: driver, device, kernel compiler, matrix product."""
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except Exception as error:                  # one CUDA error code stands for both "no" and "old" driver
        driver = runtime.driverGetVersion()     # 0 without a driver
        if driver == 0:
            return False, f"no NVIDIA driver was found: install it, nvidia-smi tests it ({_describe(error)})"
        return False, (f"the NVIDIA driver supports CUDA {_cuda(driver)}, this CuPy needs "
                       f"{_cuda(runtime.runtimeGetVersion())} ({_describe(error)}): "
                       f"update the driver or {_install_hint(driver)}")
    if count == 0:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return False, f"CuPy sees no device (CUDA_VISIBLE_DEVICES={visible!r})"
    hint = _install_hint(runtime.driverGetVersion())
    try:
        cupy.cuda.nvrtc.getVersion()            # a kernel may come from CuPy's disk cache without NVRTC
        total = (cupy.arange(4) + 1).sum().item()
    except Exception as error:
        return False, f"a GPU is there, but kernels fail: NVRTC is missing ({_describe(error)}); {hint}"
    try:
        ones = cupy.ones((2, 2), "float32")
        total += (ones @ ones).sum().item()
    except Exception as error:
        return False, f"a GPU is there, but products fail: cuBLAS is missing ({_describe(error)}); {hint}"
    if total != 18:
        return False, f"a GPU is there but computes 1+2+3+4+8 = {total}: hardware or driver fault"
    return True, f"CuPy {cupy.__version__} on {count} device(s)"


def _install_hint(driver=None):
    if driver is None:
        return "pip install 'minigpt[gpu12]' (driver for CUDA 12) or 'minigpt[gpu13]' (driver for CUDA 13)"
    return f"pip install 'minigpt[{'gpu13' if driver >= 13000 else 'gpu12'}]'"


def _cuda(version):
    return f"{version // 1000}.{version % 1000 // 10}"


def _describe(error):
    return f"{type(error).__name__}: {error}"


def _choose(wanted):
    """-> (array module, "cpu" | "cuda" | "strict") for a value of MINIGPT_DEVICE."""
    if wanted not in DEVICES:
        raise ValueError(f"MINIGPT_DEVICE={wanted!r}: expected one of {', '.join(DEVICES)}")
    if wanted == "strict":
        from autograd.strict import xp
        return xp, "strict"
    ok, reason = (False, "") if wanted == "cpu" else gpu_status()
    if ok:
        import cupy
        return cupy, "cuda"
    if wanted == "cuda":
        raise RuntimeError(f"MINIGPT_DEVICE=cuda, but no GPU can be used: {reason}. "
                           "MINIGPT_DEVICE=cpu runs on NumPy")
    return np, "cpu"


xp, device = _choose(os.environ.get("MINIGPT_DEVICE") or "auto")
ndarray = xp.ndarray


def is_array(x):
    """Is x an array of the chosen module?  (A NumPy array is none when the device is cuda or strict.)"""
    return isinstance(x, ndarray)


def to_host(x):
    """-> NumPy array.  Copies from the device and waits for it; gives NumPy arrays back as they are."""
    return x.get() if device != "cpu" and isinstance(x, ndarray) else np.asarray(x)


def to_device(x):
    """-> array of `xp`, same dtype.  No copy when it is one already."""
    return x if isinstance(x, ndarray) else xp.asarray(np.asarray(x))


def synchronize():
    """Wait until everything queued on this rank's stream is done.  MPI may read a buffer only after this."""
    if device != "cpu":
        xp.cuda.get_current_stream().synchronize()


def aligned_empty(shape, dtype):
    """Uninitialised C-contiguous array that starts on a 64-byte boundary.

    np.empty aligns to 16 bytes, and binary ufuncs in L2 then run up to twice slower.  CuPy's pool
    aligns to 512 bytes by itself.
    """
    if device != "cpu":
        return xp.empty(shape, dtype)
    shape, dtype = tuple(shape) if np.iterable(shape) else (shape,), np.dtype(dtype)
    raw = np.empty(math.prod(shape) * dtype.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, raw, offset=-raw.ctypes.data % ALIGNMENT)


def add_at(target, index, source):
    """target[index] += source, where an index that comes twice adds twice.  Changes target, returns None.

    Raises IndexError naming index and size before target changes (case 14).  Only CuPy wraps indices that are
    already on the device, since a check would wait for it: ids are checked on the host where a batch enters.
    A target without elements, which would kill the CUDA context (cupy#10245), is refused on every device.
    """
    if target.size == 0 and getattr(source, "size", 1):
        raise IndexError(f"add_at: index into a target without elements, of shape {target.shape}")
    if device == "cpu" and _is_row_index(target, index):
        _add_rows(target, index, source)
    else:
        xp.add.at(target, index, source)


def _is_row_index(target, index):
    return (isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim > 0 and index.size > 0
            and target.ndim > 1)


def _add_rows(target, rows, source):
    """add_at for whole rows: sort the rows, sum each run, add once a row.  np.add.at is 5-15 times slower."""
    width = target.shape[1:]
    source = np.broadcast_to(source, rows.shape + width).reshape(rows.size, *width)
    rows = rows.ravel().astype(np.intp)
    outside = (rows < -len(target)) | (rows >= len(target))
    if outside.any():
        raise IndexError(f"index {rows[outside][0]} is out of bounds for axis 0 with size {len(target)}")
    rows = np.where(rows < 0, rows + len(target), rows)
    order = rows.argsort(kind="stable")
    rows = rows[order]
    first = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    target[rows[first]] += np.add.reduceat(source[order], first, axis=0)


class CommDevice:
    """What `comm` asks of device arrays (its `device` protocol), for CuPy and the strict stand-in.

    `comm` knows no array module: whoever builds the groups hands one of these over.  A host array is NumPy's.
    Raises RuntimeError on the CPU, where comm's own host device does all.
    """

    def __init__(self):
        if device == "cpu":
            raise RuntimeError("CommDevice needs MINIGPT_DEVICE=cuda or strict; on the CPU comm needs none")

    def owns(self, array):
        """Is `array` on this device?"""
        return is_array(array)

    def empty(self, count, dtype):
        """Uninitialised flat device buffer of `count` elements."""
        return aligned_empty(count, dtype)

    def like(self, shape, dtype):
        """Uninitialised device array, for a result."""
        return aligned_empty(shape, dtype)

    def pinned(self, count, dtype):
        """Flat host buffer that the device reads and writes directly: the stage for an MPI without CUDA."""
        if device == "cuda":
            import cupyx
            return cupyx.empty_pinned(count, dtype)
        return np.empty(count, dtype)

    def copy(self, target, source):
        """target[...] = source, at least one of them on the device, any strides.

        Done when it returns if one is on the host: MPI, or the next chunk, uses that memory at once.
        """
        if not self.owns(target):
            if target.flags.c_contiguous and target.dtype == source.dtype and target.shape == source.shape:
                source.get(out=target)
            else:
                target[...] = source.get()
        elif self.owns(source):
            target[...] = source
        else:
            target[...] = xp.asarray(source)
            synchronize()                       # CuPy returns before it has read pinned memory

    def add_into(self, target, source):
        """target += source, both on the device."""
        target += source

    def synchronize(self):
        """Wait for this rank's stream."""
        synchronize()
