import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.loader import Loader, Window, evaluation_batches

SMALL = st.integers(1, 4)


def text(count):
    """Token i is i, so that a window shows where it was cut from."""
    return np.arange(count, dtype=np.uint32)


def joined(windows):
    parts = [np.concatenate([each[part] for each in windows]) for part in range(3)]
    return Window(*parts, windows[0].positions)


def same(one, other):
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other))


@given(st.integers(2, 9), SMALL, st.integers(0, 200), st.integers(), st.integers(0, 10**9))
def test_targets_are_the_tokens_that_follow(context, batch_size, more, seed, step):
    window = Loader(text(context + 1 + more), context, batch_size, seed).batch(step)
    assert window.tokens.shape == window.targets.shape == (batch_size, context)
    assert window.tokens.dtype == window.targets.dtype == np.int32 and window.samples.dtype == np.int64
    assert np.array_equal(window.targets, window.tokens + 1)
    assert np.array_equal(window.tokens, window.tokens[:, :1] + window.positions)


def test_fact_8_a_sentence_of_8_words_gives_7_pairs():
    words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "dog"]
    vocabulary = sorted(set(words))
    window = Loader(np.array([vocabulary.index(word) for word in words]), 7, 1, seed=0).batch(0)
    seen, following = ([vocabulary[i] for i in ids[0]] for ids in (window.tokens, window.targets))
    assert [(seen[:t + 1], following[t]) for t in range(7)] == [(words[:t], words[t]) for t in range(1, 8)]


def test_fact_39_500_examples_on_10_ranks_are_50_each_and_no_other():
    tokens = text(500 * 4 + 4)                                     # 500 windows of 4 whatever the offset
    shares = [Loader(tokens, 4, 50, seed=3, replica=r, replicas=10).batch(0) for r in range(10)]
    assert all(len(share.samples) == 50 for share in shares)
    assert len(np.unique(joined(shares).tokens // 4, axis=0)) == 500
    assert sorted(joined(shares).samples) == list(range(500))


def test_fact_40_a_million_tokens_on_10_ranks_are_100_000_each_and_know_their_positions():
    window = Loader(text(1_000_001), 1_000_000, 1, seed=0).batch(0)
    parts = np.split(window.tokens, 10, axis=1)
    assert [part.shape for part in parts] == [(1, 100_000)] * 10
    for part, places in zip(parts, np.split(window.positions, 10)):
        assert np.array_equal(part[0], places)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(-3, 0))
def test_case_117_a_text_that_is_too_short_is_refused_with_both_sizes(context, batch_size, less):
    count = max(0, context + less)
    with pytest.raises(ValueError, match=f"has {count} tokens, .*context={context} needs {context + 1} "):
        Loader(text(count), context, batch_size, seed=0)


@given(st.integers(1, 50), SMALL, SMALL, st.integers(0, 100))
def test_case_118_a_text_of_exactly_one_window_gives_that_window(context, batch_size, replicas, step):
    loader = Loader(text(context + 1), context, batch_size, seed=0, replicas=replicas)
    assert loader.windows_per_epoch == 1
    assert np.array_equal(loader.batch(step).tokens, np.tile(np.arange(context), (batch_size, 1)))


@given(SMALL, SMALL, SMALL, st.integers(0, 1000), st.integers(60, 400))
def test_case_120_a_step_is_the_same_in_every_layout(replicas, accumulate, batch_size, step, count):
    """Replicas and micro-batches, joined in order, are the batch of one rank that does it all."""
    whole = Loader(text(count), 8, replicas * accumulate * batch_size, seed=5)
    shares = []
    for r in range(replicas):
        loader = Loader(text(count), 8, batch_size, 5, replica=r, replicas=replicas, accumulate=accumulate)
        shares += [loader.batch(step, micro) for micro in range(accumulate)]
        assert loader.samples_per_step == whole.samples_per_step
        assert loader.tokens_per_step == whole.tokens_per_step == 8 * whole.samples_per_step
    assert same(joined(shares), whole.batch(step))


def test_case_99_ten_windows_on_three_ranks_are_the_same_number_of_batches_each():
    """There is no last batch that one rank alone has: an epoch ends in the middle of a step."""
    loaders = [Loader(text(44), 4, 1, seed=0, replica=r, replicas=3) for r in range(3)]
    assert loaders[0].windows_per_epoch == 10
    seen = [loader.batch(step).tokens for step in range(7) for loader in loaders]
    assert all(tokens.shape == (1, 4) for tokens in seen)
    assert len(np.unique(seen[:10], axis=0)) == len(np.unique(seen[10:20], axis=0)) == 10


@given(st.integers(1, 12), st.integers(0, 300), st.integers(0, 2**40))
def test_case_120_no_two_windows_of_an_epoch_overlap(context, more, epoch):
    loader = Loader(text(context + 1 + more), context, 1, seed=9)
    count = loader.windows_per_epoch
    targets = loader.starts(epoch * count + np.arange(count))[:, None] + np.arange(1, context + 1)
    assert len(np.unique(targets)) == targets.size
    assert targets.max() <= context + more                          # the last token at most
    assert context + more - targets.size < 2 * context             # what an epoch leaves out


def test_every_token_is_a_target_in_some_epoch():
    for count in range(6, 40):
        loader = Loader(text(count), 5, 1, seed=1)
        starts = loader.starts(np.arange(loader.windows_per_epoch * 150))
        assert set((starts[:, None] + np.arange(1, 6)).ravel()) == set(range(1, count)), count


def test_epochs_differ_in_order_and_in_borders():
    loader = Loader(text(10_000), 10, 1, seed=1)
    first, second = np.split(loader.starts(np.arange(2 * loader.windows_per_epoch)), 2)
    assert np.mean(first // 10 == second // 10) < 0.01
    assert len({int(start % 10) for start in (first[0], second[0], loader.starts(np.array([3000]))[0])}) > 1


def test_seeds_differ():
    batches = [Loader(text(10_000), 10, 8, seed).batch(0).tokens for seed in (0, 1, -1, 2**64)]
    assert not any(np.array_equal(batches[0], other) for other in batches[1:3])
    assert np.array_equal(batches[0], batches[3])                   # documented: 64 bits of the seed count


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=20))
def test_a_batch_depends_on_its_step_only_not_on_what_was_read_before(steps):
    """Resuming needs no state: any order of steps gives what each alone gives."""
    loader = Loader(text(900), 7, 3, seed=2, replica=1, replicas=2, accumulate=2)
    for step in steps:
        fresh = Loader(text(900), 7, 3, seed=2, replica=1, replicas=2, accumulate=2)
        for micro in (1, 0):
            assert same(loader.batch(step, micro), fresh.batch(step, micro))


def test_a_batch_owns_its_memory_and_shares_only_what_cannot_be_changed():
    tokens = text(100)
    loader = Loader(tokens, 8, 2, seed=0)
    window = loader.batch(0)
    window.tokens[:], window.targets[:], window.samples[:] = 7, 7, 7
    assert same(loader.batch(0), Loader(text(100), 8, 2, seed=0).batch(0)) and tokens[5] == 5
    with pytest.raises(ValueError, match="read-only"):
        window.positions[0] = 1


def test_tokens_may_be_strided_small_or_read_only():
    for tokens in (np.arange(100, dtype=np.uint8), np.arange(200)[::2], np.arange(100, dtype=">u2")):
        tokens.flags.writeable = False
        window = Loader(tokens, 8, 2, seed=0).batch(3)
        assert window.tokens.dtype == np.int32 and np.ptp(window.tokens[0]) == 7 * int(tokens[1])


def test_ids_beyond_a_byte_do_not_wrap():
    tokens = np.array([65_535, 70_000, 50_256], np.uint32)
    assert Loader(tokens, 2, 1, 0).batch(0).targets.tolist() == [[70_000, 50_256]]


@pytest.mark.parametrize("wrong", [{"context": 0}, {"batch_size": 0}, {"replicas": 0}, {"accumulate": -1},
                                   {"replica": 2, "replicas": 2}, {"replica": -1}])
def test_impossible_sizes_are_refused_by_name(wrong):
    sizes = {"context": 4, "batch_size": 2, "seed": 0, **wrong}
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))} "):
        Loader(text(100), **sizes)


@pytest.mark.parametrize("tokens", [[1, 2, 3], np.ones(9), np.ones((3, 3), int), None])
def test_what_are_no_tokens_is_refused(tokens):
    for use in (lambda: Loader(tokens, 2, 1, 0), lambda: list(evaluation_batches(tokens, 2, 1))):
        with pytest.raises(ValueError, match="1-d NumPy array of integers, not"):
            use()


@pytest.mark.parametrize("integer", [np.int64, np.uint8, np.array])
def test_numpys_integers_are_as_good_as_pythons(integer):
    one, other = Loader(text(100), 4, 2, seed=3), Loader(text(100), integer(4), integer(2), integer(3))
    assert same(one.batch(5), other.batch(integer(5)))


def test_a_seed_or_step_that_is_no_integer_is_refused():
    for use in (lambda: Loader(text(100), 4, 2, seed=1.5), lambda: Loader(text(100), 4, 2, 0).batch(1.0)):
        with pytest.raises(TypeError, match="integer"):
            use()


def test_a_step_or_micro_batch_that_is_not_there_is_refused():
    loader = Loader(text(100), 4, 2, seed=0, accumulate=2)
    for step, micro in [(-1, 0), (0, 2), (0, -1)]:
        with pytest.raises(ValueError, match=f"step={step}, micro={micro}: expected .* 0 .. 1"):
            loader.batch(step, micro)


def test_epoch_counts_readings_of_the_text():
    loader = Loader(text(402), 4, 5, seed=0, replicas=2)            # 99 windows, 10 a step
    assert loader.windows_per_epoch == 99 and loader.epoch(0) == 0 and loader.epoch(99) == 10


@given(st.integers(2, 200), st.integers(1, 30), st.integers(1, 6))
def test_evaluation_has_every_token_but_the_first_as_a_target_once(count, context, batch_size):
    windows = list(evaluation_batches(text(count), context, batch_size))
    targets = np.concatenate([window.targets.ravel() for window in windows])
    assert targets.tolist() == list(range(1, count))
    for window in windows:
        assert np.array_equal(window.tokens + 1, window.targets) and window.tokens.dtype == np.int32
        assert window.tokens.shape == (len(window.samples), len(window.positions))
        assert window.tokens.shape[0] <= batch_size and window.tokens.shape[1] <= context
    assert np.concatenate([window.samples for window in windows]).tolist() == list(
        range(sum(len(window.samples) for window in windows)))


@given(st.integers(0, 12))
def test_a_limited_evaluation_is_spread_over_the_text(limit):
    every = list(evaluation_batches(text(101), 5, 2))               # 20 windows
    some = list(evaluation_batches(text(101), 5, 2, limit))
    assert len(every) == 10 and len(some) == min(limit, 10)
    assert all(any(same(window, each) for each in every) for window in some)
    if limit == 2:
        assert [window.tokens[0, 0] for window in some] == [0, 50]


@pytest.mark.parametrize("count", [0, 1])
def test_case_117_nothing_to_evaluate_on_is_said(count):
    with pytest.raises(ValueError, match=f"cannot evaluate on {count} tokens"):
        list(evaluation_batches(text(count), 4, 2))
