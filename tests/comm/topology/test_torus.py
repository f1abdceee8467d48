"""Torus and hypercube: distances, the middle, and walks round them."""

import numpy as np
import pytest

from comm.topology import describe
from comm.topology.torus import gray_walk, z_order
from tests.comm.topology.checks import check_routes, crossing, hops

RATE = 50e9


@pytest.mark.parametrize("sides", [(6,), (4, 4), (3, 5), (2, 3, 4), (4, 4, 4)])
def test_a_route_goes_the_shorter_way_round_in_every_direction(sides):
    _, source, target, routes = check_routes(f"torus,sides={'x'.join(map(str, sides))}")
    distance = 0
    for a, b, side in zip(np.unravel_index(source, sides), np.unravel_index(target, sides), sides):
        distance = distance + np.minimum((a - b) % side, (b - a) % side)
    assert (hops(routes) == distance).all()


def test_routes_of_a_hypercube_are_as_long_as_the_bits_that_differ():
    _, source, target, routes = check_routes("hypercube,nodes=32")
    assert (hops(routes) == [(int(a) ^ int(b)).bit_count() for a, b in zip(source, target)]).all()


def test_the_middle_of_a_torus_is_crossed_by_two_links_of_every_row():
    topology = describe("torus,sides=4x4x4")
    assert crossing(topology, "direction 1", np.arange(64) < 32) == 2 * 16 * RATE
    topology = describe("hypercube,nodes=16")
    assert crossing(topology, "torus link", np.arange(16) < 8) == 8 * RATE
    assert len(topology.tails) == 16 * 4


@pytest.mark.parametrize("sides", [(6,), (7,), (4, 4), (4, 5), (5, 4), (2, 3, 5), (3, 3), (5, 5, 5), (2,) * 5, (1, 4)])
def test_the_walk_takes_one_hop_a_step_and_comes_home(sides):
    place = gray_walk(sides)
    assert sorted(place) == list(range(np.prod(sides)))
    walk = np.argsort(place)
    at = np.array(np.unravel_index(np.append(walk, walk[0]), sides))
    apart = np.abs(np.diff(at, axis=1))
    assert (np.minimum(apart, np.array(sides)[:, None] - apart).sum(axis=0) == 1).all()


@pytest.mark.parametrize("sides", [(3, 5), (5, 3), (3, 5, 7)])
def test_only_the_last_step_home_is_longer_on_odd_and_different_sides(sides):
    walk = np.argsort(gray_walk(sides))
    at = np.array(np.unravel_index(walk, sides))
    assert (np.abs(np.diff(at, axis=1)).sum(axis=0) == 1).all()


def test_the_walk_of_a_hypercube_is_grays_code():
    assert np.argsort(gray_walk((2, 2, 2))).tolist() == [0, 1, 3, 2, 6, 7, 5, 4]


def test_blocks_are_boxes():
    order = np.argsort(z_order((4, 4)))
    for size, box in ((4, (2, 2)), (8, (2, 4))):
        for first in range(0, 16, size):
            rows, columns = np.unravel_index(order[first:first + size], (4, 4))
            assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == box
    assert sorted(z_order((3, 5, 2))) == list(range(30))
