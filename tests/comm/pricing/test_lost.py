"""What the loss of one rank does."""

import pytest

from comm.algorithms import ALGORITHMS
from comm.pricing.lost import lose, say_ranks


def test_a_ring_is_stopped_by_the_loss_of_any_rank_one_hop_a_round():
    for lost in range(6):
        told = lose("ring_all_reduce", 6, lost)
        assert told.completes == []
        assert told.stuck == {(lost + k) % 6: (k, [(lost + k - 1) % 6]) for k in range(1, 6)}


def test_fact_34_the_loss_of_the_master_stops_the_star_and_loses_every_sum():
    told = lose("star_all_reduce", 6, 0)
    assert told.completes == []
    assert {rank: peers for rank, (_, peers) in told.stuck.items()} == {rank: [0] for rank in range(1, 6)}
    assert told.lonely == [1, 2, 3, 4, 5]
    assert told.largest == 1


def test_the_loss_of_another_rank_stops_the_star_at_its_master():
    told = lose("star_all_reduce", 6, 4)
    assert told.completes == []
    assert told.stuck[0][1] == [4]
    assert told.largest < 6


def test_copies_to_everyone_miss_only_the_lost_rank():
    told = lose("naive_all_reduce", 5, 2)
    assert {peers[0] for _, peers in told.stuck.values()} == {2}
    assert told.lonely == []
    assert told.largest == 4


def test_a_broadcast_reaches_all_that_do_not_hang_below_the_lost_rank():
    told = lose("binomial_broadcast", 8, 3)
    assert told.completes == [0, 1, 2, 4, 5, 6]
    assert told.stuck == {7: (3, [3])}
    assert (told.lonely, told.largest, told.missing) == (None, None, 0)
    leaf, root = lose("binomial_broadcast", 8, 7), lose("binomial_broadcast", 8, 0)
    assert leaf.completes == list(range(7)) and not leaf.stuck
    assert root.completes == [] and root.missing == 1


def test_a_gathers_block_is_missing_with_its_rank():
    told = lose("binomial_gather", 8, 5)
    assert 0 in told.stuck
    assert told.missing == 1


def test_a_dead_end_is_the_loss_of_nobody_else():
    assert lose("ring_all_reduce", 1, 0).stuck == {}
    assert lose("ring_all_reduce", 2, 1).stuck == {0: (1, [1])}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_living_rank_completes_or_waits_for_one_that_does_not(name):
    for size in (2, 5, 8):
        for lost in range(size):
            told = lose(name, size, lost, **ALGORITHMS[name].variants(size)[0])
            assert sorted([*told.completes, *told.stuck]) == [rank for rank in range(size) if rank != lost]
            for rank, (number, peers) in told.stuck.items():
                assert rank not in peers
                for peer in peers:
                    assert peer == lost or told.stuck[peer][0] < number


def test_large_sizes_are_told_without_their_data():
    told = lose("ring_all_reduce", 2000, 7)
    assert len(told.stuck) == 1999
    assert (told.lonely, told.largest, told.missing) == (None, None, None)


@pytest.mark.parametrize("lost", [-1, 4])
def test_a_rank_that_is_not_there_cannot_be_lost(lost):
    with pytest.raises(ValueError, match="expected 0 to 3"):
        lose("ring_all_reduce", 4, lost)


def test_ranks_are_said_as_ranges():
    assert say_ranks([5]) == "rank 5"
    assert say_ranks([2, 0, 1, 7, 9, 10]) == "ranks 0-2, 7, 9-10"
