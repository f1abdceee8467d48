"""The proof on paper: every algorithm at every size, and that a broken one is found out."""

import numpy as np
import pytest

from comm.algorithms import ALGORITHMS
from comm.algorithms.ring import ring_all_reduce
from comm.schedule import NONE, Algorithm, Step
from comm.simulate import Broken, before, play, prove, prove_all


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_keeps_its_promise_on_1_to_33_64_100_and_1024_ranks(name):
    for size in [*range(1, 34), 64, 100, 1024]:
        prove_all(name, size)


def test_fact_31_after_phase_one_rank_i_owns_chunk_i_plus_1():
    for size in (2, 4, 7):
        held = before("ring_all_reduce", size)
        states = play("ring_all_reduce", size, held)
        for _ in range(size - 1):
            next(states)
        complete = (1 << size) - 1
        for rank in range(size):
            assert [c for c in range(size) if held[rank, c] == complete] == [(rank + 1) % size]


def test_messages_of_a_broadcast_are_one_for_each_rank_but_the_root():
    for size in range(1, 34):
        assert prove("binomial_broadcast", size).messages.sum() == size - 1


def late(rank, size):
    """Rank 0 stays away in the last round."""
    steps = list(ring_all_reduce(rank, size))
    yield from steps[:-1]
    yield steps[-1]._replace(to=np.where(rank == 0, NONE, steps[-1].to))


def twice(rank, size):
    """The sum goes round once too often."""
    yield from ring_all_reduce(rank, size)
    yield Step((rank + 1) % size, rank, (rank - 1) % size, (rank - 1) % size, reduce=True)


def other_chunk(rank, size):
    for step in ring_all_reduce(rank, size):
        yield step._replace(recv=(step.recv + 1) % size)


def too_short(rank, size):
    yield from list(ring_all_reduce(rank, size))[:-1]


def too_long(rank, size):
    yield from ring_all_reduce(rank, size)
    yield Step((rank + 1) % size, rank, (rank - 1) % size, (rank - 1) % size, reduce=False)


def two_minds(rank, size):
    """An int and a vector are told different things."""
    flip = isinstance(rank, int) and rank == 1
    for step in ring_all_reduce(rank, size):
        yield step._replace(send=(step.send + flip) % size)


@pytest.mark.parametrize("rule, words", [
    (late, "round 6: rank 0 sends nothing to rank 1, which waits"),
    (twice, "round 7: rank 3 sends chunks .3. to rank 0, which then counts a summand twice"),
    (other_chunk, "round 1: rank 3 sends chunks .3. to rank 0, which expects others"),
    (too_short, "rank 0 ends with the summands of ranks"),
    (too_long, "7 rounds, the formula says 6"),
    (two_minds, "the rule of rank 1 alone says"),
])
def test_a_broken_algorithm_is_named_with_the_first_step_that_goes_wrong(rule, words, monkeypatch):
    cost = ALGORITHMS["ring_all_reduce"]
    monkeypatch.setitem(ALGORITHMS, "broken", Algorithm(rule, "all_reduce", *cost[2:]))
    with pytest.raises(Broken, match=words):
        prove("broken", 4)


def test_what_a_rank_does_not_have_it_cannot_send(monkeypatch):
    def hasty(rank, size):
        yield Step((rank + 1) % size, (rank + 1) % size, (rank - 1) % size, rank, reduce=False)

    monkeypatch.setitem(ALGORITHMS, "hasty", Algorithm(hasty, "all_gather", len, len, len))
    with pytest.raises(Broken, match="does not have them yet"):
        prove("hasty", 4)
