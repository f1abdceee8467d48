"""All-reduce by every algorithm: promises on any number of ranks, the article's traffic, and the shapes of trees."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import comm
from comm.algorithms import ALGORITHMS
from comm.algorithms.double_tree import _links
from comm.algorithms.hierarchical import hierarchical_all_reduce
from comm.execute import Plan
from comm.schedule import NONE, Recv, Send, everyone, rounds
from comm.simulate import before, play, prove

ALL_REDUCES = [name for name, algorithm in ALGORITHMS.items() if algorithm.collective == "all_reduce"]
WHOLE = [name for name in ALL_REDUCES if len(ALGORITHMS[name].variants(7)) == 1]
PLACINGS = [(0,), (0, 1), (1, 0, 0), (0, 1, 0, 1), (0, 0, 0, 1), (7, 7, 7), (2, 0, 1), (0, 1, 1, 2, 2, 2, 0),
            (0, 0, 1, 1, 2, 2), (5, 0, 5, 0, 0, 0, 0, 0)]


def of_the_network(name, size, **options):
    """Messages of M bytes that leave all ranks together."""
    return prove(name, size, **options).sent.sum() / ALGORITHMS[name].chunks(size, **options)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=15, deadline=None)
@given(size=st.integers(1, 200))
def test_the_promise_holds_on_any_number_of_ranks(name, size):
    prove(name, size)


@pytest.mark.parametrize("name", ["chain_all_reduce", "double_tree_all_reduce"])
@settings(max_examples=15, deadline=None)
@given(size=st.integers(1, 60), segments=st.integers(1, 9))
def test_and_in_any_number_of_segments(name, size, segments):
    prove(name, size, segments=segments)


@settings(max_examples=40, deadline=None)
@given(nodes=st.lists(st.integers(0, 6), min_size=1, max_size=60))
def test_and_however_ranks_are_placed_on_nodes(nodes):
    prove("hierarchical_all_reduce", len(nodes), nodes=tuple(nodes))


@pytest.mark.parametrize("size", [2, 3, 4, 7, 33, 64])
def test_fact_34_traffic_of_the_whole_network(size):
    assert of_the_network("naive_all_reduce", size) == size * (size - 1)
    assert of_the_network("ring_all_reduce", size) == 2 * (size - 1)
    assert of_the_network("chain_all_reduce", size) == 2 * (size - 1)  # there and back
    assert of_the_network("star_all_reduce", size) == 2 * (size - 1)  # in and out


def test_fact_34_the_star_takes_all_in_over_one_link_and_gives_as_much_out():
    gather, give = everyone(ALGORITHMS["star_all_reduce"].rule, 64)
    into = sum((item.source != NONE) * 1 for item in gather if isinstance(item, Recv))
    out = sum((item.to != NONE) * 1 for item in give if isinstance(item, Send))
    assert into[0] == out[0] == 63 and into[1:].sum() == out[1:].sum() == 0


def test_fact_34_the_chain_has_the_sum_on_the_last_rank_half_way():
    size = 6
    held = before("chain_all_reduce", size)
    states = play("chain_all_reduce", size, held)
    for _ in range(size - 1):
        assert held[-1, 0] != (1 << size) - 1
        next(states)
    assert [held[rank, 0] == (1 << size) - 1 for rank in range(size)] == [False] * 5 + [True]


def test_fact_35_gigabytes_of_350_on_64_ranks():
    assert 350 * of_the_network("naive_all_reduce", 64) == 1_411_200
    assert 350 * of_the_network("ring_all_reduce", 64) == 44_100
    assert 350 * of_the_network("star_all_reduce", 64) == 2 * 22_050


def test_fact_36_a_chain_is_n_minus_1_whole_messages_one_after_the_other_each_way():
    assert prove("chain_all_reduce", 64).rounds == 2 * 63
    share = prove("ring_all_reduce", 64).rounds / 64
    assert share == 1.96875


@pytest.mark.parametrize("name", [name for name in ALL_REDUCES if name != "naive_all_reduce"])
@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 13, 16])
def test_every_rank_adds_in_the_same_order_so_all_end_with_the_same_bits(name, size):
    for options in ALGORITHMS[name].variants(size):
        sums = written_sums(name, size, options)
        assert all(rank == sums[0] for rank in sums)


def test_but_not_when_everyone_adds_everything_for_itself():
    assert len({tuple(rank) for rank in written_sums("naive_all_reduce", 3, {})}) == 3


def written_sums(name, size, options):
    """What each rank has of each chunk in the end as a nest of sums; a + b is b + a, as it is for floats."""
    held = [[rank] * ALGORITHMS[name].chunks(size, **options) for rank in range(size)]
    every_rank = [list(rounds(ALGORITHMS[name].rule, rank, size, **options)) for rank in range(size)]
    for turn in zip(*every_rank):
        was = [list(chunks) for chunks in held]
        for rank, items in enumerate(turn):
            for item in items:
                if isinstance(item, Recv) and item.source != NONE:
                    for chunk in np.ravel(item.chunks):
                        came = was[int(item.source)][chunk]
                        held[rank][chunk] = frozenset([held[rank][chunk], came]) if item.reduce else came
    return held


def trees(size):
    """For both trees: who is the parent of each rank, and who has children."""
    for shift in (0, 1):
        links = list(_links(np.arange(size), size, shift))
        yield links[0][0], (links[1][0] != NONE) | (links[2][0] != NONE)


@pytest.mark.parametrize("size", [*range(1, 40), 200, 1024, 100_003])
def test_in_a_double_tree_each_rank_is_an_inner_node_of_at_most_one_tree(size):
    (up, inner), (other_up, other_inner) = trees(size)
    assert not (inner & other_inner).any()
    for parents, works in ((up, inner), (other_up, other_inner)):
        assert (parents == NONE).sum() == 1
        assert set(parents[parents != NONE].tolist()) == set(np.flatnonzero(works).tolist())


@pytest.mark.parametrize("size", [2, 3, 7, 8, 33, 100, 1023])
def test_both_trees_are_as_deep_as_a_binary_tree_can_be(size):
    for parents, _ in trees(size):
        at, depth = np.arange(size), 0
        while (at := at[at != NONE]).size:
            at, depth = parents[at], depth + 1
        assert depth <= size.bit_length()


@pytest.mark.parametrize("size, segments", [(8, 1), (64, 1), (64, 10), (100, 4)])
def test_a_double_tree_takes_log_n_and_the_segments_each_way_and_no_rank_carries_more_than_a_ring_does(size, segments):
    cost = prove("double_tree_all_reduce", size, segments=segments)
    assert cost.rounds == 2 * (size.bit_length() - 1 + segments - 1)
    assert cost.sent.max() == 2 * ALGORITHMS["double_tree_all_reduce"].chunks(size, segments=segments)


@pytest.mark.parametrize("size", [2, 4, 8, 64])
def test_halving_and_doubling_has_the_bytes_of_the_ring_in_the_rounds_of_a_tree(size):
    cost, ring = prove("halving_doubling_all_reduce", size), prove("ring_all_reduce", size)
    assert (cost.sent == ring.sent).all()
    assert cost.rounds == 2 * (size.bit_length() - 1)


def test_between_nodes_goes_a_lane_from_every_rank_however_many_ranks_a_node_has():
    for each in (1, 2, 8):
        nodes = np.repeat(np.arange(4), each)
        across = np.zeros(4 * each, int)
        for items in everyone(hierarchical_all_reduce, 4 * each, nodes=tuple(nodes)):
            for item in items:
                if isinstance(item, Send):
                    across += item.chunks.shape[1] * ((item.to != NONE) & (nodes[item.to] != nodes))
        assert (across == 2 * 3).all()  # chunks of M / (4 each) bytes: twice (K-1)/K of a lane of M / each


def test_nodes_must_be_named_for_every_rank():
    with pytest.raises(ValueError, match="expected the node of each of 4 ranks"):
        list(hierarchical_all_reduce(0, 4, nodes=(0, 1)))


@pytest.mark.parametrize("nodes", PLACINGS)
def test_hierarchical_all_reduce_adds_on_threads_wherever_ranks_are(nodes):
    def program(group):
        x = np.arange(23) + group.rank
        planned = group.empty(23, int)
        plan = group.plan("all_reduce", planned, algorithm="hierarchical_all_reduce")
        planned[:] = x
        plan.run()
        return group.all_reduce(x, algorithm="hierarchical_all_reduce"), planned.copy()

    size = len(nodes)
    for totals in comm.run(size, program, nodes=nodes):
        for total in totals:
            np.testing.assert_array_equal(total, np.arange(23) * size + size * (size - 1) // 2)


@pytest.mark.parametrize("size", [3, 7])
def test_floats_end_with_the_same_bits_on_all_ranks(size):
    def program(group):
        x = np.random.default_rng(group.rank).standard_normal(1000).astype("f4")
        return [group.all_reduce(x, algorithm=name).tobytes() for name in ALL_REDUCES if name != "naive_all_reduce"]

    totals = comm.run(size, program, nodes=[rank % 2 for rank in range(size)])
    assert all(mine == totals[0] for mine in totals)


@pytest.mark.parametrize("name", ["chain_all_reduce", "double_tree_all_reduce"])
@pytest.mark.parametrize("size", [1, 2, 6])
@pytest.mark.parametrize("segments", [1, 2, 7])
def test_segments_run_on_threads_even_where_some_are_empty(name, size, segments):
    algorithm = ALGORITHMS[name]

    def program(group):
        x = np.arange(11) + group.rank
        cuts = comm.bounds(11, algorithm.chunks(size, segments=segments))
        Plan(group._endpoint, partial(algorithm.rule, segments=segments), x, cuts).run()
        return x

    for total in comm.run(size, program):
        np.testing.assert_array_equal(total, np.arange(11) * size + size * (size - 1) // 2)


def test_one_rank_of_very_many_need_not_think_of_all():
    assert len(list(rounds(ALGORITHMS["halving_doubling_all_reduce"].rule, 65_535, 65_536))) == 32
    assert len(list(rounds(ALGORITHMS["double_tree_all_reduce"].rule, 999, 1_000_003))) == 38
