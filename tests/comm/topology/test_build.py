"""Clusters: every route is a way, servers and NICs are where the description puts them."""

import numpy as np
import pytest

from comm.topology import KINDS, PRESETS, describe
from tests.comm.topology.checks import check_routes, crossing, hops, numbers_of


@pytest.mark.parametrize("text", [*PRESETS, *KINDS])
@pytest.mark.parametrize("ranks", [1, 2, 7, 24, 72])
def test_every_route_is_a_way_from_its_source_to_its_target(text, ranks):
    topology, source, target, routes = check_routes(text, ranks)
    assert topology.gpus >= ranks
    assert ((hops(routes) == 0) == (source == target)).all()


@pytest.mark.parametrize("text", [
    "nodes=5,gpus=3,leaf=4,oversubscription=3", "nodes=3,gpus=4,nics=2", "nodes=3,gpus=5,nics=2,rails=1,leaf=2",
    "fat-tree,nodes=17,gpus=1", "fat-tree,nodes=3,gpus=2,oversubscription=2", "dragonfly,nodes=9,leaf=2,gpus=1",
    "dragonfly,nodes=30,gpus=1,leaf=2,routers=3", "dragonfly,nodes=8,gpus=1,leaf=1,routers=1",
    "butterfly,nodes=12,gpus=2,leaf=2,sides=2x3x2", "butterfly,nodes=8,gpus=1,sides=4", "torus,sides=5",
    "torus,sides=3x1x4", "torus,sides=2x2,gpus=3", "hypercube,nodes=8,gpus=2", "torus,sides=1",
    "switch,nodes=2,gpus=4,pcie=none",
])
def test_odd_clusters_have_routes_too(text):
    check_routes(text)


def test_the_articles_leaves_hold_two_servers_of_eight_gpus_with_a_nic_each():
    topology = describe("dragonfly", 128)
    nics, leaves = numbers_of(topology, "NIC"), numbers_of(topology, "leaf")
    assert topology.gpus == len(nics) == 128
    plugged = topology.heads[np.isin(topology.tails, nics) & np.isin(topology.heads, leaves)]
    assert np.unique(plugged, return_counts=True)[1].tolist() == [16] * 8
    assert np.isin(plugged, leaves).all()
    assert topology.node.tolist() == [gpu // 8 for gpu in range(128)]
    assert topology.bandwidth[0] == 450e9


def test_gpus_of_a_server_meet_over_nvlink_only():
    topology, source, target, routes = check_routes("dgx-h100", 16)
    inside = (topology.node[source] == topology.node[target]) & (source != target)
    assert (hops(routes[inside]) == 2).all()
    assert [topology.tiers[t] for t in np.unique(topology.tier[routes[inside][routes[inside] >= 0]])] == ["NVLink"]
    assert "NVLink" not in {topology.tiers[t] for t in topology.tier[routes[~inside][routes[~inside] >= 0]]}


def test_nics_are_shared_where_there_are_fewer_than_gpus():
    topology = describe("switch,nodes=2,gpus=4,nics=2")
    nic = topology.tiers.index("NIC")
    out = [next(link for link in route if link >= 0 and topology.tier[link] == nic)
           for route in topology.routes([0, 1, 2, 3], [4, 4, 4, 4])]
    assert [topology.link(link) for link in out] == ["NIC 0 -> switch"] * 2 + ["NIC 1 -> switch"] * 2


def test_rails_bring_the_same_nics_of_all_servers_to_one_leaf():
    topology = describe("nodes=4,gpus=8,leaf=4,rails=1")
    same_rail, other_rail = topology.routes([0, 0], [8, 9])
    assert (hops(np.array([same_rail, other_rail])) == [4, 6]).all()


def test_oversubscription_is_the_ratio_of_what_enters_a_leaf_to_what_leaves_it():
    for leaf, ratio in ((16, 2), (16, 3), (5, 1), (4, 8)):
        topology = describe(f"nodes=8,gpus=8,leaf={leaf},oversubscription={ratio}")
        inside = np.zeros(len(topology.tails), bool)
        inside[numbers_of(topology, "leaf")[0]] = True
        assert crossing(topology, "leaf-spine", inside) == pytest.approx(leaf * 50e9 / ratio)


def test_latency_is_the_slowest_software_once_and_every_wire():
    topology = describe("nodes=4,gpus=2,leaf=2,hop=250ns")
    inside, same_leaf, far = topology.latency(topology.routes([0, 0, 0], [1, 2, 7]))
    assert inside == pytest.approx(3.4e-6)
    assert far == pytest.approx(14e-6 + 4 * 250e-9)
    assert same_leaf == far  # a leaf of two NICs is one server
    assert topology.latency(topology.routes([0], [0])) == 0


def test_routes_of_no_pair_and_of_no_gpu():
    topology = describe("torus", 8)
    assert topology.routes([], []).shape[0] == 0
    for pair in ((0, 8), (-1, 0)):
        with pytest.raises(ValueError, match="expected 0 to 7"):
            topology.routes(*pair)


def test_vertices_and_links_have_names():
    topology = describe("nodes=2,gpus=2,leaf=2")
    assert topology.vertex(0) == "GPU 0"
    assert topology.vertex(4) == "server 0"
    assert topology.link(0) == "GPU 0 -> server 0"
    with pytest.raises(ValueError, match="this cluster has"):
        topology.vertex(10 ** 6)


def test_clusters_of_ten_thousand_gpus_are_described_quickly_and_fit():
    for text in PRESETS:
        topology = describe(text, 10_000)
        assert 10_000 <= topology.gpus <= 16_384
        assert topology.routes(np.arange(9_999), np.arange(1, 10_000)).shape[0] == 9_999
