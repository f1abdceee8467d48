"""python -m comm: what a newcomer types."""

import subprocess
import sys

import pytest

from comm.__main__ import main
from comm.algorithms import ALGORITHMS
from comm.commands.arguments import sizes
from comm.schedule import Algorithm


def test_table_prints_the_ring(capsys):
    assert main(["table", "ring_all_reduce", "--ranks", "4"]) == 0
    assert "A = [a0, a1, a2, a3+d3]" in capsys.readouterr().out


def test_table_prints_markdown(capsys):
    assert main(["table", "binomial_broadcast", "--ranks", "3", "--markdown"]) == 0
    assert "| C | a0 |" in capsys.readouterr().out


def test_prove_names_every_algorithm(capsys):
    assert main(["prove", "--ranks", "1-4,7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ALGORITHMS)
    assert all("holds on 5 sizes" in line for line in lines)


def test_prove_fails_when_an_algorithm_is_broken(capsys, monkeypatch):
    ring = ALGORITHMS["ring_all_reduce"]
    monkeypatch.setitem(ALGORITHMS, "broken", Algorithm(lambda r, n: iter(()), *ring[1:]))
    assert main(["prove", "broken", "--ranks", "3"]) == 1
    assert "BROKEN: broken on 3 ranks" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, words", [
    (["table", "rnig_all_reduce"], "did you mean ring_all_reduce?"),
    (["table", "ring_all_reduce", "--ranks", "0"], "expected a number of ranks, from 1"),
    (["prove", "--ranks", "3-x"], "expected numbers from 1"),
    (["prove", "--ranks", "0"], "expected numbers from 1"),
    ([], "required"),
])
def test_mistakes_are_answered_with_what_was_expected(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_sizes_are_lists_and_ranges():
    assert sizes("1-3,64") == [1, 2, 3, 64]


def test_help_shows_examples_and_imports_no_mpi():
    command = "import sys, runpy; sys.argv[1:] = ['--help']\n" \
              "try: runpy.run_module('comm', run_name='__main__')\n" \
              "except SystemExit: print('mpi4py' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert "python -m comm table ring_all_reduce --ranks 4" in shown
    assert shown.endswith("False\n")
