"""Rounds backwards."""

import numpy as np
import pytest

from comm.algorithms import ALGORITHMS
from comm.algorithms.mirror import backwards
from comm.algorithms.ring import ring_all_gather
from comm.schedule import Algorithm, Recv, rounds
from comm.simulate import prove


@pytest.mark.parametrize("name", ["binomial_scatter", "binomial_broadcast", "chain_broadcast", "bruck_all_to_all"])
def test_backwards_twice_is_forwards(name):
    def there_and_back(rank, size):
        return backwards(lambda rank, size: backwards(rule, rank, size, reduce=False), rank, size, reduce=False)

    rule = ALGORITHMS[name].rule
    for rank in (*range(7), np.arange(7)):
        forwards, twice = (list(rounds(each, rank, 7)) for each in (rule, there_and_back))
        for items, others in zip(forwards, twice, strict=True):
            for one, other in zip(items, others, strict=True):
                assert type(one) is type(other) and np.array_equal(one[0], other[0])
                assert np.array_equal(one.chunks, other.chunks)
                assert not isinstance(other, Recv) or other.reduce is False


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
def test_an_all_gather_backwards_is_a_reduce_scatter(size, monkeypatch):
    cost = ALGORITHMS["ring_reduce_scatter"]
    mirrored = lambda rank, size: backwards(ring_all_gather, rank, size, reduce=True)
    monkeypatch.setitem(ALGORITHMS, "mirrored", Algorithm(mirrored, *cost[1:]))
    prove("mirrored", size)
