"""Prices against the closed forms of alpha, beta and gamma, and against the article's sums (FACTS F34-F36)."""

import numpy as np
import pytest

from comm import traffic
from comm.algorithms import ALGORITHMS
from comm.pricing.effort import TooMuch, check_effort
from comm.pricing.placement import place
from comm.pricing.price import BUS_FACTORS, price
from comm.simulate import prove
from comm.topology import describe

GB = 10 ** 9
ALPHA, BETA = 2e-6, 1 / 50e9
PLAIN = "switch,gpus=1,pcie=none,nic=50GB/s@2us,hop=0"  # alpha and beta, and nothing else


def plain(name, message, ranks, gamma=0.0, **options):
    return price(name, message, ranks, describe(PLAIN, ranks), gamma=gamma, **options)


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 33])
@pytest.mark.parametrize("message", [0, 4, 1001, 10 ** 9])
def test_a_ring_on_one_switch_costs_its_closed_form(ranks, message):
    gamma = 1e-11
    found = plain("ring_all_reduce", message, ranks, gamma)
    share = (ranks - 1) * message / ranks
    assert found.time == pytest.approx(2 * (ranks - 1) * ALPHA + 2 * share * BETA + share * gamma, rel=1e-12)
    assert found.rounds == 2 * (ranks - 1)
    assert [phase.adds for phase in found.phases] == [True, False]


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_recursive_doubling_on_one_switch_costs_its_closed_form(ranks):
    rounds = ranks.bit_length() - 1
    found = plain("recursive_doubling_all_reduce", 10 ** 6, ranks, gamma=1e-11)
    assert found.time == pytest.approx(rounds * (ALPHA + 10 ** 6 * (BETA + 1e-11)), rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 5, 6])
def test_all_messages_of_a_round_share_the_link_that_they_end_on(ranks):
    """direct_gather: N-1 messages of M/N into one link, and alpha for each of them."""
    found = plain("direct_gather", 10 ** 6, ranks)
    assert found.time == pytest.approx((ranks - 1) * (ALPHA + 10 ** 6 / ranks * BETA), rel=1e-12)


def test_a_round_ends_with_its_slowest_message():
    """Binomial broadcast on two servers of two: round 2 has one message inside a server and one between."""
    topology = describe("switch,nodes=2,gpus=2,pcie=none,nvlink=100GB/s@1us,nic=50GB/s@2us,hop=0")
    found = price("binomial_broadcast", 10 ** 6, 4, topology)
    assert [phase.each for phase in found.phases] == pytest.approx([1e-6 + 1e-5, 2e-6 + 2e-5])


def test_messages_contend_on_an_oversubscribed_spine():
    """Two leaves of four; every rank swaps with its partner on the other leaf: 4 : 1 makes it 4 times as slow."""
    times = []
    for ratio in (1, 2, 4):
        topology = describe(f"leaf-spine,gpus=1,pcie=none,nodes=8,leaf=4,nic=50GB/s@2us,hop=0,oversubscription={ratio}")
        times.append(price("recursive_doubling_all_reduce", 10 ** 6, 8, topology).phases[-1].each)
    assert times == pytest.approx([ALPHA + ratio * 10 ** 6 * BETA for ratio in (1, 2, 4)])


def test_the_ring_crosses_each_leaf_once_so_oversubscription_does_not_slow_it():
    tight, wide = (describe(f"leaf-spine,gpus=1,pcie=none,nodes=16,leaf=4,oversubscription={r}") for r in (4, 1))
    assert price("ring_all_reduce", GB, 16, tight).time == pytest.approx(price("ring_all_reduce", GB, 16, wide).time)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_bytes_and_messages_are_those_of_the_proof(name, ranks):
    for options in ALGORITHMS[name].variants(ranks):
        chunks = ALGORITHMS[name].chunks(ranks, **options)
        found, proved = plain(name, 1000 * chunks, ranks, **options), prove(name, ranks, **options)
        assert found.sent.tolist() == (1000 * proved.sent).tolist()
        assert found.messages.tolist() == proved.messages.tolist()
        assert found.rounds == proved.rounds


def test_links_carry_what_ranks_send():
    topology = describe("nodes=4,gpus=2,leaf=2")
    found = price("ring_all_reduce", 8000, 8, topology)
    total = 2 * 7 * 8000
    assert found.sent.sum() == total
    assert found.tiers["NVLink"] == pytest.approx(2 * total / 2)  # half of all hops stay inside, over two links each
    assert found.tiers["NIC"] == found.tiers["PCIe"] == pytest.approx(2 * total / 2)
    link, carried, busy = found.busiest
    assert topology.tiers[topology.tier[link]] in ("NIC", "leaf-spine")
    assert carried == pytest.approx(2 * 7 * 1000)
    assert 0 < busy < 1


def test_case_106_bandwidths_are_shown_beside_what_was_really_sent():
    """Recursive doubling sends more than a ring for the same busbw, which counts what any algorithm must move."""
    ring, doubling = plain("ring_all_reduce", GB, 8), plain("recursive_doubling_all_reduce", GB, 8)
    for found in (ring, doubling):
        assert found.algbw == GB / found.time
        assert found.busbw == found.algbw * 2 * 7 / 8
    assert ring.sent.max() == pytest.approx(2 * 7 / 8 * GB)
    assert doubling.sent.max() == 3 * GB
    assert ring.sent.max() / ring.time == pytest.approx(ring.busbw)
    assert doubling.sent.max() / doubling.time > 1.5 * doubling.busbw


def test_bus_factors_are_those_of_nccl_tests():
    assert {name: factor(4) for name, factor in BUS_FACTORS.items()} == {
        "all_reduce": 1.5, "reduce_scatter": 0.75, "all_gather": 0.75, "all_to_all": 0.75, "gather": 0.75,
        "scatter": 0.75, "broadcast": 1, "reduce": 1, "barrier": 0}
    assert BUS_FACTORS.keys() == {algorithm.collective for algorithm in ALGORITHMS.values()} | {"all_reduce"}


def test_fact_34_copies_to_everyone_ring_chain_and_star_move_the_articles_bytes():
    for ranks in (2, 5, 12):
        found = {name: plain(f"{name}_all_reduce", GB, ranks) for name in ("naive", "ring", "chain", "star")}
        assert found["naive"].sent.sum() == traffic.copies_to_everyone(GB, ranks)
        assert found["ring"].sent.sum() == pytest.approx(traffic.ring(GB, ranks))
        assert found["ring"].sent == pytest.approx(np.full(ranks, traffic.ring_per_rank(GB, ranks)))
        assert found["chain"].sent.sum() == 2 * traffic.chain(GB, ranks)
        star = found["star"]
        master = star.topology.routes([1, 0], [0, 1])
        assert star.carried[master[0, 1]] == star.carried[master[1, 0]] == traffic.star(GB, ranks)


def test_fact_35_350_gigabytes_on_64_ranks():
    """1,411,200 GB against 44,100; 882 s by star and chain against 13.78 by ring."""
    topology = describe("article,nic=ndr@0", 64)
    found = {name: price(f"{name}_all_reduce", 350 * GB, 64, topology) for name in ("naive", "ring", "chain", "star")}
    assert found["naive"].sent.sum() == 1_411_200 * GB
    assert found["ring"].sent.sum() == 44_100 * GB
    assert found["ring"].sent.tolist() == [689.0625 * GB] * 64
    assert found["ring"].time == pytest.approx(traffic.ring_time(7, 64)) == pytest.approx(13.78125)
    assert found["star"].time == found["chain"].time == pytest.approx(882)
    assert found["star"].busiest[1] == 22_050 * GB
    assert found["naive"].time == pytest.approx(63 * 7)  # every rank's link is busy with N-1 messages each way


def test_fact_36_a_ring_takes_less_than_twice_the_time_of_one_message():
    once = GB * BETA
    ring, chain = plain("ring_all_reduce", GB, 64), plain("chain_all_reduce", GB, 64)
    assert ring.time == pytest.approx(1.96875 * once + 126 * ALPHA)
    assert chain.time == pytest.approx(126 * (once + ALPHA))
    assert plain("chain_reduce", GB, 64).time == pytest.approx(63 * (once + ALPHA))


def test_a_ring_of_ten_thousand_ranks_is_one_price():
    """19,998 rounds, of which one is looked at: so it takes seconds, on any cluster."""
    for text in ("article", "dragonfly"):
        found = price("ring_all_reduce", 350 * GB, 10_000, describe(text, 10_000))
        assert found.rounds == 19_998
        assert found.priced == 10_000
        assert found.sent.sum() == pytest.approx(traffic.ring(350 * GB, 10_000))


def test_pricing_that_would_take_minutes_is_refused_with_the_number():
    with pytest.raises(TooMuch, match="naive_all_reduce on 10,000 ranks takes about 1e[+]08 messages to route"):
        price("naive_all_reduce", GB, 10_000, describe("article", 10_000))
    with pytest.raises(TooMuch, match="pairwise_all_to_all on 5,000 ranks.*messages to route"):
        check_effort("pairwise_all_to_all", 5000)
    for name in ("ring_all_reduce", "recursive_doubling_all_reduce", "binomial_broadcast", "dissemination_barrier"):
        check_effort(name, 10_000)


def test_one_rank_and_no_bytes_cost_nothing_or_latency_only():
    alone = plain("ring_all_reduce", GB, 1)
    assert (alone.time, alone.rounds, alone.algbw, alone.busbw, alone.busiest) == (0, 0, 0, 0, None)
    empty = plain("ring_all_reduce", 0, 4)
    assert empty.time == pytest.approx(6 * ALPHA)
    assert empty.busiest is None
    barrier = plain("dissemination_barrier", 0, 5)
    assert barrier.time == pytest.approx(3 * ALPHA)


@pytest.mark.parametrize("arguments, words", [
    ({"ranks": 0}, "expected 1 or more"),
    ({"ranks": 9}, "9 ranks on 8 GPUs"),
    ({"message": -1}, "expected nothing below 0"),
    ({"gamma": -1.0}, "expected nothing below 0"),
    ({"placement": [0, 1, 2]}, "expected a GPU for each of 4 ranks"),
    ({"placement": [0, 1, 2, 2]}, "two ranks share a GPU"),
    ({"placement": [0, 1, 2, 8]}, "expected 0 to 7"),
    ({"segments": 2}, "ring_all_reduce takes no segments; it takes no options"),
])
def test_mistakes_are_answered_with_what_was_expected(arguments, words):
    with pytest.raises(ValueError, match=words):
        price("ring_all_reduce", **{"message": 8, "ranks": 4, "topology": describe("article", 8), **arguments})


def test_progress_is_told_now_and_then():
    told = []
    price("ring_all_reduce", GB, 100, describe("article", 100), progress=lambda *numbers: told.append(numbers))
    assert told == [(64, 198), (128, 198), (192, 198)]


def test_a_placement_moves_the_messages_to_other_links():
    topology = describe("nodes=2,gpus=4,leaf=4,oversubscription=4")
    packed = price("ring_all_reduce", GB, 8, topology, place("packed", 8, topology))
    spread = price("ring_all_reduce", GB, 8, topology, place("round-robin", 8, topology))
    assert packed.tiers["leaf-spine"] < spread.tiers["leaf-spine"]
    assert packed.time < 0.5 * spread.time
