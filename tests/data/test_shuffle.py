import numpy as np
import pytest

from data.shuffle import mix, permute


def order(count, key):
    return permute(np.arange(count), count, mix(key))


@pytest.mark.parametrize("count", [*range(1, 70), 255, 256, 257, 1000, 4097])
def test_every_place_is_taken_once(count):
    assert np.array_equal(np.sort(order(count, count)), np.arange(count))


def test_one_place_alone_is_what_it_is_in_the_whole():
    whole = order(1000, 7)
    for place in (0, 1, 500, 999):
        assert permute(np.array([place]), 1000, mix(7)) == whole[place]


def test_each_place_may_have_its_own_key():
    places, keys = np.array([3, 3, 5]), np.concatenate([mix(1), mix(2), mix(1)])
    assert permute(places, 100, keys).tolist() == [order(100, 1)[3], order(100, 2)[3], order(100, 1)[5]]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 16, 17])
def test_each_place_gets_each_thing_equally_often_over_the_keys(count):
    keys = mix(np.arange(50_000))
    for place in {0, count - 1}:
        seen = np.bincount(permute(np.full(50_000, place), count, keys), minlength=count)
        expected = 50_000 / count
        chi_squared = np.sum((seen - expected)**2 / expected)
        assert chi_squared < count - 1 + 4 * np.sqrt(2 * (count - 1))             # mean and deviation


def test_neighbours_do_not_stay_neighbours():
    steps = np.diff(order(10_000, 3))
    assert np.mean(np.abs(steps)) == pytest.approx(10_000 / 3, rel=0.05)       # of a random order
    assert len(np.unique(steps)) > 5000


def test_huge_counts_need_no_memory():
    places = permute(np.arange(1000), 10**15, mix(1))
    assert len(np.unique(places)) == 1000 and places.min() >= 0 and places.max() < 10**15


def test_mix_takes_any_seed_and_is_one_to_one_on_what_we_see():
    assert len(np.unique(mix(np.arange(100_000)))) == 100_000
    assert mix(-1) == mix(2**64 - 1) != mix(1)
    assert mix(0)[0] == 0xE220A8397B1DCDAF          # the first output of SplitMix64 seeded with 0
