"""Random values are functions of names and coordinates: known answers, shards equal slices, distributions."""
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograd import streams
from autograd.backend import device, is_array, to_device, to_host, xp
from autograd.streams import keep_mask, key, normal, philox, uniform

ALL_ONES = 0xFFFFFFFF
KNOWN_ANSWERS = [                                       # Random123's kat_vectors, philox4x32 10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ALL_ONES,) * 4, (ALL_ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def scalar_philox(counter, key):
    """The paper's text, one counter, in Python's integers."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def within(count, probability, trials, sigmas=5):
    """Is a count of successes within 5 standard deviations of what the probability promises?"""
    return abs(count - trials * probability) <= sigmas * math.sqrt(trials * probability * (1 - probability))


@pytest.mark.parametrize("counter, stream, words", KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(counter, stream, words):
    assert scalar_philox(counter, stream) == words
    assert tuple(int(word) for word in philox(counter, stream)) == words


def test_philox_of_many_counters_is_philox_of_each():
    counters = np.random.default_rng(1).integers(0, 2**32, (4, 37), dtype=np.uint64)
    got = np.array([to_host(word) for word in philox([to_device(c) for c in counters], (7, 2**31 + 5))])
    for i in range(37):
        assert tuple(got[:, i].tolist()) == scalar_philox([int(c) for c in counters[:, i]], (7, 2**31 + 5))


def test_philox_broadcasts_counters_and_leaves_them_alone():
    rows, columns = to_device(np.arange(3)[:, None]), to_device(np.arange(5, dtype=np.uint64))
    words = philox((rows, columns, 9, 2**32 + 1), (1, 2))
    assert [word.shape for word in words] == [(3, 5)] * 4
    assert tuple(int(word[2, 4]) for word in words) == scalar_philox((2, 4, 9, 1), (1, 2))
    assert to_host(rows).ravel().tolist() == [0, 1, 2] and to_host(columns).tolist() == [0, 1, 2, 3, 4]


def test_keys_never_change():
    """Checkpoints hold seeds, not weights drawn later: another key would be another run."""
    assert key(0, "blocks.0.attention.query.weight", "normal") == (2385384530, 533339320)
    assert key(0, "x") != key(1, "x") != key(1, "y") != key(1, "y", "dropout")
    assert key(1, "2") != key(12, "") and key(np.int64(3), "x") == key(3, "x")
    assert key(-1, "x") != key(2**64 - 1, "x")
    with pytest.raises(TypeError):
        key(1.5, "x")


def test_values_never_change():
    drawn = [-0.7679512640402338, 0.3720700612626893, 1.3077006248382617, -0.9744157168938857]
    np.testing.assert_allclose(to_host(normal(1, "w", (4,), dtype="float64")), drawn, rtol=1e-12)
    np.testing.assert_array_equal(to_host(uniform(1, "w", (3,), dtype="float64")),
                                  [0.4677049465244636, 0.3838883455609903, 0.07566858234349638])
    mask = keep_mask(0.5, 1, "w", step=2, samples=[3, 4], positions=[5], channels=12)
    rows = ["".join("01"[int(keep)] for keep in row) for row in to_host(mask)[:, 0]]
    assert rows == ["111000001101", "000100110100"]


def test_an_element_is_its_lane_of_its_counter():
    k = key(5, "w", "uniform")
    got = to_host(uniform(5, "w", (3, 5), dtype="float64")).ravel()
    for i in range(15):
        assert got[i] == (scalar_philox((i // 4, 0, 0, 0), k)[i % 4] + 0.5) / 2**32
    k = key(5, "w", "normal")
    got = to_host(normal(5, "w", (3, 5), dtype="float64")).ravel()
    for i in range(15):
        words = scalar_philox((i // 4, 0, 0, 0), k)
        radius, angle = ((word + 0.5) / 2**32 for word in words[i % 4 // 2 * 2:][:2])
        turn = (math.cos, math.sin)[i % 2](2 * math.pi * angle)
        assert got[i] == pytest.approx(math.sqrt(-2 * math.log(radius)) * turn, rel=1e-12)


def test_counters_beyond_32_bits_use_the_second_word():
    """Element 2^34 is the first of counter 2^32: not drawn as a whole here (64 GiB)."""
    shape = (2**20, 2**16)
    got = to_host(uniform(5, "w", shape, dtype="float64", region=(slice(2**18, 2**18 + 1), slice(0, 4))))
    expected = [(word + 0.5) / 2**32 for word in scalar_philox((0, 1, 0, 0), key(5, "w", "uniform"))]
    assert got.ravel().tolist() == expected
    scattered = uniform(5, "w", shape, dtype="float64", region=([2**18], [3, 1]))
    assert to_host(scattered).ravel().tolist() == [expected[3], expected[1]]


def axis_part(size):
    part = st.slices(size) if size else st.just(slice(None))
    return st.one_of(part, st.lists(st.integers(0, size - 1), max_size=4)) if size else part


@st.composite
def regions(draw):
    shape = draw(st.lists(st.integers(0, 9), min_size=0, max_size=3).map(tuple))
    axes = draw(st.integers(0, len(shape)))
    return shape, tuple(draw(axis_part(size)) for size in shape[:axes])


def cut(whole, region):
    for axis, part in enumerate(region):
        whole = whole.take(np.arange(whole.shape[axis])[part], axis)
    return whole


@given(regions(), st.sampled_from([normal, uniform]), st.sampled_from(["float32", "float64"]))
def test_a_part_has_the_bits_of_the_whole(case, draw, dtype):
    shape, region = case
    whole = to_host(draw(3, "w", shape, dtype=dtype))
    part = draw(3, "w", shape, dtype=dtype, region=region)
    assert is_array(part) and part.dtype == dtype and whole.shape == shape
    np.testing.assert_array_equal(to_host(part), cut(whole, region))


@pytest.mark.parametrize("shape, region", [
    ((700, 301), (slice(123, 689),)),                               # rows of a vocabulary
    ((301, 700), (slice(None), slice(350, 700))),                   # columns
    ((301, 700), (slice(None), np.r_[0:100, 350:450, 600:700])),    # packed query, key, value
    ((5, 60000), (slice(2, 3), slice(17, 59999))),                  # within one row
    ((150001,), (slice(1, None, 3),)),
])
@pytest.mark.parametrize("draw", [normal, uniform])
def test_a_shard_of_many_tiles_has_the_bits_of_the_whole(shape, region, draw):
    whole = to_host(draw(3, "w", shape))
    np.testing.assert_array_equal(to_host(draw(3, "w", shape, region=region)), cut(whole, region))


def test_the_tile_does_not_change_a_bit(monkeypatch):
    drawn = []
    for tile in (1, 3, 2**14):
        monkeypatch.setattr(streams, "TILE", tile)
        drawn.append([normal(3, "w", (7, 5)), normal(3, "w", (7, 5), region=(slice(None), [4, 1])),
                      keep_mask(0.4, 3, "w", step=1, samples=[5, 2], positions=[9], channels=range(3, 17))])
    for values in zip(*drawn):
        for value in values[1:]:
            np.testing.assert_array_equal(to_host(value), to_host(values[0]))


def test_a_region_from_the_device_is_taken_too():
    whole = to_host(normal(3, "w", (4, 4)))
    got = normal(3, "w", (4, 4), region=(to_device(np.array([3, 0])),))
    np.testing.assert_array_equal(to_host(got), whole[[3, 0]])


@pytest.mark.parametrize("region, error, words", [
    ((slice(None),) * 3, ValueError, "region has 3 axes"),
    ((2,), TypeError, r"region\[0\]: expected a slice or a 1-d array of indices"),
    (([[0]],), TypeError, r"region\[0\]"),
    (([True, False],), TypeError, r"region\[0\]"),
    (([0.5],), TypeError, r"region\[0\]"),
    ((slice(None), [0, 4]), IndexError, r"region\[1\] reaches from 0 to 4, the axis has 4"),
    (([-1],), IndexError, r"region\[0\] reaches from -1 to -1"),
])
def test_a_region_that_does_not_fit_is_refused(region, error, words):
    with pytest.raises(error, match=words):
        normal(0, "w", (4, 4), region=region)


def test_shift_and_scale_are_applied_in_float64_and_rounded_once():
    z = to_host(normal(3, "w", (100,), dtype="float64"))
    got = to_host(normal(3, "w", (100,), std=0.02, mean=3.0))
    np.testing.assert_array_equal(got, (z * 0.02 + 3.0).astype("float32"))
    u = to_host(uniform(3, "w", (100,), dtype="float64"))
    got = to_host(uniform(3, "w", (100,), low=-2.0, high=6.0, dtype="float64"))
    np.testing.assert_array_equal(got, u * 8.0 - 2.0)
    assert not to_host(normal(3, "w", (9,), std=0.0)).any()


def test_narrow_floats_are_the_rounded_values():
    z = to_host(normal(3, "w", (64,), dtype="float64"))
    np.testing.assert_array_equal(to_host(normal(3, "w", (64,), dtype="float16")), z.astype("float16"))
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    np.testing.assert_array_equal(to_host(normal(3, "w", (64,), dtype=bfloat16)), z.astype(bfloat16))


def test_normal_values_are_normally_distributed():
    n = 200_000
    z = to_host(normal(11, "w", (n,), dtype="float64"))
    for power, moment, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((z**power).mean() - moment) < 5 * math.sqrt(variance / n)
    for edge in (-2.5, -1.0, -0.1, 0.0, 0.7, 1.9, 3.0):
        assert within((z < edge).sum(), (1 + math.erf(edge / math.sqrt(2))) / 2, n)
    assert abs(z).max() < 6.8


def test_uniform_values_are_uniformly_distributed_and_open():
    n = 200_000
    u = to_host(uniform(11, "w", (n,), dtype="float64"))
    assert u.min() > 0 and u.max() < 1
    for edge in (0.001, 0.1, 0.25, 0.5, 0.9):
        assert within((u < edge).sum(), edge, n)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5, 768])
def test_neighbours_are_not_correlated(lag):
    n = 100_000
    z = to_host(normal(11, "w", (n + lag,), dtype="float64"))
    for left, right in [(z[:n], z[lag:]), (z[:n]**2 - 1, z[lag:]**2 - 1)]:
        assert abs((left * right).mean()) < 5 * (left * right).std() / math.sqrt(n)


def test_seeds_names_and_uses_give_unrelated_streams():
    n = 50_000
    streams_drawn = [to_host(normal(seed, name, (n,), dtype="float64"))
                     for seed, name in [(0, "a"), (1, "a"), (0, "b"), (0, "aa")]]
    streams_drawn.append(to_host(uniform(0, "a", (n,), dtype="float64")) * math.sqrt(12) - math.sqrt(3))
    for i, left in enumerate(streams_drawn):
        for right in streams_drawn[:i]:
            assert abs((left * right).mean()) < 5 / math.sqrt(n)


@pytest.mark.skipif(device != "cpu", reason="counts the memory of NumPy")
@pytest.mark.parametrize("region", [None, (slice(None), slice(0, 1024))])
def test_drawing_needs_little_more_memory_than_the_result(region):
    tracemalloc.start()
    try:
        y = normal(0, "w", (1024, 2048), region=region)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < y.nbytes + 4 * 2**20


def test_an_empty_shape_gives_an_empty_array_and_a_scalar_one_value():
    assert normal(0, "w", (3, 0)).shape == (3, 0)
    assert normal(0, "w", ()).shape == ()
    assert float(normal(0, "w", ())) == float(normal(0, "w", (5,))[0])


def expected_keep(p, seed, name, step, sample, position, channel):
    word = scalar_philox((channel // 4, position % 2**32, sample % 2**32, step), key(seed, name, "dropout"))
    return word[channel % 4] >= round(p * 2**32)


def test_a_mask_is_a_function_of_name_step_sample_position_and_channel():
    samples, positions = [2**32 + 7, 0, 3], [11, 2]
    mask = to_host(keep_mask(0.3, 5, "d", step=np.int32(9), samples=samples, positions=positions, channels=6))
    assert mask.shape == (3, 2, 6) and mask.dtype == bool
    for b, sample in enumerate(samples):
        for t, position in enumerate(positions):
            for c in range(6):
                assert mask[b, t, c] == expected_keep(0.3, 5, "d", 9, sample, position, c)


WHOLE = {"p": 0.4, "seed": 5, "name": "d", "step": 3}


@given(st.slices(6), st.slices(10), st.slices(23))
def test_a_slice_of_samples_positions_channels_is_a_slice_of_the_mask(b, t, c):
    samples, positions, channels = np.arange(100, 106), np.arange(10), range(23)
    whole = to_host(keep_mask(**WHOLE, samples=samples, positions=positions, channels=23))
    part = keep_mask(**WHOLE, samples=samples[b], positions=positions[t], channels=channels[c])
    np.testing.assert_array_equal(to_host(part), whole[b, t, c])


@pytest.mark.parametrize("channels", [[5], [22, 0, 7, 7], np.array([9, 10, 11]), [], range(20, 3, -4)])
def test_channels_may_be_any_numbers(channels):
    whole = to_host(keep_mask(**WHOLE, samples=[1, 2], positions=[0, 4, 5], channels=23))
    part = to_host(keep_mask(**WHOLE, samples=[1, 2], positions=[0, 4, 5], channels=channels))
    np.testing.assert_array_equal(part, whole[:, :, np.array(channels, int)])


def test_positions_may_differ_between_samples():
    positions = np.array([[0, 1, 2], [7, 0, 3]])
    mask = to_host(keep_mask(**WHOLE, samples=[4, 9], positions=positions, channels=5))
    for b, sample in enumerate([4, 9]):
        alone = keep_mask(**WHOLE, samples=[sample], positions=positions[b], channels=5)
        np.testing.assert_array_equal(mask[b], to_host(alone)[0])


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_masks_may_be_empty(shape):
    samples, positions = np.arange(shape[0]), np.arange(shape[1])
    assert keep_mask(**WHOLE, samples=samples, positions=positions, channels=shape[2]).shape == shape


@pytest.mark.parametrize("p", [0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
def test_the_share_kept_is_one_minus_p(p):
    mask = to_host(keep_mask(p, 1, "d", step=0, samples=np.arange(8), positions=np.arange(50), channels=200))
    assert within(mask.sum(), 1 - p, mask.size)
    for axis in range(3):                         # no sample, position or channel is favoured
        counts = np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1)
        assert all(within(row.sum(), 1 - p, row.size) for row in counts)


def test_masks_of_other_steps_names_seeds_samples_positions_are_independent():
    base = {"p": 0.5, "seed": 1, "name": "d", "step": 0, "samples": np.arange(4), "positions": np.arange(32),
            "channels": 256}
    mask = to_host(keep_mask(**base))
    for change in ({"step": 1}, {"step": 2**31}, {"name": "e"}, {"seed": 2}, {"samples": np.arange(4, 8)},
                   {"positions": np.arange(32, 64)}, {"channels": range(256, 512)}):
        other = to_host(keep_mask(**{**base, **change}))
        assert within((mask == other).sum(), 0.5, mask.size), change
    assert within((mask[1:] == mask[:-1]).sum(), 0.5, mask[1:].size)
    assert within((mask[:, 1:] == mask[:, :-1]).sum(), 0.5, mask[:, 1:].size)
    assert within((mask[..., 1:] == mask[..., :-1]).sum(), 0.5, mask[..., 1:].size)


def test_a_larger_p_drops_more_of_the_same():
    draw = lambda p: to_host(keep_mask(p, 1, "d", step=0, samples=[0], positions=[0, 1], channels=50))
    assert (draw(0.6) <= draw(0.2)).all()


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_an_impossible_probability_is_refused(p):
    with pytest.raises(ValueError, match="expected 0 <= p <= 1"):
        keep_mask(p, 1, "d", step=0, samples=[0], positions=[0], channels=1)


@pytest.mark.parametrize("samples, positions", [
    (3, [0]), ([[3]], [0]), ([3], 0), ([3, 4], np.zeros((3, 5), int)), ([3], np.zeros((1, 1, 1), int)),
    ([3], [0.5]), ([0.5], [3]), ([True], [3]),
])
def test_coordinates_that_do_not_fit_are_refused(samples, positions):
    with pytest.raises(ValueError, match="samples .* positions .*: expected"):
        keep_mask(**WHOLE, samples=samples, positions=positions, channels=2)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize("draw", [normal, uniform])
def test_whole_numbers_are_not_drawn(draw, dtype):
    with pytest.raises(ValueError, match="expected a float type"):
        draw(0, "w", (3,), dtype=dtype)


@pytest.mark.skipif(device != "strict", reason="only the strict module counts transfers")
def test_a_training_step_draws_its_mask_without_waiting_for_the_device():
    from autograd.strict import no_synchronization
    samples, positions = xp.arange(4), xp.arange(8)
    with no_synchronization():
        keep_mask(0.1, 1, "d", step=5, samples=samples, positions=positions, channels=range(16, 32))
        normal(1, "w", (9, 9), region=(slice(2, 5), [1, 3]))
