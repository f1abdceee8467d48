"""All-to-all on paper and on threads: the transpose, what it costs, and who talks to whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comm
from comm.algorithms import ALGORITHMS
from comm.schedule import Send, rounds
from comm.simulate import before, play, prove

EXCHANGES = ["pairwise_all_to_all", "ring_all_to_all", "bruck_all_to_all", "direct_all_to_all"]


def played(name, size):
    """(what all ranks held at first, what they hold in the end)."""
    held = before(name, size)
    first = held.copy()
    for _ in play(name, size, held):
        pass
    return first, held


def all_rounds(name, size):
    return list(rounds(ALGORITHMS[name].rule, np.arange(size), size))


@pytest.mark.parametrize("name", EXCHANGES)
def test_fact_38_three_friends_give_three_presents_each_and_hold_the_transpose(name):
    first, last = played(name, 3)
    presents = first[:, :3]
    assert len(set(presents.ravel())) == 9
    assert np.array_equal(last[:, 3:], presents.T)


@pytest.mark.parametrize("name", EXCHANGES)
@given(size=st.integers(1, 200))
def test_every_block_arrives_on_any_number_of_ranks(name, size):
    prove(name, size)


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("size", [3, 5, 6, 7])
def test_case_86_sizes_that_are_no_power_of_two(name, size):
    first, last = played(name, size)
    assert np.array_equal(last[:, size:], first[:, :size].T)


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_rank_alone_has_nothing_to_send(name):
    assert prove(name, 1)[0] == 0


@pytest.mark.parametrize("size", [2, 3, 8, 33, 100])
def test_straight_ways_move_each_block_once(size):
    for name, turns in (("pairwise_all_to_all", size - 1), ("direct_all_to_all", 1)):
        cost = prove(name, size)
        assert cost.rounds == turns
        assert (cost.sent == size - 1).all() and (cost.messages == size - 1).all()


@pytest.mark.parametrize("size", [2, 3, 8, 33, 100])
def test_round_the_ring_a_block_goes_the_shorter_way_by_neighbours_only(size):
    cost = prove("ring_all_to_all", size)
    assert cost.rounds == size // 2
    assert (cost.sent == sum(min(far, size - far) for far in range(size))).all()
    ranks = np.arange(size)
    for items in all_rounds("ring_all_to_all", size):
        for item in items:
            assert np.isin((item[0] - ranks) % size, [1, size - 1]).all()


@pytest.mark.parametrize("size, turns", [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (100, 7), (1024, 10)])
def test_brucks_rounds_are_the_logarithm_and_carry_at_most_half_of_the_blocks(size, turns):
    everyone = all_rounds("bruck_all_to_all", size)
    assert len(everyone) == turns
    for items in everyone:
        assert [item.chunks.shape[1] <= size / 2 for item in items if isinstance(item, Send)] == [True]


@pytest.mark.parametrize("size", [2, 4, 16])
def test_on_powers_of_two_the_partners_of_the_pairwise_exchange_swap(size):
    for send, recv in all_rounds("pairwise_all_to_all", size):
        assert np.array_equal(send.to, recv.source)
        assert np.array_equal(send.to[send.to], np.arange(size))


def test_one_rank_of_very_many_need_not_think_of_all():
    assert len(list(ALGORITHMS["bruck_all_to_all"].rule(99_999, 100_000))) == 17
    step = next(ALGORITHMS["pairwise_all_to_all"].rule(0, 1_000_003))
    assert (step.to, step.source) == (1, 1_000_002)


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_fact_38_friends_who_give_numbers_hold_the_transpose(name, size):
    def give(group):
        mine = 100 * group.rank + np.arange(group.size)
        return group.all_to_all(mine, algorithm=name)

    given = np.add.outer(100 * np.arange(size), np.arange(size))
    assert np.array_equal(comm.run(size, give), given.T)


@pytest.mark.parametrize("name", EXCHANGES)
def test_case_84_blocks_of_different_lengths_and_none_at_all(name):
    """Rank r has 7 rows of 2 numbers for 5 ranks: two for the first two, one for the others. Then 2 rows."""
    for rows in (7, 2, 0):
        def give(group, rows=rows):
            mine = 100.0 * group.rank + np.arange(2 * rows).reshape(rows, 2)
            return group.all_to_all(mine, algorithm=name)

        cuts = comm.bounds(rows, 5)
        for rank, came in enumerate(comm.run(5, give)):
            mine = np.arange(2 * rows).reshape(rows, 2)[cuts[rank]:cuts[rank + 1]]
            assert np.array_equal(came, np.concatenate([100.0 * other + mine for other in range(5)]))


@pytest.mark.parametrize("name", EXCHANGES)
def test_what_leaves_a_rank_is_the_formula(name):
    def give(group):
        group.all_to_all(np.zeros((6, 1000), np.uint8), algorithm=name)
        return group.ledger["all_to_all"].sent

    assert comm.run(6, give) == [1000 * ALGORITHMS[name].sent(6)] * 6
