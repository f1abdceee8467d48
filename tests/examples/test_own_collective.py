import numpy as np
import pytest

import comm
from comm.algorithms import ALGORITHMS
from comm.simulate import prove
from examples import own_collective as example
from tests.examples.running import run


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(example, "ALGORITHMS", ALGORITHMS)
    known = dict(ALGORITHMS)
    example.register("two_way_ring_all_reduce", example.two_way_ring_all_reduce)
    example.register("hasty_all_reduce", example.hasty_all_reduce)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(known)


def test_it_holds_and_sends_the_bytes_of_the_ring():
    for size in (2, 3, 8, 100):
        assert prove("two_way_ring_all_reduce", size).sent.max() / (2 * size) == prove(
            "ring_all_reduce", size).sent.max() / size


def test_the_slip_is_named_with_its_round():
    _, story = example.proofs(sizes=(4,))
    assert "round 4: rank 3 sends chunks [0] to rank 0, which expects others" in story


@pytest.mark.parametrize("size", [1, 2, 5])
def test_it_runs_like_any_other(size):
    def body(group):
        return group.all_reduce(np.arange(7.0), algorithm="two_way_ring").tolist()

    assert comm.run(size, body, checked=True) == [[size * i for i in range(7)]] * size


def test_in_a_torus_it_takes_half_of_the_rings_time_when_chunks_are_long():
    switch, torus = example.costs(64, 10**11).values()
    assert switch["two_way_ring_all_reduce"] == pytest.approx(switch["ring_all_reduce"], rel=0.01)
    assert torus["two_way_ring_all_reduce"] < 0.55 * torus["ring_all_reduce"]


def test_the_whole_chapter_prints_its_numbers():
    said = run("own_collective.py", "--ranks", "16")
    assert "Proved on 34 sizes" in said and "equal to NumPy's sum" in said and "torus of 4 x 4" in said
