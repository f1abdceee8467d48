"""Arrays of a device: staged through the host, or passed on to an MPI that can read them (CASES 95, 96)."""

import os
import subprocess
import sys

import numpy as np
import pytest

import comm
from comm.device import ALIGNMENT, device_of, host
from tests.comm.fake_device import FakeArray, FakeDevice, on_device, values_of
from tests.ranks import REPOSITORY, mpirun, run

device = FakeDevice()
comm.device.register(device)


def check_all_operations(group):
    """Every operation on arrays of the device gives right values there. Returns how often it staged."""
    rank, size = group.rank, group.size
    comm.device.register(device)
    device.staged = 0
    for n in (0, 1, 5, 4000):
        x = np.arange(n) * 1.0 + rank
        want = np.arange(n) * 1.0 * size + sum(range(size))
        y = group.all_reduce(on_device(x, device))
        assert isinstance(y, FakeArray)
        np.testing.assert_array_equal(values_of(y, device), want)
        same = on_device(x, device)
        assert group.all_reduce(same, out=same, algorithm="ring_all_reduce") is same
        np.testing.assert_array_equal(values_of(same, device), want)
        np.testing.assert_array_equal(values_of(group.broadcast(on_device(x, device), size - 1), device),
                                      np.arange(n) * 1.0 + size - 1)
        mine = group.reduce_scatter(on_device(x, device))
        edges = comm.bounds(n, size)
        np.testing.assert_array_equal(values_of(mine, device), want[edges[rank]:edges[rank + 1]])
        np.testing.assert_array_equal(values_of(group.all_gather(mine), device), want)
    check_strides_messages_and_other_ops(group)
    return device.staged


def check_strides_messages_and_other_ops(group):
    rank, size = group.rank, group.size
    grid = np.arange(12.0).reshape(3, 4) + rank
    want = np.arange(12.0).reshape(3, 4) * size + sum(range(size))
    target = on_device(np.zeros((4, 3)), device)
    group.all_reduce(on_device(grid, device).transpose(1, 0), out=target)
    np.testing.assert_array_equal(values_of(target, device), want.T)
    target = on_device(np.zeros((4, 3)), device)
    group.all_reduce(on_device(grid, device), out=target.transpose(1, 0))
    np.testing.assert_array_equal(values_of(target, device), want.T)
    np.testing.assert_array_equal(
        values_of(group.all_gather(on_device(grid, device), axis=1), device),
        np.concatenate([np.arange(12.0).reshape(3, 4) + r for r in range(size)], axis=1))
    np.testing.assert_array_equal(values_of(group.all_reduce(on_device(grid, device), "max"), device),
                                  np.arange(12.0).reshape(3, 4) + size - 1)
    right, left = (rank + 1) % size, (rank - 1) % size
    got = group.sendrecv(on_device(grid, device).transpose(1, 0), right, left)
    np.testing.assert_array_equal(values_of(got, device), np.arange(12.0).reshape(3, 4).T + left)
    out = on_device(np.zeros((4, 6)), device)[:, ::2]
    group.sendrecv(on_device(grid.T, device), right, left, out=out)
    np.testing.assert_array_equal(values_of(out, device), np.arange(12.0).reshape(3, 4).T + left)


def check_case_95_work_in_flight_is_waited_for(group):
    """Fill, then all-reduce at once: the sum is of what was filled in, not of what was there before."""
    x = device.like((3000,), "f8")
    x.fill(group.rank + 1.0)
    want = sum(range(1, group.size + 1))
    np.testing.assert_array_equal(values_of(group.all_reduce(x), device), np.full(3000, want))
    x.fill(group.rank + 1.0)
    group.all_reduce(x, out=x)
    np.testing.assert_array_equal(values_of(x, device), np.full(3000, want))
    x.fill(7.0 if group.rank == 0 else 0.0)
    if group.rank == 0 and group.size > 1:
        group.send(x, 1)
        group.send(x[::2], 1)  # which is copied first, and the copy takes its time too
    if group.rank == 1:
        np.testing.assert_array_equal(group.recv(0, shape=3000, dtype="f8"), np.full(3000, 7.0))
        np.testing.assert_array_equal(group.recv(0, shape=1500, dtype="f8"), np.full(1500, 7.0))


def all_checks(group):
    check_case_95_work_in_flight_is_waited_for(group)
    return check_all_operations(group)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_on_threads_arrays_of_a_device_are_staged(size):
    run(size, all_checks)


@pytest.mark.mpi
def test_case_96_an_mpi_that_cannot_read_the_device_is_detected_and_arrays_are_staged():
    assert min(run(2, all_checks, mpi=True)) > 0


@pytest.mark.parametrize("mpi", [False, pytest.param(True, marks=pytest.mark.mpi)])
def test_case_105_more_ranks_than_devices_share_one_and_stage(mpi):
    assert min(run(4, all_checks, mpi=mpi)) > 0


@pytest.mark.mpi
@pytest.mark.parametrize("answers, staged", [("1 1 1", False), ("1 0 1", True)])
def test_an_mpi_that_can_gets_the_memory_itself_if_all_ranks_agree(answers, staged):
    """MINIGPT_CUDA_AWARE overrides what the library says; one rank that cannot makes all stage."""
    code = f"""
import os
os.environ["MINIGPT_CUDA_AWARE"] = "{answers}".split()[int(os.environ["OMPI_COMM_WORLD_RANK"])]
import comm
from tests.comm.test_device import all_checks, device
group = comm.world()
assert group._endpoint.takes_devices is not {staged}
times = all_checks(group)
assert (times > 1) is {staged}, times  # a max is always worked out on the host
print("all is well")
"""
    ended = mpirun(3, "-c", code)
    assert (ended.returncode, ended.stdout.count("all is well")) == (0, 3), ended.stdout


def test_nobody_owns_an_unknown_array():
    class Stranger:
        __cuda_array_interface__ = {}

    with pytest.raises(TypeError, match="Stranger.*comm.device.register"):
        comm.world().all_reduce(Stranger())


def test_registering_a_device_again_replaces_it(monkeypatch):
    monkeypatch.setattr(comm.device, "_devices", list(comm.device._devices))      # later tests see no trace of it

    class Other(FakeDevice):
        def owns(self, array):
            return array == "mine"

    first, second = Other(), Other()
    comm.device.register(first)
    comm.device.register(second)
    assert device_of("mine") is second
    assert device_of(device.like((1,), "f4")) is device
    assert device_of(np.ones(1)) is host


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16"])
def test_host_memory_is_aligned_to_cache_lines(dtype):
    for count in (0, 1, 3, 1000):
        array = host.empty(count, dtype)
        assert array.shape == (count,)
        assert array.dtype == dtype
        assert array.ctypes.data % ALIGNMENT == 0 or not count


STRICT = """
import numpy as np, comm
from autograd import backend
from autograd.backend import xp
comm.device.register(backend.CommDevice())
group = comm.world()
for n in (1, 5, 4000):
    x = xp.asarray(np.arange(n, dtype="f4")) + 1
    want = np.arange(1, n + 1) * group.size
    y = group.all_reduce(x)
    assert backend.is_array(y)
    assert (backend.to_host(y) == want).all()
    group.all_reduce(x, out=x)
    assert (backend.to_host(x) == want).all()
    whole = group.all_gather(group.reduce_scatter(x))
    assert (backend.to_host(whole) == want * group.size).all()
    column = group.broadcast(x.reshape(1, -1).T, 0)
    assert (backend.to_host(column) == want[:, None]).all()
    other = group.size - 1 - group.rank
    assert (backend.to_host(group.sendrecv(x, other, other)) == want).all()
print("all is well")
"""


@pytest.mark.mpi
@pytest.mark.parametrize("aware", ["0", "1"])
def test_the_strict_stand_in_for_cupy_is_served_too(aware):
    ended = mpirun(2, "-c", STRICT, MINIGPT_CUDA_AWARE=aware, MINIGPT_DEVICE="strict")
    assert (ended.returncode, ended.stdout.count("all is well")) == (0, 2), ended.stdout


def test_comm_imports_no_array_module_but_numpy():
    code = "import sys, comm; print({'cupy', 'mpi4py', 'autograd', 'minigpt'} & sys.modules.keys())"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert shown.stdout == "set()\n"
