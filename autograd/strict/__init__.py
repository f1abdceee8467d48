"""A stand-in for CuPy on NumPy's arithmetic, as unforgiving as CuPy and more: GPU rules without a GPU.

    MINIGPT_DEVICE=strict pytest tests

It raises where CuPy raises: host arrays and lists mixed with device arrays, implicit conversion to NumPy,
functions, methods and keywords that CuPy lacks (frozen in cupy_api.json by tests/tools/freeze_cupy_api.py).
It also raises where CuPy goes wrong in silence: an index out of range, a host array as index, two devices
mixed, an index that comes twice in an assignment, a device scalar as an index, a buffer handed to MPI before
`synchronize()`.  `empty()` holds NaN or a huge number, so that reading it before writing shows.

Every transfer from device to host, hidden ones too (`float(x)`, `if x:`, `x[mask]`), makes the host wait:
`stats.d2h` counts them per rank, and `no_synchronization()` makes them errors.

Not caught: wrong kernels, races, speed, the GPU's rounding.
"""
from autograd.strict.array import ndarray
from autograd.strict.module import xp
from autograd.strict.rank import no_synchronization, stats

__all__ = ["ndarray", "no_synchronization", "stats", "xp"]
