"""Case 43: every layer keeps the same contract, held by autograd's kit."""

import numpy as np
import pytest

from autograd.backend import to_device, to_host
from autograd.gradcheck import check_layer
from minigpt import layers
from minigpt.config import Model
from minigpt.models.batch import Batch
from minigpt.models.parts import Parts
from minigpt.module import initialize

CONFIG = Model(vocab_size=11, d_model=8, n_layers=1, n_heads=2, context=6)
B, T = 2, 3


def x(*shape):
    return np.random.default_rng(4).standard_normal(shape or (B, T, CONFIG.d_model))


def batch():
    return Batch(tokens=to_device(np.array([[0, 3, 3], [10, 1, 0]])), positions=to_device(np.arange(T)),
                 samples=to_device(np.arange(B)), step=7)


def table():
    return initialize(layers.Embedding(11, 8), seed=1)


# layer -> (how to make one, an example of its inputs, inputs without rows)
EXAMPLES = {
    "Linear": (lambda: layers.Linear(8, 5, 3), [x()], [x(0, 3, 8)]),
    "LayerNorm": (lambda: layers.LayerNorm(8), [x(), x()], [x(0, 3, 8), x(0, 3, 8)]),
    "RMSNorm": (lambda: layers.RMSNorm(8), [x(), None], [x(0, 3, 8), None]),
    "Dropout": (lambda: layers.Dropout(0.4, seed=3), [x(), batch()], None),
    "Embedding": (lambda: layers.Embedding(11, 8), [np.array([[0, 3, 3], [10, 1, 0]])], [np.zeros((0, 3), int)]),
    "TiedHead": (lambda: layers.TiedHead(table()), [x()], [x(0, 3, 8)]),
    "FeedForward": (lambda: layers.FeedForward(CONFIG, Parts()), [x()], [x(0, 3, 8)]),
    "Attention": (lambda: layers.Attention(CONFIG, Parts()), [x()], [x(0, 3, 8)]),
    "Block": (lambda: layers.Block(CONFIG, Parts()), [x(), x(), batch()], None),
}


def test_every_layer_has_an_example():
    assert set(EXAMPLES) == set(layers.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
def test_case_43_every_layer_keeps_the_contract(name):
    make, inputs, empty = EXAMPLES[name]
    check_layer(initialize(make(), seed=1), inputs, empty=empty)


def test_case_46_attention_is_scaled_by_the_width_of_a_head():
    attention = initialize(layers.Attention(CONFIG, Parts()), seed=1)
    packed, output = attention.query_key_value, attention.output
    weight, back = (to_host(w.data).astype("float64") for w in (packed.weight, output.weight))

    def reference(x):
        query, key, value = (x @ weight).reshape(B, T, 3, 2, 4).transpose(2, 0, 3, 1, 4)
        scores = np.einsum("bhqd,bhkd->bhqk", query, key) / np.sqrt(4)
        weights = np.exp(np.where(np.tri(T, dtype=bool), scores, -np.inf))
        y = np.einsum("bhqk,bhkd->bqhd", weights / weights.sum(-1, keepdims=True), value)
        return y.reshape(B, T, 8) @ back

    check_layer(attention, [20 * x()], reference)
