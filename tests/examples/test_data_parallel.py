import numpy as np

import comm
from examples import data_parallel as example
from tests.examples.running import run


def test_fact_39_500_examples_on_10_ranks_are_50_each_and_all_copies_stay_equal():
    alone, together = comm.run(1, example.train)[0], comm.run(10, example.train)
    assert [each[0] for each in together] == [50] * 10
    for _, _, weights, hashes in together:
        assert hashes == together[0][3] and len(set(hashes)) == 20
        np.testing.assert_allclose(weights, alone[2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(together[0][1], alone[1], rtol=1e-12)


def test_fact_37_all_reduce_is_reduce_scatter_and_all_gather():
    assert comm.run(4, example.two_halves) == [True] * 4


def test_what_the_article_describes_is_an_all_gather_of_n_over_2_times_the_bytes():
    def both(group):
        gradient = np.random.default_rng(group.rank).normal(size=1600)
        average = example.average_after_all_gather(group, gradient)
        gathered = group.ledger["all_gather"].sent
        summed = group.all_reduce(gradient, algorithm="ring_all_reduce")
        np.testing.assert_allclose(average, summed / group.size, atol=1e-15)
        return gathered / group.ledger["all_reduce"].sent
    assert all(abs(ratio - 8 / 2) < 0.1 for ratio in comm.run(8, both))


def test_facts_37_and_39_are_printed():
    said = run("data_parallel.py")
    assert "500 examples on 10 ranks: 50, 50, 50, 50, 50, 50, 50, 50, 50, 50" in said
    assert "equal to the last bit: True" in said and "then all-gather: True" in said
