"""How a job ends: all ranks or none, soon, with the status of the rank that failed. See tests/comm/programs.py."""

import subprocess
import sys
import time

import pytest

import comm
from comm.desk import patience
from minigpt import launch
from tests.comm import programs
from tests.comm.ends import both_transports, end_of, what_is_said


@pytest.mark.mpi
@pytest.mark.parametrize("program, checks", [
    ("raises", "0"), ("raises", "1"), ("raises_in_a_thread", "0"), ("raises_in_a_subgroup", "1"),
    ("raises_in_flight", "0"), ("raises_in_flight", "1")])
def test_case_100_an_exception_ends_all_ranks_and_shows_its_traceback(program, checks):
    status, output = end_of(program, size=3, MINIGPT_COMM_CHECK=checks)
    assert status == 1
    assert "rank 1 of 3 failed, all ranks end" in output
    assert "1 / 0" in output
    assert "ZeroDivisionError: division by zero" in output


@pytest.mark.parametrize("program", ["raises", "raises_in_a_subgroup", "raises_in_flight"])
@pytest.mark.parametrize("checked", [False, True])
def test_case_100_an_exception_ends_all_threads(program, checked):
    start = time.monotonic()
    with pytest.raises(ZeroDivisionError) as caught:
        comm.run(3, getattr(programs, program), checked=checked)
    assert time.monotonic() - start < 5
    assert "raised on rank 1 of 3" in caught.value.__notes__[0]


def test_case_100_a_thread_that_is_busy_does_not_keep_the_others_from_ending():
    def body(group):
        if group.rank == 1:
            raise KeyError("lost")
        if group.rank == 2:
            time.sleep(8)
        group.barrier()

    start = time.monotonic()
    with pytest.raises(KeyError) as caught:
        comm.run(4, body)
    assert time.monotonic() - start < 5
    assert caught.value.__notes__[1] == "Still busy with something else, and not stopped: rank 2."


@pytest.mark.mpi
@pytest.mark.parametrize("program, status, checks", [
    ("leaves", 3, "0"), ("leaves", 3, "1"), ("leaves_by_raising", 3, "0"), ("leaves_by_raising", 3, "1"),
    ("leaves_by_a_class_of_its_own", 3, "0"), ("leaves_without_a_word", 3, "0"), ("leaves_with_a_message", 1, "0"),
    ("is_interrupted", 130, "1"), ("all_leave_with_three", 3, "1")])
def test_a_rank_that_leaves_with_a_failure_ends_all_with_that_status(program, status, checks):
    told, output = end_of(program, MINIGPT_COMM_CHECK=checks)
    assert told == status, output
    if program == "leaves_with_a_message":
        assert output.count("the data is missing") == 1


@pytest.mark.parametrize("program, kind", [
    ("leaves", SystemExit), ("leaves_by_raising", SystemExit), ("is_interrupted", KeyboardInterrupt)])
def test_a_thread_that_leaves_with_a_failure_ends_all(program, kind):
    with pytest.raises(kind):
        comm.run(3, getattr(programs, program))


@pytest.mark.mpi
@pytest.mark.parametrize("program, checks", [
    ("leaves_well", "0"), ("leaves_at_different_times", "0"), ("leaves_at_different_times", "1"),
    ("catches_an_exit", "1"), ("forks", "0")])
def test_an_exit_that_was_caught_or_went_well_ends_nothing(program, checks):
    status, output = end_of(program, MINIGPT_COMM_CHECK=checks)
    assert status == 0, output
    assert output.count("sum 3") == (0 if program.startswith("leaves") else 3)
    assert "waits" not in output


@pytest.mark.mpi
def test_a_killed_rank_ends_the_job():
    status, output = end_of("is_killed", MINIGPT_COMM_CHECK="0")
    assert status not in (0, -9)
    assert "signal 9" in output


@both_transports
def test_a_rank_that_ends_well_while_others_wait_ends_them(transport, monkeypatch):
    said = what_is_said("ends_early", 3, transport, monkeypatch)
    assert "waits for rank 1, which makes no more calls" in said
    assert " waits in all_reduce(3 float64, sum) at " in said
    assert "programs.py:" in said
    assert "the program of rank 1 has ended" in said


@pytest.mark.mpi
@pytest.mark.parametrize("program", ["ends_early", "leaves_a_message_behind"])
def test_without_checks_a_message_that_was_never_taken_tells_that_somebody_waits(program):
    status, output = end_of(program, MINIGPT_COMM_CHECK="0")
    assert status == 1
    assert "the program of rank 1 has ended, but:\n  rank 0 has sent it " in output


@pytest.mark.mpi
def test_a_rank_that_waits_for_the_others_to_end_says_so():
    status, output = end_of("leaves_at_different_times", 2, MINIGPT_COMM_CHECK="0", MINIGPT_COMM_TIMEOUT="0.1")
    assert status == 0
    assert "rank 0 of 2 has ended its program 0 s ago and waits for the others to end: 1" in output


@both_transports
def test_case_101_a_gradient_that_never_comes_back_is_no_wait_for_ever(transport, monkeypatch):
    said = what_is_said("ends_before_a_message", 2, transport, monkeypatch)
    assert "rank 0 waits in recv at" in said
    assert "receive from rank 1, tag 0, 32 bytes" in said
    assert "rank 1 has ended" in said


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(text, monkeypatch):
    monkeypatch.setenv("MINIGPT_COMM_TIMEOUT", text)
    with pytest.raises(ValueError, match=f"MINIGPT_COMM_TIMEOUT='{text}': expected a number of seconds above 0"):
        comm.run(2, lambda group: group.barrier(), checked=True)
    assert comm.run(2, lambda group: group.all_reduce(1), checked=False) == [2, 2]


@pytest.mark.mpi
def test_under_mpirun_a_wrong_timeout_is_refused_at_once():
    status, output = end_of("leaves_well", 2, MINIGPT_COMM_CHECK="0", MINIGPT_COMM_TIMEOUT="soon")
    assert status == 1
    assert "MINIGPT_COMM_TIMEOUT='soon': expected a number of seconds above 0" in output
    assert "began" not in output


def test_a_timeout_may_be_any_number_of_seconds(monkeypatch):
    monkeypatch.delenv("MINIGPT_COMM_TIMEOUT", raising=False)
    assert patience() == 60
    monkeypatch.setenv("MINIGPT_COMM_TIMEOUT", "0.5")
    assert patience() == 0.5
    monkeypatch.setenv("MINIGPT_COMM_TIMEOUT", "inf")
    assert patience() == float("inf")


def test_one_process_alone_keeps_its_own_way_to_exit():
    code = "import sys, comm\nbefore = sys.exit, sys.excepthook, SystemExit.__dict__['code']\ncomm.world()\n" \
           "assert before == (sys.exit, sys.excepthook, SystemExit.__dict__['code'])"
    subprocess.run([sys.executable, "-c", code], check=True, env=launch.environment(1), cwd=launch.__file__[:-18])
