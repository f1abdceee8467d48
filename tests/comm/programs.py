"""Programs that go wrong, run under mpirun: `python -m tests.comm.programs NAME` on every rank."""

import os
import signal
import sys
import threading
import time

import numpy as np

import comm


def raises(group):
    """CASES 100: one rank divides by zero before a collective that the others are in."""
    if group.rank == 1:
        1 / 0  # noqa: B018
    group.all_reduce(np.ones(3))


def raises_in_a_thread(group):
    if group.rank == 1:
        threading.Thread(target=lambda: 1 / 0).start()
        time.sleep(30)
    group.all_reduce(np.ones(3))


def leaves(group):
    if group.rank == 1:
        sys.exit(3)
    group.all_reduce(np.ones(3))


def leaves_with_a_message(group):
    if group.rank == 1:
        sys.exit("the data is missing")
    group.all_reduce(np.ones(3))


def catches_an_exit(group):
    try:
        sys.exit(5)
    except SystemExit as error:
        assert error.code == 5
    print(f"sum {group.all_reduce(1)}")


def leaves_well(group):
    group.all_reduce(np.ones(3))
    sys.exit(0)


def is_killed(group):
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.all_reduce(np.ones(3))


def dtypes_differ(group):
    """CASES 97."""
    group.all_reduce(np.ones(3, "f4" if group.rank == 1 else "f8"))


def operations_differ(group):
    """CASES 98."""
    if group.rank == 0:
        group.all_reduce(np.ones(3))
    else:
        group.all_gather(np.ones(3))


def one_batch_more(group):
    """CASES 99: 10 samples over 3 ranks, a step for each."""
    edges = comm.bounds(10, group.size)
    for _ in range(edges[group.rank], edges[group.rank + 1]):
        group.all_reduce(np.ones(3))


def too_short_a_message(group):
    if group.rank == 0:
        group.send(np.ones(2), 1)
    if group.rank == 1:
        group.recv(0, shape=(3,), dtype="f8")


if __name__ == "__main__":
    globals()[sys.argv[1]](comm.world())
