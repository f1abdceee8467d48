"""Configurations: defaults, TOML and words of the command line."""

import re
from pathlib import Path

import pytest

from minigpt import config
from minigpt.config import Config, ConfigError, Model, loads, override

CONFIGS = sorted((Path(__file__).parents[2] / "examples" / "configs").glob("*.toml"))


def test_toml_and_back_is_the_same():
    words = ['sample.prompt="a \\"quoted\\"\\n\\u007f \\u0001 line"', "data.corpus=/tmp/ж.txt", "optim.lr=1e-05"]
    made = override(Config(), words)
    assert loads(config.dumps(made)) == made
    assert loads("") == Config()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_examples_load_and_are_named_after_their_file(path):
    assert config.load(path).train.name == path.stem
    assert config.load(path, ["train.name=other"]).train.name == "other"


@pytest.mark.parametrize("word, message", [
    ("train.max_step=3", r"no key train.max_step; did you mean train.max_steps\?"),
    ("trian.max_steps=3", r"no section trian; did you mean train\?"),
    ("model.zzz=3", "no key model.zzz; .*d_model"),
    ("train.max_steps=abc", "train.max_steps='abc': expected a whole number"),
    ("train.max_steps=1.5", "expected a whole number"),
    ("train.max_steps=true", "expected a whole number"),
    ("train.debug=1", "expected true or false"),
    ("optim.lr=fast", "expected a number"),
    ("optim.lr=nan", "optim.lr=nan: expected at least 0"),
    ("optim.lr=-1", "expected at least 0"),
    ("optim.name=adam", "optim.name='adam': expected 'adamw' or 'sgd'"),
    ("optim.beta1=1", "optim.beta1=1.0: expected at least 0 and below 1"),
    ("model.n_heads=3", "d_model=128 cannot be cut into model.n_heads=3 heads: choose a d_model divisible by 3"),
    ("model.n_layers=0", "model.n_layers=0: expected at least 1"),
    ("model.dropout=1", "model.dropout=1.0: expected a share below 1"),
    ("data.validation=1", "expected a share"),
    ("train.dtype=float16", "expected 'float32' or 'float64'"),
    ("model=3", "'model=3' is not section.key=value"),
    ("max_steps", "is not section.key=value"),
])
def test_a_mistake_is_answered_by_what_was_expected(word, message):
    with pytest.raises(ConfigError, match=message):
        override(Config(), [word])


def test_words_win_over_the_file_and_whole_numbers_stand_for_numbers(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text("[optim]\nlr = 1\n[model]\nd_model = 64\n")
    made = config.load(path, ["model.n_layers=2", "data.corpus=123"])
    assert (made.optim.lr, made.model.d_model, made.model.n_layers) == (1.0, 64, 2)
    assert isinstance(made.optim.lr, float) and made.data.corpus == "123"


def test_the_inner_width_follows_d_model_until_it_is_chosen():
    assert loads("[model]\nd_model = 64").model.d_ff == 256
    assert override(loads("[model]\nd_model = 64"), ["model.d_model=32"]).model.d_ff == 128
    assert override(loads("[model]\nd_ff = 100"), ["model.d_model=32"]).model.d_ff == 100
    assert Model(d_model=8, n_heads=2).d_head == 4


@pytest.mark.parametrize("text, message", [
    ("[model", "this is not TOML"), ("model = 3", "model is a section"), ("[model]\nx = 1", "no key model.x")])
def test_a_broken_file_is_named(tmp_path, text, message):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"broken.toml: .*{message}"):
        config.load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the configuration .*nowhere.toml: No such file"):
        config.load(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="binary.toml"):
        config.load(tmp_path / "binary.toml")


def test_differences_are_told_by_name():
    assert config.differences(Config(), override(Config(), ["optim.lr=0.5"])) == ["optim.lr: 0.001 -> 0.5"]


@pytest.mark.parametrize("word, message", [
    ("train.name=..", "without '/'"), ("train.name=/", "without '/'"), ("train.name=../x", "without '/'"),
    ("data.corpus=", "expected a name"),
    ("data.batch_size=100000000000000000000", "below 2,147,483,648"), ("sample.tokens=1000000000000", "below"),
    ("train.max_steps=99999999999999999999", "below"), ("optim.lr=inf", "below"), ("optim.lr=nan", "at least 0"),
])
def test_what_would_fail_later_or_elsewhere_is_refused_at_once(word, message):
    with pytest.raises(config.ConfigError, match=re.escape(message)):
        config.override(config.Config(), [word])


def test_a_file_may_begin_with_a_byte_order_mark_and_must_be_utf_8(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf[model]\nd_model = 32\n")
    assert config.load(path).model.d_model == 32
    path.write_text("[model]\n", encoding="utf-16")
    with pytest.raises(config.ConfigError, match="save the file as UTF-8"):
        config.load(path)
    with pytest.raises(config.ConfigError, match="such as examples/configs"):
        config.load(tmp_path)
