"""Sampling: choices, windows beyond the context, streams of text."""

import numpy as np
import pytest

import comm
from autograd.backend import device, to_device, to_host
from data.tokenizer import Bytes, Characters
from minigpt.config import Model, Sample
from minigpt.errors import UserError
from minigpt.generate import choose, generate, load_model, stream_text
from minigpt.generate.sample import next_logits
from minigpt.models import GPT, Batch
from minigpt.module import initialize
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny
from tests.ranks import run

LOGITS = np.log(np.array([0.1, 0.5, 0.25, 0.15], "f"))


@pytest.fixture(scope="module")
def model():
    made = initialize(GPT(Model(d_model=16, n_layers=2, n_heads=2, context=8, vocab_size=256)), 3)
    for block in made.blocks:                       # far from uniform, so that every token of the past tells
        block.attention.query_key_value.weight.data *= 40
    return made


def test_case_124_temperature_0_is_the_likeliest_whatever_is_drawn():
    assert {choose(LOGITS, draw, temperature=0) for draw in (0.0, 0.5, 0.999)} == {1}


def test_draws_fall_by_probability_at_temperature_1():
    draws = (np.arange(1000) + 0.5) / 1000
    counts = np.bincount([choose(LOGITS, draw) for draw in draws], minlength=4)
    np.testing.assert_allclose(counts / 1000, [0.1, 0.5, 0.25, 0.15], atol=2e-3)


def test_a_higher_temperature_flattens_and_a_lower_one_sharpens():
    draws = (np.arange(1000) + 0.5) / 1000
    share = {t: np.mean([choose(LOGITS, draw, t) == 1 for draw in draws]) for t in (0.5, 1, 5)}
    assert share[0.5] == pytest.approx(0.25 / (0.25 + 0.0625 + 0.0225 + 0.01), abs=2e-3)
    assert share[0.5] > share[1] > share[5] > 0.25


def test_case_125_top_k_keeps_the_k_likeliest_and_more_than_there_are_is_all():
    draws = np.linspace(0, 1, 200, endpoint=False)
    assert {choose(LOGITS, draw, top_k=2) for draw in draws} == {1, 2}
    assert {choose(LOGITS, draw, top_k=1) for draw in draws} == {1}
    assert [choose(LOGITS, draw, top_k=99) for draw in draws] == [choose(LOGITS, draw) for draw in draws]


def test_extreme_logits_and_draws_stay_in_the_vocabulary():
    huge = np.array([3e38, -3e38, 0, -np.inf], "f")
    assert {choose(huge, draw, t) for draw in (0.0, 1.0) for t in (1e-9, 1, 1e9)} <= {0, 1, 2}
    assert choose(np.zeros(5, "f"), 1.0) == 4
    with pytest.raises(ValueError, match="temperature=-1: expected 0"):
        choose(LOGITS, 0.5, temperature=-1)


def test_the_same_seed_writes_the_same_and_another_seed_something_else(model):
    one, two, other = (list(generate(model, [1, 2], 12, seed=seed)) for seed in (1, 1, 2))
    assert one == two != other
    assert len(one) == 12 and all(0 <= token < 256 for token in one)


def test_case_129_and_127_a_text_grows_past_the_context_by_the_window_before_it(model):
    ids = [5, 6, 7]
    for token in generate(model, ids, 20, temperature=0):
        assert token == int(to_host(next_logits(model, ids[-8:])).argmax())
        ids.append(token)
    assert len(ids) == 23
    full = list(range(8))                           # a prompt that fills the context to the last place
    assert len(list(generate(model, full, 3))) == 3


def test_the_next_token_is_predicted_as_the_whole_model_does(model):
    for length in range(1, 9):
        ids = np.arange(length, dtype=np.int32)[None]
        whole = to_host(model(Batch(to_device(ids), positions=to_device(ids[0]))).data)[0, -1]
        np.testing.assert_allclose(to_host(next_logits(model, list(range(length)))), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(device != "cpu", reason="the arena is of the CPU")
def test_a_growing_text_does_not_fill_the_arena():
    from autograd import arena
    made = initialize(GPT(Model(d_model=64, n_layers=2, n_heads=2, context=256, vocab_size=64)), 3)

    def held(tokens):
        def go(group):                              # a thread has an arena of its own
            list(generate(made, [1], tokens))
            return arena.resident()
        return run(1, go)[0]

    assert 0 < held(250) < 4 * 256 * 4 * (20 * 64 + 2 * 256)


def test_a_prompt_of_no_tokens_or_foreign_ones_is_refused(model):
    with pytest.raises(ValueError, match="nothing to go on from"):
        next(generate(model, [], 3))
    with pytest.raises(IndexError, match="prompt id 256 is outside the vocabulary of 256"):
        next(generate(model, [3, 256], 3))
    assert list(generate(model, [1], 0)) == []


def test_case_135_a_stream_joined_is_the_whole_and_never_half_a_character(model):
    settings = Sample(tokens=60, temperature=5.0, top_k=0)
    pieces = list(stream_text(model, Bytes(), "ж", settings))
    ids = list(generate(model, list("ж".encode()), 60, 5.0, 0, settings.seed))
    assert "".join(pieces) == "ж" + Bytes().decode(ids)


def test_case_130_an_empty_prompt_begins_with_a_newline_or_says_why_not(model):
    assert "".join(stream_text(model, Bytes(), "", Sample(tokens=2)))
    with pytest.raises(UserError, match="an empty prompt begins with a newline, but this vocabulary has none"):
        next(stream_text(model, Characters("abc"), "", Sample()))
    with pytest.raises(UserError, match="prompt: character 'z' .* is not among the 3 characters"):
        next(stream_text(model, Characters("abc"), "z", Sample()))


def test_a_saved_model_writes_what_it_wrote_before(tmp_path):
    trainer = Trainer(tiny.config("train.max_steps=3"), tiny.corpus(), comm.world())
    trainer.train_step()
    trainer.save(tmp_path)
    loaded, tokenizer = load_model(tmp_path)
    assert tokenizer == trainer.corpus.tokenizer
    assert list(generate(loaded, [1], 10)) == list(generate(trainer.model, [1], 10))
