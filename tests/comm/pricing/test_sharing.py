"""Max-min fairness on examples counted by hand, and its definition on random ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comm.pricing.sharing import finish, rates, ways


def shares(routes, bandwidth):
    """Rates of messages, each given as the list of its links."""
    flows = np.repeat(np.arange(len(routes)), [len(route) for route in routes])
    links = np.array([link for route in routes for link in route], int)
    return rates(ways(flows, links), np.array(bandwidth, float), len(routes))


def padded(routes):
    width = max(map(len, routes), default=0)
    return np.array([route + [-1] * (width - len(route)) for route in routes], int).reshape(len(routes), width)


def test_messages_on_one_link_get_equal_shares():
    assert shares([[0], [0], [0]], [12]).tolist() == [4, 4, 4]


def test_bertsekas_and_gallagers_line_of_links():
    """One long message over links of 1, 1 and 2, one short one on each: 1/2, 1/2, 1/2 and the rest, 3/2."""
    assert shares([[0, 1, 2], [0], [1], [2]], [1, 1, 2]).tolist() == [0.5, 0.5, 0.5, 1.5]


def test_a_narrow_link_leaves_its_messages_share_elsewhere_to_others():
    """Link 0 carries 9 for three; link 1 has 10, of which message 2 can use 3 only: message 3 gets 7."""
    assert shares([[0], [0], [0, 1], [1]], [9, 10]).tolist() == [3, 3, 3, 7]


def test_bottlenecks_that_depend_on_one_another_are_found_in_order():
    """Link 0: 2 for a and b, 1 each; link 1: 4, less b's 1, is 3 for c; link 2: 10, less c's 3, is 7 for d."""
    assert shares([[0], [0, 1], [1, 2], [2]], [2, 4, 10]).tolist() == [1, 1, 3, 7]


def test_a_message_on_no_link_has_no_rate():
    assert shares([[], [0]], [5]).tolist() == [0, 5]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_message_is_held_back_by_a_full_link_on_which_nobody_is_faster(data):
    links = data.draw(st.integers(1, 6))
    bandwidth = np.array(data.draw(st.lists(st.integers(1, 9), min_size=links, max_size=links)), float)
    routes = data.draw(st.lists(st.sets(st.integers(0, links - 1), min_size=1).map(list), min_size=1, max_size=8))
    rate = shares(routes, bandwidth)
    load = np.zeros(links)
    for route, r in zip(routes, rate):
        load[route] += r
    assert (load <= bandwidth * (1 + 1e-9)).all()
    for route, r in zip(routes, rate):
        assert any(load[link] >= bandwidth[link] * (1 - 1e-9)
                   and all(r >= other * (1 - 1e-9) for way, other in zip(routes, rate) if link in way)
                   for link in route)


def test_bandwidth_that_a_finished_message_leaves_is_shared_anew():
    """10 and 30 bytes on a link of 2: 1 each until 10 s, then the rest of 20 at 2: 20 s."""
    assert finish(padded([[0], [0]]), np.array([10, 30]), np.array([2.0])) == pytest.approx([10, 20], rel=1e-8)


def test_a_message_goes_faster_twice_when_others_end():
    """On a link of 6: 6, 12, 18 bytes. 2 each to 3 s; 3 each (6 left, 12 left) to 5 s; the last 6 at 6: 6 s."""
    ends = finish(padded([[0], [0], [0]]), np.array([6, 12, 18]), np.array([6.0]))
    assert ends == pytest.approx([3, 5, 6], rel=1e-8)


def test_empty_messages_and_messages_on_no_link_arrive_at_once():
    assert finish(padded([[0], [0], []]), np.array([0, 8, 5]), np.array([4.0])).tolist() == [0, 2, 0]
    assert finish(np.empty((0, 3), int), np.empty(0), np.array([1.0])).tolist() == []
    assert finish(np.empty((2, 0), int), np.ones(2), np.array([1.0])).tolist() == [0, 0]


def test_every_byte_takes_its_time_on_the_narrowest_link():
    """A star's link is busy from the first byte to the last, however the sizes differ."""
    sizes = np.arange(1.0, 50)
    ends = finish(np.zeros((49, 1), int), sizes, np.array([7.0]))
    assert ends.max() == pytest.approx(sizes.sum() / 7, rel=1e-8)
    assert (np.diff(ends) > 0).all()


def test_a_grain_changes_little():
    generator = np.random.default_rng(3)
    routes = generator.integers(0, 40, (300, 3))
    sizes, bandwidth = generator.uniform(1, 9, 300), generator.uniform(1, 3, 40)
    exact, coarse = (finish(routes, sizes, bandwidth, grain) for grain in (0, 0.01))
    assert len(np.unique(exact)) == 300
    assert np.abs(coarse / exact - 1).max() < 0.01


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_link_carries_more_than_it_can_and_nobody_waits_without_need(data):
    """Each message ends no sooner than alone, the last no sooner than the fullest link allows, and no later than if
    all went one after another."""
    links = data.draw(st.integers(1, 5))
    bandwidth = np.array(data.draw(st.lists(st.integers(1, 9), min_size=links, max_size=links)), float)
    routes = data.draw(st.lists(st.sets(st.integers(0, links - 1), min_size=1).map(list), min_size=1, max_size=7))
    sizes = np.array(data.draw(st.lists(st.integers(1, 50), min_size=len(routes), max_size=len(routes))), float)
    ends = finish(padded(routes), sizes, bandwidth)
    alone = np.array([size / bandwidth[route].min() for size, route in zip(sizes, routes)])
    carried = np.zeros(links)
    for route, size in zip(routes, sizes):
        carried[route] += size
    assert (ends >= alone * (1 - 1e-6)).all()
    assert ends.max() >= (carried / bandwidth).max() * (1 - 1e-6)
    assert ends.max() <= alone.sum() * (1 + 1e-6)
