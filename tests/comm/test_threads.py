"""Ranks as threads: exceptions, deadlocks and their reports."""

import contextlib
import re
import threading
import time
import traceback

import numpy as np
import pytest

import comm
from comm import Deadlock, Mismatch
from tests.ranks import run


def test_results_come_in_order_of_rank():
    assert comm.run(4, lambda group: group.rank * 10) == [0, 10, 20, 30]


def test_an_exception_ends_all_ranks_and_comes_out_with_its_rank_and_traceback():
    def body(group):
        if group.rank == 2:
            raise KeyError("lost")
        group.all_reduce(np.ones(3))

    with pytest.raises(KeyError, match="lost") as caught:
        run(4, body)
    shown = "".join(traceback.format_exception(caught.value))
    assert "This was raised on rank 2 of 4." in shown
    assert 'raise KeyError("lost")' in shown


def test_no_thread_is_left_when_run_has_raised():
    def body(group):
        if group.rank == 0:
            raise ValueError
        group.recv(0, shape=1, dtype="f8")

    before = set(threading.enumerate())
    with pytest.raises(ValueError):
        run(5, body)
    assert not set(threading.enumerate()) - before


def test_a_program_cannot_swallow_that_another_rank_failed():
    def body(group):
        if group.rank == 0:
            raise ValueError("first")
        while True:
            with contextlib.suppress(Exception):
                group.barrier()

    with pytest.raises(ValueError, match="first"):
        run(3, body)


def test_a_deadlock_is_reported_at_once_with_who_waits_for_whom():
    def body(group):
        group.recv((group.rank + 1) % group.size, shape=(2,), dtype="f4", tag=group.rank)

    start = time.monotonic()
    with pytest.raises(Deadlock) as caught:
        run(3, body)
    assert time.monotonic() - start < 2
    for rank in range(3):
        line = rf"rank {rank} waits in recv at .*test_threads.py:\d+: receive from rank {(rank + 1) % 3}, tag {rank}, "
        assert re.search(line, str(caught.value))


def test_a_send_that_leans_on_buffers_is_a_deadlock_here():
    def body(group):
        other = 1 - group.rank
        group.send(np.ones(3), other)
        return group.recv(other, shape=3, dtype="f8")

    with pytest.raises(Deadlock, match="rank 0 waits in send at .*: send to rank 1"):
        run(2, body)


def test_waiting_for_a_rank_that_has_ended_is_a_deadlock():
    def body(group):
        if group.rank:
            group.barrier()

    with pytest.raises(Deadlock, match="rank 0 has ended"):
        comm.run(3, body, checked=False)
    with pytest.raises(Mismatch, match="the program of rank 0 has ended"):
        run(3, body)


def test_a_group_that_waits_while_another_works_is_no_deadlock():
    def body(group):
        half = group.split(group.rank % 2)
        if group.rank % 2:
            time.sleep(0.05)
        for _ in range(20):
            half.all_reduce(np.ones(4))
        return group.all_reduce(1)

    assert run(4, body) == [4] * 4


def test_messages_of_two_groups_do_not_mix():
    def body(group):
        other = group.split(0)
        right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
        if group.rank == 0:
            other.send([2.0], 1)
            group.send([1.0], 1)
        if group.rank == 1:
            return [float(g.recv(0, shape=1, dtype="f8")[0]) for g in (other, group)]
        return right, left

    assert run(2, body)[1] == [2.0, 1.0]


def test_sizes_that_differ_are_named_on_both_sides():
    def body(group):
        if group.rank == 0:
            group.send(np.ones(2), 1)
        else:
            group.recv(0, shape=3, dtype="f8")

    with pytest.raises(ValueError, match="rank 0 sends 16 bytes .in send at .*, tag 0. but rank 1 expects 24"):
        run(2, body)


def test_case_99_one_step_more_on_one_rank_is_named():
    def body(group):
        for _ in range(4 if group.rank == 0 else 3):
            group.all_reduce(np.ones(2))

    with pytest.raises(Deadlock, match="rank 0 waits in all_reduce(.|\n)*rank 1 has ended"):
        comm.run(3, body, checked=False)
    with pytest.raises(Mismatch, match="rank 0 waits in all_reduce(.|\n)*the program of rank . has ended"):
        run(3, body)


def test_a_size_below_one_is_refused():
    with pytest.raises(ValueError, match="size=0"):
        comm.run(0, print)
