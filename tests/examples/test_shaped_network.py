import json

import numpy as np
import pytest

import comm
from examples import network_lab
from examples import shaped_network as example
from tests.examples.running import run

RING, DOUBLING, TREE = example.RACERS
MIB = 1 << 20


@pytest.mark.parametrize("nbytes", [4, 1000, 4 * MIB])
def test_what_is_predicted_is_the_formula_of_each_algorithm(nbytes):
    alpha, beta = 1e-3, 8e-8
    for size, log in ((2, 1), (4, 2), (8, 3)):
        expected = {RING: 2 * (size - 1) * (alpha + beta * nbytes / size), DOUBLING: log * (alpha + beta * nbytes),
                    TREE: 2 * log * (alpha + beta * nbytes)}
        for name, seconds in example.predictions(size, [nbytes], alpha, beta).items():
            assert seconds == [pytest.approx(expected[name])]


def test_a_crossover_is_read_between_two_sizes():
    sizes = [1, 100, 10_000]
    assert example.crossover(sizes, ring=[10, 10, 10], other=[1, 100, 10_000]) == pytest.approx(10)
    assert example.crossover(sizes, ring=[10, 10, 10], other=[1, 10, 100]) == pytest.approx(100)
    assert example.crossover(sizes, ring=[10, 10, 10], other=[1, 2, 3]) is None
    assert example.crossover(sizes, ring=[1, 1, 1], other=[2, 2, 2]) is None


def test_every_rank_runs_the_race_and_checks_its_sums(tmp_path, capsys):
    figures = comm.run(3, lambda group: example.race(group, [4, 1000], turns=1))[0]
    assert figures["ranks"] == 3 and figures["alpha"] > 0
    for kind in ("measured", "predicted"):
        assert set(figures[kind]) == set(example.RACERS)
        assert all(len(line) == 2 and min(line) > 0 for line in figures[kind].values())
    example.report({**figures, "beta": 8e-8})
    assert "3 ranks; a message takes" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    example.draw({**figures, "beta": 8e-8}, tmp_path / "lines.png")
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["--hosts", "1"], ["--rate", "0"], ["--sizes", "4,much"], ["--sizes", "0"],
                                   ["--turns", "0"]])
def test_what_makes_no_race_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        example.main(words)
    assert "expected" in capsys.readouterr().err


def test_where_hosts_cannot_be_made_it_says_why_and_ends_well(monkeypatch, capsys):
    def refuse():
        raise network_lab.Unavailable("the moon is full")
    monkeypatch.setattr(network_lab, "check", refuse)
    assert example.main([]) == 0
    assert capsys.readouterr().out == "Skipped: the moon is full\n"


@pytest.mark.mpi
def test_between_hosts_the_ring_is_slower_for_4_bytes_and_faster_for_4_mebibytes(tmp_path):
    """Orderings with wide gaps: recursive doubling has a third of the ring's rounds, the tree 2.7 times its bytes.

    The network is slow beside what a busy machine adds to a round; what is very busy gets a second chance.
    """
    wide = False
    for attempt in range(2):
        out = tmp_path / f"{attempt}.json"
        said = run("shaped_network.py", "--hosts", 4, "--delay", 10, "--rate", 50, "--sizes", "4,4MiB", "--turns", 1,
                   "--json", out, "--out", tmp_path / "lines.png")
        if said.startswith("Skipped: "):
            pytest.skip(said.strip())
        seconds = {name: np.array(line) for name, line in json.loads(out.read_text())["measured"].items()}
        wide = seconds[RING][0] > 1.5 * seconds[DOUBLING][0] and seconds[TREE][1] > 1.5 * seconds[RING][1]
        if wide:
            break
    assert wide, said
    assert "The ring beats binomial tree from" in said
