"""Every collective by every algorithm: threads for 1 to 8 ranks, mpirun for 1 to 5, one node and several."""

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
