"""Runs small enough for a test: a text of a few hundred characters, a model of a few thousand parameters."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from data.corpus import Corpus
from data.tokenizer import Characters
from minigpt.config import Config, override

TEXT = "the quick brown fox jumps over the lazy dog; " * 20
TINY = ["model.d_model=16", "model.n_layers=2", "model.n_heads=2", "model.context=8", "data.batch_size=2",
        "optim.lr=0.01", "optim.warmup_steps=2", "train.max_steps=6", "train.log_every=1", "train.eval_every=0",
        "train.save_every=0", "sample.tokens=8", "train.name=tiny"]


def config(*words):
    return override(Config(), [*TINY, *words])


def corpus(text=TEXT, validation=0.1):
    tokenizer = Characters(TEXT)
    ids = tokenizer.encode(text)
    train, rest = np.split(ids, [round(len(ids) * (1 - validation))])
    return Corpus("tiny", tokenizer, train, rest, len(text), "", Path("tiny"))


def with_seed(settings, seed):
    return replace(settings, model=replace(settings.model, seed=seed))
