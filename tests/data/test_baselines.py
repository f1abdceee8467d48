import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import baselines
from data.baselines import bigram, unigram

TOKENS = st.lists(st.integers(0, 4), min_size=2, max_size=30).map(lambda ids: np.array(ids, np.uint8))


def by_hand(train, validation, vocab_size, pairs):
    """The same from the definition, one token at a time."""
    train, validation, loss = train.tolist(), validation.tolist(), 0.0
    for before, target in zip(validation, validation[1:]):
        if pairs:
            seen = sum(pair == (before, target) for pair in zip(train, train[1:]))
            total = train[:-1].count(before)
        else:
            seen, total = train.count(target), len(train)
        loss -= math.log((seen + 1) / (total + vocab_size))
    return loss / (len(validation) - 1)


@given(TOKENS, TOKENS)
def test_losses_are_those_of_the_definition(train, validation):
    for measure, pairs in [(unigram, False), (bigram, True)]:
        expected = by_hand(train, validation, 5, pairs)
        assert measure(train, validation, 5) == pytest.approx(expected, rel=1e-12)


@given(TOKENS, TOKENS)
def test_a_large_vocabulary_is_counted_sparsely_with_the_same_result(train, validation):
    dense = bigram(train, validation, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "TABLE", 1)
        assert bigram(train, validation, 5) == dense
    assert bigram(train.astype(np.uint32), validation, 200_000) == pytest.approx(
        by_hand(train, validation, 200_000, pairs=True), rel=1e-12)


def test_small_types_do_not_wrap():
    train = np.tile(np.array([255, 254], np.uint8), 500)
    assert bigram(train, train, 256) == pytest.approx(by_hand(train, train, 256, pairs=True), rel=1e-12)


def test_a_uniform_text_costs_the_logarithm_of_its_vocabulary():
    tokens = np.tile(np.arange(16), 200)
    assert unigram(tokens, tokens, 16) == pytest.approx(math.log(16), rel=1e-12)
    assert bigram(tokens, tokens, 16) < 0.1


def test_nothing_to_learn_from_is_the_uniform_guess():
    validation = np.array([1, 2, 3])
    for train in (np.array([], int), np.array([1])):
        assert bigram(train, validation, 7) == pytest.approx(math.log(7))
        assert bigram(train, validation, 5000) == pytest.approx(math.log(5000))
    assert unigram(np.array([], int), validation, 7) == pytest.approx(math.log(7))


def test_wrong_input_is_refused():
    tokens = np.arange(5)
    for measure in (unigram, bigram):
        with pytest.raises(ValueError, match="1 tokens; at least 2"):
            measure(tokens, tokens[:1], 5)
        for train, validation in [(tokens, tokens[:3]), (tokens[:3], tokens)]:
            with pytest.raises(ValueError, match="token id 4 is outside .*vocab_size=4"):
                measure(train, validation, 4)
        with pytest.raises(ValueError, match="1-d NumPy array"):
            measure([1, 2], tokens, 5)
