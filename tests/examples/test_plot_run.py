import json

import numpy as np
import pytest

from data import baselines, corpus
from data.tokenizer import Bytes
from examples import plot_run
from minigpt import checkpoint, config
from minigpt.config import Config, Data, Model
from minigpt.flat import flatten
from minigpt.models import GPT
from minigpt.module import initialize
from minigpt.optim import AdamW
from tests.examples.running import run


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """The folder of a run on a small text."""
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    text = tmp_path / "text.txt"
    text.write_text("abc abd " * 100, encoding="utf-8")
    settings = Config(Model(d_model=8, n_layers=1, n_heads=1, context=4, vocab_size=256), Data(corpus=str(text)))
    flat = flatten(initialize(GPT(settings.model), seed=1))
    checkpoint.save(tmp_path / "run" / "checkpoints", 20, flat, AdamW(flat), config.dumps(settings), Bytes().to_json())
    lines = [{"step": 10, "loss": 3.5}, {"step": 10, "validation_loss": 3.25}, {"step": 20, "loss": 3.0}]
    (tmp_path / "run" / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return tmp_path / "run"


def test_losses_and_baselines_of_a_run(finished):
    assert plot_run.losses(finished) == [((10, 20), (3.5, 3.0)), ((10,), (3.25,))]
    text = corpus.prepare(finished.parent / "text.txt", Bytes())
    expected = [count(text.train, text.validation, 256) for count in (baselines.unigram, baselines.bigram)]
    np.testing.assert_allclose(list(plot_run.counted(finished).values()), expected)


@pytest.mark.parametrize("name, start", [("new/a.png", b"\x89PNG"), ("b.svg", b"<?xml")])
def test_it_draws(finished, tmp_path, name, start):
    pytest.importorskip("matplotlib")
    said = run("plot_run.py", finished, "--out", tmp_path / name)
    assert "2 training losses, 1 validations" in said
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="no metrics.jsonl"):
        run("plot_run.py", tmp_path)
