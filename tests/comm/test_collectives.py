"""Every collective by every algorithm: threads for 1 to 8 ranks, mpirun for 1 to 5, one node and several."""

import numpy as np
import pytest

from tests.comm import collective_checks
from tests.ranks import run


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("check", collective_checks.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_on_threads(check, size):
    run(size, check)


@pytest.mark.parametrize("nodes", [(0, 1), (0, 0, 1), (0, 1, 0, 1), (0, 0, 0, 1, 1), (0, 0, 1, 2, 2, 2, 0)], ids=str)
@pytest.mark.parametrize("check", collective_checks.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_on_threads_of_several_nodes(check, nodes):
    run(len(nodes), check, nodes=nodes)


@pytest.mark.mpi
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_under_mpirun(size):
    names = [check.__name__ for check in collective_checks.CHECKS]
    assert run(size, collective_checks.every_check, mpi=True) == [names] * size


@pytest.mark.mpi
@pytest.mark.parametrize("nodes", [(0, 0, 1), (0, 1, 0, 1)], ids=str)
def test_under_mpirun_with_nodes_that_it_is_told(nodes):
    names = [check.__name__ for check in collective_checks.CHECKS]
    assert run(len(nodes), collective_checks.every_check, mpi=True, nodes=nodes) == [names] * len(nodes)


def with_little_shared_memory(group):
    """What does not fit there goes by messages, on all ranks if one node is short of it."""
    group._endpoint.shareable = lambda: 1 << 20 if group.rank == 0 else 1 << 40
    assert group.plan("all_reduce", group.empty(1000)).result.size == 1000
    used = []
    for n in (20_000, 200_000, 20_000):
        buffer, x = group.empty(n, "f8"), np.full(n, 2.0)
        plan = group.plan("all_reduce", buffer, algorithm="direct")
        buffer[:] = group.rank
        plan.run()
        assert (buffer == sum(range(group.size))).all()
        assert (group.all_reduce(x) == 2.0 * group.size).all()
        used.append(plan.window)
        group.barrier()
    return used


def test_short_shared_memory_is_no_error():
    assert run(3, with_little_shared_memory) == [[True, False, True]] * 3
