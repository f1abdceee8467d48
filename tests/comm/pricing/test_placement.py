"""The order of ranks on GPUs, before and after it is fitted to the cluster."""

import numpy as np
import pytest

from comm.pricing.placement import ORDERS, fit, place, priced_in
from comm.topology import describe

GB = 10 ** 9


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("text, ranks", [("dgx-h100", 24), ("dgx-h100", 21), ("torus", 20), ("hypercube", 1)])
def test_every_order_is_of_the_same_gpus(order, text, ranks):
    assert sorted(place(order, ranks, describe(text, ranks))) == list(range(ranks))


def test_round_robin_gives_each_server_one_rank_in_turn():
    assert place("round-robin", 6, describe("switch,nodes=3,gpus=2")).tolist() == [0, 2, 4, 1, 3, 5]
    assert place("round-robin", 5, describe("switch,nodes=3,gpus=2")).tolist() == [0, 2, 4, 1, 3]


def test_shuffled_is_the_same_every_time():
    topology = describe("torus", 27)
    assert place("shuffled", 27, topology).tolist() == place("shuffled", 27, topology).tolist()


def test_a_ring_on_a_fitted_torus_has_no_link_with_two_messages():
    topology = describe("torus,sides=4x5x2")
    fitted = place("walk", 40, topology)
    routes = topology.routes(fitted, np.roll(fitted, -1))
    assert (routes >= 0).sum(axis=1).tolist() == [1] * 40
    assert np.bincount(routes[routes >= 0]).max() == 1


def test_a_ring_gets_faster_when_its_ranks_are_fitted():
    """Before and after: a shuffled ring on a torus shares links, the snake does not."""
    topology = describe("torus,sides=4x4x4")
    before = priced_in("shuffled", "ring_all_reduce", GB, 64, topology)
    order, after = fit("ring_all_reduce", GB, 64, topology)
    assert order == "walk"
    assert after.time < before.time / 2
    assert after.time == pytest.approx(126 * (GB / 64 / 50e9 + 14.25e-6))
    assert after.sent.tolist() == before.sent.tolist()


def test_a_tree_gets_faster_when_its_ranks_are_fitted():
    """Packed, the 32 messages of the last round of a broadcast all go 4 rows far; spread, to the next node."""
    topology = describe("torus,sides=8x8")
    before = priced_in("packed", "binomial_broadcast", GB, 64, topology)
    order, after = fit("binomial_broadcast", GB, 64, topology)
    assert order == "spread"
    assert after.time < before.time / 2
    assert after.time == pytest.approx(6 * GB / 50e9, rel=0.001)  # no link has two messages in any round


def test_doubling_is_not_fitted_by_the_walk_that_fits_a_ring():
    topology = describe("torus,sides=8x8")
    assert fit("recursive_doubling_all_reduce", GB, 64, topology)[0] != "walk"
    assert fit("ring_all_reduce", GB, 64, topology)[0] == "walk"


def test_spread_turns_the_bits_of_the_ranks_round():
    assert place("spread", 8, describe("article", 8)).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert place("spread", 3, describe("article", 3)).tolist() == [0, 2, 1]


def test_round_robin_over_servers_with_one_nic_is_slower_than_packed():
    topology = describe("switch,nodes=4,gpus=8,nics=1")
    packed, spread = (priced_in(order, "ring_all_reduce", GB, 32, topology).time for order in ("packed", "round-robin"))
    assert spread > 7 * packed


def test_an_algorithm_that_asks_for_the_nodes_is_told_them_in_the_order_of_the_ranks():
    topology = describe("switch,nodes=2,gpus=2")
    for order, nodes in (("packed", (0, 0, 1, 1)), ("round-robin", (0, 1, 0, 1))):
        assert priced_in(order, "hierarchical_all_reduce", GB, 4, topology).options["nodes"] == nodes


@pytest.mark.parametrize("order, ranks, words", [
    ("best", 4, "expected one of packed, round-robin"),
    ("packed", 0, "0 ranks on 8 GPUs"),
    ("packed", 9, "9 ranks on 8 GPUs.*say more nodes, or fewer ranks"),
])
def test_mistakes_are_answered_with_what_was_expected(order, ranks, words):
    with pytest.raises(ValueError, match=words):
        place(order, ranks, describe("article", 8))
