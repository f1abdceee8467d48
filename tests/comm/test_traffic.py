"""FACTS F34-F36: what the article's ways to add up cost."""

import pytest

from comm import traffic
from comm.algorithms import ALGORITHMS
from comm.simulate import prove


def test_fact_34_formulas_on_small_numbers():
    assert traffic.copies_to_everyone(10, 4) == 120
    assert traffic.ring(10, 4) == 60
    assert traffic.ring_per_rank(10, 4) == 15
    assert traffic.chain(10, 4) == 30
    assert traffic.star(10, 4) == 30
    assert 2 * traffic.chain(10, 4) == traffic.ring(10, 4)


def test_fact_34_the_ring_that_runs_sends_what_the_formula_says():
    for size in range(1, 20):
        cost = prove("ring_all_reduce", size)  # in chunks of M / N
        assert cost.sent.sum() / size == pytest.approx(traffic.ring(1, size))
        assert (cost.sent / size == pytest.approx(traffic.ring_per_rank(1, size)))
    assert ALGORITHMS["ring_all_reduce"].total(64) / 64 == traffic.ring(1, 64)


def test_fact_35_350_gigabytes_on_64_ranks():
    assert traffic.copies_to_everyone(350, 64) == 1_411_200
    assert traffic.ring(350, 64) == 44_100
    assert traffic.star(350, 64) == 22_050
    assert traffic.ring_per_rank(350, 64) == 689.0625
    once = 350 / 50  # GB over GB/s
    assert once == 7
    assert traffic.star_time(once, 64) == 882
    assert traffic.chain_time(once, 64) == 882
    assert traffic.ring_time(once, 64) == pytest.approx(13.78, abs=0.005)


def test_fact_36_a_ring_takes_less_than_twice_the_time_of_one_message():
    assert traffic.ring_time(1, 64) == 1.96875
    assert traffic.ring_time(1, 10 ** 6) < 2
    assert traffic.chain_time(1, 64, there_and_back=False) == 63
    assert traffic.chain_time(1, 64) == 126
