"""python -m comm why: what a newcomer asks."""

import pytest

from comm.__main__ import main
from comm.commands.why import PRESETS
from tests.ranks import mpirun


def why(*arguments):
    return main(["why", *arguments])


def test_the_table_names_every_algorithm_the_picks_and_the_crossovers(capsys):
    assert why("all_reduce", "--bytes", "1M", "--ranks", "8") == 0
    out = capsys.readouterr().out
    for words in ("all_reduce of 1 MB on 8 ranks of one node", "of a host of today", "ring_all_reduce",
                  "recursive_doubling_all_reduce", "1.75 MB", "Group takes", "fastest by messages",
                  "from          4 B"):
        assert words in out


def test_costs_may_be_given(capsys):
    assert why("broadcast", "--bytes", "1G", "--ranks", "100", "--alpha", "30us", "--beta", "10Gb/s") == 0
    out = capsys.readouterr().out
    assert "alpha 30 us, beta 1.25 GB/s" in out and "as given" in out and "segments" in out


def test_the_ring_of_two_takes_two_messages(capsys):
    why("all_reduce", "--bytes", "1000000", "--ranks", "2", "--alpha", "1us", "--beta", "1GB/s", "--gamma", "1GB/s")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("ring_all_reduce") and
                "messages" in line)
    assert "1.502 ms" in line  # 2 (1 us + 0.5 MB / 1 GB/s) + 0.5 MB / 1 GB/s


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_and_nodes(capsys, preset):
    assert why("all_reduce", "--bytes", "4", "--ranks", "9", "--nodes", "3", "--preset", preset) == 0
    assert "on 9 ranks of 3 nodes" in capsys.readouterr().out


@pytest.mark.parametrize("collective, size", [("barrier", 4), ("gather", 1), ("all_to_all", 1024)])
def test_any_collective_and_size(capsys, collective, size):
    assert why(collective, "--bytes", "1", "--ranks", str(size)) == 0
    assert collective in capsys.readouterr().out


@pytest.mark.parametrize("arguments, words", [
    (["al_reduce", "--bytes", "1"], "did you mean all_reduce?"),
    (["all_reduce"], "--bytes"),
    (["all_reduce", "--bytes", "many"], "expected bytes"),
    (["all_reduce", "--bytes", "1", "--ranks", "2", "--nodes", "3"], "2 ranks cannot be on 3 nodes"),
    (["all_reduce", "--bytes", "1", "--measure"], "mpirun -n 4"),
    (["all_reduce", "--bytes", "1", "--beta", "fast"], "expected a rate"),
])
def test_a_question_that_makes_no_sense_is_answered_with_what_was_expected(capsys, arguments, words):
    with pytest.raises(SystemExit) as ended:
        why(*arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.mpi
def test_under_mpirun_rank_0_prints_measured_beside_predicted(tmp_path):
    ended = mpirun(3, "-m", "comm", "why", "all_reduce", "--bytes", "10K", "--measure", MINIGPT_CACHE=tmp_path)
    assert ended.returncode == 0, ended.stdout
    lines = ended.stdout.splitlines()
    assert sum("all_reduce of 10 kB on 3 ranks" in line for line in lines) == 1
    ring = next(line for line in lines if line.startswith("ring_all_reduce") and " messages " in line)
    assert len([word for word in ring.split() if word in ("us", "ms", "s", "ns")]) == 2  # predicted, measured
    assert any(line.startswith("MPI") for line in lines) and "measured between these ranks" in ended.stdout


@pytest.mark.mpi
def test_under_mpirun_the_ranks_are_what_they_are(tmp_path):
    ended = mpirun(2, "-m", "comm", "why", "all_reduce", "--bytes", "4", "--ranks", "8", MINIGPT_CACHE=tmp_path)
    assert ended.returncode != 0 and "leave --ranks" in ended.stdout
