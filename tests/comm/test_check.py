"""The mismatch doctor: what ranks that do not do the same are told, on threads and under mpirun."""

import threading
import time

import numpy as np
import pytest

import comm
from comm import Mismatch
from tests.comm import programs
from tests.comm.ends import both_transports, what_is_said
from tests.ranks import mpirun, run

DIFFERENT = [
    ("dtypes_differ", ["ranks 0, 2: all_reduce(3 float64, sum) at", "rank 1: all_reduce(3 float32, sum) at"]),
    ("counts_differ", ["ranks 0, 2: all_reduce(3 float64, sum) at", "rank 1: all_reduce(4 float64, sum) at"]),
    ("roots_differ", ["ranks 0, 2: broadcast(3 float64, root 0) at", "rank 1: broadcast(3 float64, root 1) at"]),
    ("options_differ", ["ranks 0, 2: reduce_scatter(3 float64, sum) at",
                        "rank 1: reduce_scatter(3 float64, max) at"]),
]


@pytest.mark.parametrize("program, lines", DIFFERENT)
@both_transports
def test_case_97_ranks_that_disagree_on_the_arguments_are_named_with_their_lines(program, lines, transport,
                                                                                 monkeypatch):
    said = what_is_said(program, 3, transport, monkeypatch)
    for line in ["Mismatch: the ranks of a group must make the same calls", *lines, "programs.py:"]:
        assert line in said


@pytest.mark.parametrize("program", ["operations_differ", "one_in_flight_differs"])
@both_transports
def test_case_98_ranks_that_call_different_operations_are_named(program, transport, monkeypatch):
    said = what_is_said(program, 3, transport, monkeypatch)
    one, others = ("rank 0", "ranks 1, 2") if program == "operations_differ" else ("rank 1", "ranks 0, 2")
    assert f"{one}: all_reduce(3 float64, sum) at" in said
    assert f"{others}: all_gather(any number of float64, axis 0, rows of 1) at" in said


@both_transports
def test_case_98_ranks_that_run_different_plans_are_named(transport, monkeypatch):
    said = what_is_said("plans_in_another_order", 3, transport, monkeypatch)
    assert "ranks 0, 2: planned all_reduce(6 float32, sum, root 0) at" in said
    assert "rank 1: planned all_gather(6 float32, sum, root 0) at" in said


@pytest.mark.parametrize("size, transport", [
    (2, "threads"), (3, "threads"), (7, "threads"), pytest.param(5, "mpi", marks=pytest.mark.mpi)])
def test_case_99_one_batch_more_on_one_rank_is_named(size, transport, monkeypatch):
    said = what_is_said("one_batch_more", size, transport, monkeypatch)
    assert "rank 0 waits in all_reduce(3 float64, sum) at" in said
    assert "call 4 of group world" in said
    assert "has ended" in said


@pytest.mark.parametrize("call", [
    lambda g: g.all_reduce(np.ones(3, "f4" if g.rank else "f8")),
    lambda g: g.all_reduce(np.ones(3), "max" if g.rank else "sum"),
    lambda g: g.broadcast(np.ones(3), root=min(g.rank, 1)),
    lambda g: g.all_gather(np.ones((2, 2 + g.rank))),
    lambda g: g.barrier() if g.rank else g.reduce_scatter(np.ones(3)),
])
def test_a_disagreement_is_raised_on_every_rank(call):
    raised = []

    def body(group):
        try:
            call(group)
        except Mismatch as error:
            raised.append(str(error))
            raise

    for _ in range(10):
        raised.clear()
        with pytest.raises(Mismatch):
            run(5, body)
        assert len(raised) == 5 and len(set(raised)) == 1
        assert "test_check.py:" in raised[0]


def test_lines_of_the_program_may_differ():
    def body(group):
        if group.rank:
            return group.all_reduce(1)
        return group.all_reduce(1)

    assert run(3, body) == [3, 3, 3]


@both_transports
def test_two_groups_in_another_order_are_told_at_once(transport, monkeypatch):
    said = what_is_said("groups_in_another_order", 3, transport, monkeypatch)
    assert "must begin the collectives of all their groups in one order" in said
    assert "rank 1: all_reduce(3 float64, sum) at" in said
    assert "call 1 of group one" in said and "call 1 of group other" in said


@both_transports
def test_groups_that_wait_in_a_circle_are_told_in_seconds(transport, monkeypatch):
    said = what_is_said("groups_in_a_circle", 4, transport, monkeypatch)
    assert "Deadlock: no rank " in said
    for rank in range(3):
        assert f"rank {rank} waits in barrier(1 uint8) at" in said
    assert "group pair0" in said and "group pair1" in said and "group pair2" in said


@both_transports
def test_a_message_that_waits_for_a_collective_is_told_in_seconds(transport, monkeypatch):
    said = what_is_said("waits_for_a_message_while_the_other_waits_for_all", 2, transport, monkeypatch)
    assert "Deadlock: no rank " in said
    assert "rank 0 waits in barrier(1 uint8) at" in said
    assert "rank 1 waits in recv" in said


@both_transports
def test_a_rank_that_does_not_come_is_told_with_where_it_was_last(transport, monkeypatch):
    said = what_is_said("never_comes", 3, transport, monkeypatch, timeout=1.5)
    assert "for rank 1 (MINIGPT_COMM_TIMEOUT):" in said
    for rank in (0, 2):
        assert f"rank {rank} waits in broadcast(3 float64, root 0) at" in said
    assert "rank 1 was last heard of in all_reduce(3 float64, sum) at" in said
    assert said.count("programs.py:") >= 3


@both_transports
def test_a_message_that_does_not_come_is_told(transport, monkeypatch):
    said = what_is_said("never_sends", 2, transport, monkeypatch, timeout=1)
    assert "rank 0 has waited 1 s for rank 1 (MINIGPT_COMM_TIMEOUT):" in said
    assert "receive from rank 1, tag 5, 24 bytes for rank 1" in said
    assert "rank 1 was last heard of in barrier(1 uint8) at" in said


@both_transports
def test_a_collective_in_flight_that_is_not_carried_on_is_told(transport, monkeypatch):
    said = what_is_said("never_carries_on", 2, transport, monkeypatch, timeout=1)
    assert "rank 0 has waited 1 s for rank 1" in said


@both_transports
def test_a_message_of_another_size_is_an_error_not_garbage(transport, monkeypatch):
    said = what_is_said("too_short_a_message", 2, transport, monkeypatch)
    assert "ValueError" in said
    assert "expected 24 bytes" in said or "expects 24" in said


@pytest.mark.parametrize("size, transport", [
    (1, "threads"), (2, "threads"), (3, "threads"), (7, "threads"), pytest.param(3, "mpi", marks=pytest.mark.mpi)])
def test_ranks_that_do_the_same_agree_whatever_the_pace(size, transport):
    assert run(size, at_different_paces, mpi=transport == "mpi") == [size * (size + 1) // 2] * size


def at_different_paces(group):
    """Nested groups, messages and collectives in flight; ranks come late in turn, one by more than a second."""
    half = group.split(group.rank % 2, name="half")
    quarter = half.split(half.rank % 2, name="quarter")
    for turn in range(6):
        if group.rank == turn % group.size:
            time.sleep(1.2 if turn == 5 else 0.05)
        handles = [group.all_reduce_async(np.ones(n)) for n in (1, 5000)]
        half.all_reduce(1)
        quarter.barrier()
        group.sendrecv([1.0], (group.rank + 1) % group.size, (group.rank - 1) % group.size)
        assert [handle.wait()[0] for handle in handles[::-1]] == [group.size, group.size]
    return int(group.all_reduce(group.rank + 1))


def test_checks_cost_no_note_when_they_are_off(monkeypatch):
    calls = []
    note = comm.threads.Board.note
    monkeypatch.setattr(comm.threads.Board, "note", lambda *args: (calls.append(args), note(*args)))
    monkeypatch.setenv("MINIGPT_COMM_CHECK", "0")
    comm.run(2, lambda group: group.all_reduce(1))
    assert not calls
    monkeypatch.setenv("MINIGPT_COMM_CHECK", "1")
    comm.run(2, lambda group: group.all_reduce(1))
    assert len(calls) == 4  # what each of two ranks begins, and its goodbye


@pytest.mark.mpi
def test_checks_are_on_if_any_rank_has_them_on():
    code = "import os\nos.environ['MINIGPT_COMM_CHECK'] = os.environ['OMPI_COMM_WORLD_RANK']\n" \
           "import comm\nprint('checked', comm.world()._checked, comm.world().all_reduce(1))"
    ended = mpirun(2, "-c", code)
    assert ended.stdout.count("checked True 2") == 2, ended.stdout


def test_what_is_remembered_does_not_grow():
    desks = []

    def body(group):
        desks.append(group._endpoint.mail.desk)
        for _ in range(200):
            group.barrier()
        group.barrier()

    run(3, body)
    for desk in desks:
        assert len(desk.said) == len(desk.open) == len(desk.waits) == 0
        assert len(desk.last) == 3


def test_a_rank_that_raises_between_two_calls_leaves_no_thread():
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        comm.run(5, programs.raises, checked=True)
    assert not set(threading.enumerate()) - before
