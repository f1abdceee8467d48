import numpy as np
import pytest

import comm
from comm import traffic
from examples import ring_all_reduce as example
from tests.examples.running import run
from tests.ranks import mpirun

AFTER_ONE = """after step 1 (add):
  A = [a0, a1, a2, a3+d3]
  B = [b0+a0, b1, b2, b3]
  C = [c0, c1+b1, c2, c3]
  D = [d0, d1, d2+c2, d3]
"""
AT_THE_END = "[d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]"


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_fact_30_phase_one_sends_chunk_i_minus_k_plus_1_and_adds_into_i_minus_k(size):
    for i in range(size):
        for k, step in enumerate(example.steps_of(i, size)[:size - 1], 1):
            assert (step.to, step.source) == ((i + 1) % size, (i - 1) % size)
            assert (step.send, step.recv, step.reduce) == ((i - k + 1) % size, (i - k) % size, True)


def test_fact_31_rank_i_owns_chunk_i_plus_1():
    assert [example.owned_after_phase_one(i, 4) for i in range(4)] == [1, 2, 3, 0]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_fact_32_phase_two_copies_and_passes_on_what_came_last(size):
    for i in range(size):
        phase_two = example.steps_of(i, size)[size - 1:]
        assert len(phase_two) == size - 1 and not any(step.reduce for step in phase_two)
        assert phase_two[0].send == example.owned_after_phase_one(i, size)
        assert all(after.send == before.recv for before, after in zip(phase_two, phase_two[1:]))


def test_facts_33_to_35_are_printed():
    said = run("ring_all_reduce.py")
    assert AFTER_ONE in said
    assert said.split("after step 6 (copy):")[1].count(AT_THE_END) == 4
    for number in "A 1, B 2, C 3, D 0", "1,411,200", "44,100", "22,050", "689.0625", "13.78", "882.00":
        assert number in said
    assert "[1, 2, 3] summed over 4 ranks is [4, 8, 12]" in said


def test_fact_36_the_ring_takes_less_than_twice_the_time_to_send_once():
    assert traffic.ring_time(1, 64) == 1.96875
    assert traffic.chain_time(1, 64, there_and_back=False) == 63 and traffic.chain_time(1, 64) == 126


def test_fact_34_the_bytes_that_leave_a_rank_are_those_of_the_formula():
    for total, sent, formula in comm.run(5, example.add_up):
        np.testing.assert_array_equal(total, 15 * np.arange(25))
        assert sent == formula == 2 * 200 * 4 / 5


def test_fact_38b_one_two_three_on_two_ranks():
    assert [y.tolist() for y in comm.run(2, example.five_lines)] == [[2, 4, 6]] * 2


def test_a_ring_of_one_is_refused():
    with pytest.raises(AssertionError, match="at least 2"):
        run("ring_all_reduce.py", "--ranks", 1)


@pytest.mark.mpi
def test_fact_38b_the_five_lines_under_mpirun():
    ended = mpirun(2, "examples/all_reduce.py")
    assert ended.returncode == 0, ended.stdout
    assert sorted(ended.stdout.split("\n")) == ["", "rank 0 of 2: [2 4 6]", "rank 1 of 2: [2 4 6]"]


@pytest.mark.mpi
def test_the_ring_runs_on_processes():
    ended = mpirun(3, "examples/ring_all_reduce.py", "--ranks", 3)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("Run on 3 processes: every rank ends with 6 * [0, 1, 2, ...]") == 1
    assert "[1, 2, 3] summed over 3 ranks is [3, 6, 9]" in ended.stdout


def test_the_five_lines_run_alone_too():
    assert run("all_reduce.py") == "rank 0 of 1: [1 2 3]\n"
