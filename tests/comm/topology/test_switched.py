"""Networks of switches: lengths of routes, and how much crosses the middle."""

import numpy as np
import pytest

from comm.topology import describe
from tests.comm.topology.checks import check_routes, crossing, hops, numbers_of

BARE = "gpus=1,pcie=none"  # so that a route is its network part
RATE = 50e9


def test_a_leaf_and_spine_network_is_two_or_four_links_long():
    _, source, target, routes = check_routes(f"leaf-spine,{BARE},nodes=12,leaf=4")
    same = source // 4 == target // 4
    assert (hops(routes) == np.where(source == target, 0, np.where(same, 2, 4))).all()


def test_a_fat_tree_is_two_four_or_six_links_long_and_its_middle_carries_half_of_all_nics():
    topology, source, target, routes = check_routes(f"fat-tree,{BARE},nodes=16")  # k = 4: 16 plugs for NICs
    edge, pod = source // 2 == target // 2, source // 4 == target // 4
    assert (hops(routes) == np.where(source == target, 0, np.where(edge, 2, np.where(pod, 4, 6)))).all()
    inside = np.zeros(max(topology.heads) + 1, bool)
    inside[numbers_of(topology, "aggregation switch")[:4]] = True  # of pods 0 and 1
    assert len(numbers_of(topology, "core switch")) == 4
    assert crossing(topology, "aggregation-core", inside) == 8 * RATE


def test_a_fat_tree_carries_any_shift_at_full_rate():
    """D-mod-k routing: all send k places on, and no link carries two messages."""
    topology = describe(f"fat-tree,{BARE},nodes=16")
    for shift in range(1, 16):
        routes = topology.routes(np.arange(16), (np.arange(16) + shift) % 16)
        assert np.bincount(routes[routes >= 0]).max() == 1


def test_a_dragonfly_takes_at_most_one_link_between_groups_and_one_inside_each():
    topology, source, target, routes = check_routes(f"dragonfly,{BARE},nodes=72,leaf=2,routers=4")
    leaf, group = (lambda p: p // 2), (lambda p: p // 8)
    tiers = {name: (topology.tier[routes] == i) & (routes >= 0) for i, name in enumerate(topology.tiers)}
    between = tiers["between groups"].sum(axis=1)
    assert (between == (group(source) != group(target))).all()
    inside = tiers["inside a group"].sum(axis=1)
    assert inside.max() == 2
    near = group(source) == group(target)
    assert (inside[near] == (leaf(source) != leaf(target))[near]).all()
    assert hops(routes).max() == 5


def test_the_groups_of_a_dragonfly_are_joined_by_one_link_for_each_pair():
    topology = describe(f"dragonfly,{BARE},nodes=72,leaf=2,routers=4")  # 9 groups = 4 routers x 2 links + 1
    of_tier = topology.tier == topology.tiers.index("between groups")
    leaves = numbers_of(topology, "leaf")
    pairs = {((tail - leaves[0]) // 4, (head - leaves[0]) // 4)
             for tail, head in zip(topology.tails[of_tier], topology.heads[of_tier])}
    assert pairs == {(a, b) for a in range(9) for b in range(9) if a != b}
    assert of_tier.sum() == 72
    assert np.bincount(topology.tails[of_tier])[leaves].tolist() == [2] * 36  # h = 2 for every leaf


def test_a_dragonfly_without_numbers_lets_the_nics_be_the_limit():
    """Uniform traffic: every group sends to every other as much as its NICs can."""
    topology = describe(f"dragonfly,{BARE},nodes=1152,leaf=16")
    groups = len(numbers_of(topology, "leaf")) // 6
    inside = np.zeros(max(topology.heads) + 1, bool)
    inside[numbers_of(topology, "leaf")[:6]] = True
    assert groups == 12
    assert crossing(topology, "between groups", inside) >= 6 * 16 * RATE


def test_a_flattened_butterfly_takes_one_hop_for_each_direction_that_differs():
    topology, source, target, routes = check_routes(f"butterfly,{BARE},nodes=32,leaf=2,sides=4x4")
    a, b = np.divmod(source // 2, 4), np.divmod(target // 2, 4)
    differ = (a[0] != b[0]).astype(int) + (a[1] != b[1])
    assert (hops(routes) == np.where(source == target, 0, 2 + differ)).all()
    inside = np.zeros(max(topology.heads) + 1, bool)
    inside[numbers_of(topology, "switch")[:8]] = True  # two of the four rows
    assert crossing(topology, "direction 1", inside) == 4 * 2 * 2 * RATE
    assert crossing(topology, "direction 2", inside) == 0


@pytest.mark.parametrize("text", ["switch", "leaf-spine,leaf=4", "fat-tree", "dragonfly,leaf=2", "butterfly,leaf=2"])
def test_every_cable_has_two_ways(text):
    topology = describe(f"{text},{BARE}", 24)
    ways = sorted(zip(topology.tails.tolist(), topology.heads.tolist()))
    assert ways == sorted(zip(topology.heads.tolist(), topology.tails.tolist()))
    assert len(set(ways)) == len(ways)
