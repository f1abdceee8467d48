"""Programs that go wrong: run(size, program) on threads, or under mpirun `python -m tests.comm.programs NAME`."""

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


def raises_in_a_subgroup(group):
    """The ranks that wait are in a group that the one that fails does not belong to."""
    half = group.split(group.rank % 2, name="half")
    if group.rank == 1:
        1 / 0  # noqa: B018
    for _ in range(2):
        half.all_reduce(np.ones(3))
        group.barrier()


def raises_in_flight(group):
    handle = group.all_reduce_async(np.ones(3))
    if group.rank == 1:
        1 / 0  # noqa: B018
    handle.wait()
    group.barrier()


def raises_in_a_thread(group):
    if group.rank == 1:
        threading.Thread(target=lambda: 1 / 0).start()
        time.sleep(30)
    group.all_reduce(np.ones(3))


def is_interrupted(group):
    if group.rank == 1:
        raise KeyboardInterrupt
    group.all_reduce(np.ones(3))


def leaves(group):
    if group.rank == 1:
        sys.exit(3)
    group.all_reduce(np.ones(3))


def leaves_by_raising(group):
    if group.rank == 1:
        raise SystemExit(3)
    group.broadcast(np.ones(3), root=1)


def leaves_by_a_class_of_its_own(group):
    class Left(SystemExit):
        pass

    if group.rank == 1:
        raise Left(3)
    group.barrier()


def leaves_with_a_message(group):
    if group.rank == 1:
        sys.exit("the data is missing")
    group.all_reduce(np.ones(3))


def leaves_without_a_word(group):
    if group.rank == 1:
        os._exit(3)
    group.all_reduce(np.ones(3))


def leaves_well(group):
    group.all_reduce(np.ones(3))
    sys.exit(0)


def all_leave_with_three(group):
    group.all_reduce(np.ones(3))
    sys.exit(3)


def leaves_at_different_times(group):
    """Nobody waits for anybody: the last one works alone for a while."""
    group.barrier()
    time.sleep(0.3 * group.rank)


def catches_an_exit(group):
    try:
        sys.exit(5)
    except SystemExit as error:
        assert error.code == 5
    try:
        raise SystemExit
    except SystemExit as error:
        assert error.code is None
        error.code = 7
        assert error.code == 7
    print(f"sum {group.all_reduce(1)}")


def ends_early(group):
    """Rank 1 has nothing more to do, says its program, and ends well."""
    if group.rank != 1:
        group.all_reduce(np.ones(3), algorithm="ring")


def ends_before_a_message(group):
    """CASES 101: a stage with nothing to train sends no gradient back, which the one before waits for."""
    if group.rank == 0:
        group.send(np.ones(4), to=1)
        group.recv(source=1, shape=4, dtype="f8")
    if group.rank == 1:
        group.recv(source=0, shape=4, dtype="f8")


def leaves_a_message_behind(group):
    if group.rank == 0:
        group.send(np.ones(4), to=1)


def is_killed(group):
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.all_reduce(np.ones(3))


def forks(group):
    """A child that was forked off a rank ends itself only."""
    child = os.fork()
    if child == 0:
        raise SystemExit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    print(f"sum {group.all_reduce(1)}")


def dtypes_differ(group):
    """CASES 97."""
    group.all_reduce(np.ones(3, "f4" if group.rank == 1 else "f8"))


def counts_differ(group):
    """CASES 97."""
    group.all_reduce(np.ones(3 + (group.rank == 1)))


def roots_differ(group):
    group.broadcast(np.ones(3), root=int(group.rank == 1))


def options_differ(group):
    group.reduce_scatter(np.ones(3), "max" if group.rank == 1 else "sum")


def operations_differ(group):
    """CASES 98."""
    if group.rank == 0:
        group.all_reduce(np.ones(3))
    else:
        group.all_gather(np.ones(3))


def one_in_flight_differs(group):
    if group.rank == 1:
        group.all_reduce_async(np.ones(3)).wait()
    else:
        group.all_gather_async(np.ones(3)).wait()


def plans_in_another_order(group):
    plans = [group.plan(operation, group.empty(6)) for operation in ("all_reduce", "all_gather")]
    for plan in plans[::-1] if group.rank == 1 else plans:
        plan.run()


def one_batch_more(group):
    """CASES 99: a step for each sample, of which rank 0 has one more."""
    edges = comm.bounds(3 * group.size + 1, group.size)
    for _ in range(edges[group.rank], edges[group.rank + 1]):
        group.all_reduce(np.ones(3))


def groups_in_another_order(group):
    one, other = group.split(0, name="one"), group.split(0, name="other")
    for part in (other, one) if group.rank == 1 else (one, other):
        part.all_reduce(np.ones(3))


def groups_in_a_circle(group):
    """Three groups of two of ranks 0 to 2; each rank begins with the one that it shares with the next."""
    pairs = [group.split(0 if group.rank in (r, (r + 1) % 3) else None, name=f"pair{r}") for r in range(3)]
    if group.rank < 3:
        pairs[group.rank].barrier()
        pairs[group.rank - 1].barrier()


def waits_for_a_message_while_the_other_waits_for_all(group):
    if group.rank == 1:
        group.recv(source=0, shape=3, dtype="f8")
    group.barrier()


def never_comes(group):
    group.all_reduce(np.ones(3))
    if group.rank == 1:
        time.sleep(60)
    group.broadcast(np.ones(3))


def never_sends(group):
    group.barrier()
    if group.rank == 0:
        group.recv(source=1, shape=3, dtype="f8", tag=5)
    else:
        time.sleep(60)


def never_carries_on(group):
    """Rank 1 begins what it never finishes, and works on for ever."""
    plan = group.plan("all_reduce", np.ones(100_000), algorithm="ring")
    plan.start()
    if group.rank == 1:
        time.sleep(60)
    plan.wait()


def too_short_a_message(group):
    if group.rank == 0:
        group.send(np.ones(2), 1)
    if group.rank == 1:
        group.recv(0, shape=(3,), dtype="f8")


if __name__ == "__main__":
    group = comm.world()
    print(f"began at {time.time()}", flush=True)
    globals()[sys.argv[1]](group)
