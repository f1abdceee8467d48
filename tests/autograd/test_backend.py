"""The array module is chosen once, says why when it cannot be had, and its helpers keep their promises."""
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from autograd import backend
from autograd.backend import (
    CommDevice,
    add_at,
    aligned_empty,
    device,
    gpu_status,
    is_array,
    ndarray,
    synchronize,
    to_device,
    to_host,
    xp,
)

ROOT = Path(__file__).parents[2]
on_a_device = pytest.mark.skipif(device == "cpu", reason="arrays of the CPU need no CommDevice")


def python(*arguments, **environment):
    """Run Python in the repository with these environment variables (None: unset)."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    names = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
    names = {name: value for name, value in names.items() if value is not None}
    return subprocess.run([sys.executable, *arguments], env=names, cwd=ROOT, capture_output=True, text=True,
                          timeout=110)


class Failing:
    """A library that is not there: using it raises."""

    def __init__(self, error):
        self.error = error

    def __call__(self, *args):
        raise self.error


class FakeArray:
    def __init__(self, total):
        self.total = total

    def __add__(self, other):
        return FakeArray(10)

    def __matmul__(self, other):
        return self.product()

    def sum(self):
        return self

    def item(self):
        return self.total


def fake_cupy(version="14.2.0", devices=1, driver=12020, nvrtc=None, cublas=None, product=8.0):
    """A module that answers the probe like a CuPy with these parts."""
    cupy = ModuleType("cupy")
    cupy.__spec__, cupy.__version__ = ModuleSpec("cupy", None), version
    counted = devices if callable(devices) else lambda: devices
    cupy.cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDeviceCount=counted, driverGetVersion=lambda: driver,
                                runtimeGetVersion=lambda: 12090),
        nvrtc=SimpleNamespace(getVersion=nvrtc or (lambda: (12, 9))))
    ones = FakeArray(0)
    ones.product = cublas or (lambda: FakeArray(product))
    cupy.arange, cupy.ones, cupy.ndarray = lambda n: FakeArray(0), lambda shape, dtype: ones, FakeArray
    return cupy


@pytest.fixture
def install(monkeypatch):
    """install(module) puts a CuPy in place, install(None) takes any away; gpu_status() looks again."""
    def put(cupy):
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        gpu_status.cache_clear()
    if "cupy" not in sys.modules:
        monkeypatch.setattr(backend, "find_spec", lambda name: sys.modules.get(name))
    yield put
    gpu_status.cache_clear()


BROKEN = {
    "no CuPy": (None, ["CuPy is not installed", "minigpt[gpu12]", "minigpt[gpu13]"]),
    "an old CuPy": (fake_cupy(version="13.6.0"), ["CuPy 13.6.0 is installed", "14"]),
    "no driver": (fake_cupy(devices=Failing(RuntimeError("cudaErrorInsufficientDriver")), driver=0),
                  ["no NVIDIA driver"]),
    "an old driver": (fake_cupy(devices=Failing(RuntimeError("cudaErrorInsufficientDriver")), driver=11040),
                      ["driver supports CUDA 11.4", "needs 12.9", "update the driver"]),
    "no device": (fake_cupy(devices=0), ["no device", "CUDA_VISIBLE_DEVICES"]),
    "no NVRTC": (fake_cupy(nvrtc=Failing(RuntimeError("libnvrtc.so.12 not found"))),
                 ["NVRTC is missing", "libnvrtc.so.12", "minigpt[gpu12]"]),
    "no cuBLAS for CUDA 13": (fake_cupy(cublas=Failing(ImportError("libcublas.so.13")), driver=13000),
                              ["cuBLAS is missing", "libcublas.so.13", "minigpt[gpu13]"]),
    "a GPU that computes nonsense": (fake_cupy(product=7.0), ["1+2+3+4+8 = 17"]),
}


@pytest.mark.parametrize("machine", BROKEN)
def test_what_is_missing_for_a_gpu_is_named(machine, install):
    cupy, words = BROKEN[machine]
    install(cupy)
    ok, reason = gpu_status()
    assert not ok
    for word in words:
        assert word in reason
    assert backend._choose("auto") == (np, "cpu")
    with pytest.raises(RuntimeError, match="MINIGPT_DEVICE=cuda, but no GPU can be used") as caught:
        backend._choose("cuda")
    assert reason in str(caught.value)


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_a_working_gpu_is_taken(wanted, install):
    cupy = fake_cupy()
    install(cupy)
    assert gpu_status() == (True, "CuPy 14.2.0 on 1 device(s)")
    assert backend._choose(wanted) == (cupy, "cuda")
    assert backend._choose("cpu") == (np, "cpu")


def test_a_cupy_that_does_not_import_is_no_gpu(monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: "found")
    monkeypatch.setitem(sys.modules, "cupy", None)          # makes `import cupy` raise
    gpu_status.cache_clear()
    ok, reason = gpu_status()
    gpu_status.cache_clear()
    assert not ok and "does not import" in reason


def test_an_unknown_device_is_refused_with_the_choices():
    run = python("-c", "import autograd.backend", MINIGPT_DEVICE="tpu")
    assert run.returncode == 1
    assert "MINIGPT_DEVICE='tpu': expected one of auto, cpu, cuda, strict" in run.stderr


def test_cuda_on_a_machine_without_says_why_and_what_to_install():
    if gpu_status()[0]:
        pytest.skip("this machine has a GPU")
    run = python("-c", "import autograd.backend", MINIGPT_DEVICE="cuda")
    assert run.returncode == 1
    assert "MINIGPT_DEVICE=cuda, but no GPU can be used: " + gpu_status()[1] in run.stderr


@pytest.mark.parametrize("wanted, expected",
                         [(None, "cpu"), ("", "cpu"), ("cpu", "cpu"), ("strict", "strict")])
def test_the_environment_chooses(wanted, expected):
    if expected == "cpu" and gpu_status()[0] and wanted != "cpu":
        pytest.skip("this machine has a GPU")
    program = "from autograd import backend; print(backend.device, backend.xp.ndarray.__module__)"
    run = python("-c", program, MINIGPT_DEVICE=wanted)
    assert run.stdout.split() == [expected, "numpy" if expected == "cpu" else "autograd.strict.array"]


def test_importing_the_backend_loads_nothing_but_numpy():
    if find_spec("cupy"):
        pytest.skip("CuPy is installed, so it is loaded to look for a GPU")
    run = python("-c", "import sys, autograd.backend; print(*sys.modules)", MINIGPT_DEVICE="auto")
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {"cupy", "scipy", "mpi4py", "h5py", "matplotlib", "asyncio", "json"}


@pytest.mark.skipif(device == "strict", reason="this is the run on the strict device")
def test_backend_and_streams_pass_on_the_strict_device():
    run = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/autograd/test_backend.py",
                 "tests/autograd/test_streams.py", MINIGPT_DEVICE="strict")
    assert run.returncode == 0, run.stdout[-3000:]


def test_to_device_keeps_dtype_and_values_and_to_host_gives_them_back():
    for dtype in ("float16", "float32", "float64", "int32", "int64", "uint8", "bool"):
        host = np.array([[0, 1], [1, 0]], dtype)
        x = to_device(host)
        assert is_array(x) and isinstance(x, ndarray) and x.dtype == dtype
        back = to_host(x)
        assert type(back) is np.ndarray and back.dtype == dtype
        np.testing.assert_array_equal(back, host)
    assert to_device([1, 2]).dtype == "int64"
    assert to_host([1.0]).tolist() == [1.0]
    assert to_host(3).shape == ()


def test_to_device_copies_nothing_that_is_there():
    x = xp.ones(3)
    assert to_device(x) is x
    if device == "cpu":
        assert to_host(x) is x


def test_is_array_knows_only_arrays_of_the_device():
    assert is_array(xp.ones(2)) and is_array(xp.ones(2)[0:1])
    assert not is_array([1.0]) and not is_array(1.0) and not is_array(None)
    assert is_array(np.ones(2)) == (device == "cpu")


def test_synchronize_finishes_the_work():
    x = xp.ones(3) + 1
    synchronize()
    assert device == "cpu" or x.__cuda_array_interface__["shape"] == (3,)


@pytest.mark.parametrize("shape", [0, 1, np.int64(7), 65, (3, 5), (), (0, 4), (2, 3, 129), [4, 4]])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_aligned_empty_has_shape_and_dtype_and_starts_on_a_line(shape, dtype):
    x = aligned_empty(shape, dtype)
    assert x.dtype == dtype and x.shape == np.empty(shape).shape and x.flags.c_contiguous
    x[...] = 1
    assert to_host(x).sum() == x.size
    if device == "cpu":
        assert x.ctypes.data % 64 == 0


def reference_add_at(target, index, source):
    expected = target.copy()
    np.add.at(expected, index, source)
    return expected


ADDITIONS = {
    "rows, some twice": ((6, 3), np.array([1, 4, 1, 1]), (4, 3)),
    "rows counted from the end": ((6, 3), np.array([-1, 5, -6]), (3, 3)),
    "a matrix of rows": ((6, 3), np.array([[1, 1], [0, 5]]), (2, 2, 3)),
    "rows of three dimensions": ((4, 2, 3), np.array([3, 3]), (2, 2, 3)),
    "one source for all": ((6, 3), np.array([2, 2, 2]), ()),
    "a row for all": ((6, 3), np.array([2, 2, 2]), (3,)),
    "no rows": ((6, 3), np.zeros(0, int), (0, 3)),
    "rows without width": ((6, 0), np.array([1, 1]), (2, 0)),
    "elements": ((6,), np.array([1, 1, 3]), (3,)),
    "small unsigned indices": ((6, 2), np.array([5, 5], "uint8"), (2, 2)),
    "more rows than the indices' type can count": ((300, 2), np.array([255, 255, 0], "uint8"), (3, 2)),
    "pairs": ((4, 3), (np.array([0, 0, 1]), np.array([2, 2, 0])), (3,)),
    "a slice beside an array": ((4, 3), (slice(None), np.array([1, 1])), (4, 2)),
    "a slice": ((4, 3), slice(1, 3), (2, 3)),
    "a number": ((4, 3), 2, (3,)),
    "an index without dimensions": ((4, 3), np.array(2), (3,)),
    "a mask": ((4,), np.array([True, False, True, False]), (2,)),
    "one row per run": ((5, 2), np.arange(5)[::-1], (5, 2)),
}


@pytest.mark.parametrize("case", ADDITIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_add_at_adds_every_occurrence(case, dtype):
    shape, index, source_shape = ADDITIONS[case]
    random = np.random.default_rng(0)
    target, source = (random.standard_normal(n).astype(dtype) for n in (shape, source_shape))
    x = to_device(target.copy())
    move = lambda i: to_device(i) if isinstance(i, np.ndarray) else i
    place = tuple(map(move, index)) if isinstance(index, tuple) else move(index)
    assert add_at(x, place, to_device(source)) is None
    assert x.dtype == dtype
    np.testing.assert_allclose(to_host(x), reference_add_at(target, index, source),
                               rtol=1e-5 if dtype == "float32" else 1e-12)


def test_add_at_works_on_views_of_any_strides():
    whole = xp.zeros((4, 6))
    add_at(whole.T[::2], to_device(np.array([2, 2])), xp.ones((2, 4)))
    expected = np.zeros((4, 6))
    expected[:, 4] = 2
    np.testing.assert_array_equal(to_host(whole), expected)


@pytest.mark.parametrize("index", [[0, 5], [-6], [0, 1 << 40]])
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_case_14_an_index_out_of_range_is_named_and_nothing_is_added(index, shape):
    target = xp.zeros(shape)
    with pytest.raises(IndexError, match=rf"index {index[-1]} is out of bounds for axis 0 with size 5"):
        add_at(target, to_device(np.array(index)), xp.ones((len(index), *shape[1:])))
    assert not to_host(target).any()


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_case_14_adding_into_a_target_of_no_length_is_refused(shape):
    with pytest.raises(IndexError, match="target without elements"):
        add_at(xp.zeros(shape), to_device(np.array([0])), xp.ones((1, *shape[1:])))
    add_at(xp.zeros(shape), to_device(np.zeros(0, int)), xp.ones((0, *shape[1:])))


@on_a_device
def test_comm_device_answers_the_protocol():
    comm_device = CommDevice()
    assert comm_device.owns(xp.ones(2)) and not comm_device.owns(np.ones(2))
    buffer, like = comm_device.empty(5, "float32"), comm_device.like((2, 3), "int64")
    pinned = comm_device.pinned(4, "float64")
    assert comm_device.owns(buffer) and buffer.shape == (5,) and buffer.dtype == "float32"
    assert comm_device.owns(like) and like.shape == (2, 3) and like.dtype == "int64"
    assert type(pinned) is np.ndarray and pinned.shape == (4,) and pinned.dtype == "float64"
    total = xp.ones(3)
    comm_device.add_into(total, xp.ones(3) * 2)
    assert to_host(total).tolist() == [3.0, 3.0, 3.0]
    comm_device.synchronize()
    assert total.__cuda_array_interface__["shape"] == (3,)


@on_a_device
@pytest.mark.parametrize("cut", [slice(None), slice(None, None, 2), slice(0, 0)])
@pytest.mark.parametrize("sides", ["host to device", "device to host", "device to device"])
def test_comm_device_copies_between_any_sides_and_strides(cut, sides):
    source, target = np.arange(6.0), np.zeros(6)
    expected = target.copy()
    expected[cut] = source[cut]
    place = to_device(target) if sides.endswith("device") else target
    CommDevice().copy(place[cut], to_device(source)[cut] if sides.startswith("device") else source[cut])
    np.testing.assert_array_equal(to_host(place), expected)


@on_a_device
def test_comm_device_has_read_the_host_when_it_returns():
    target = xp.zeros(3)
    CommDevice().copy(target, np.ones(3))
    assert target.__cuda_array_interface__["shape"] == (3,)      # strict refuses while work is unfinished


@pytest.mark.skipif(device != "cpu", reason="for the CPU")
def test_comm_device_is_not_for_the_cpu():
    with pytest.raises(RuntimeError, match="on the CPU comm needs none"):
        CommDevice()


@pytest.mark.gpu
def test_the_gpu_passes_its_probe():
    assert gpu_status()[0], gpu_status()[1]
