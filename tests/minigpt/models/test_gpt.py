"""The models: shapes, counts, causality, initialisation, swapped parts."""

from dataclasses import replace

import numpy as np
import pytest

from autograd import Tensor, ops
from autograd.backend import to_device, to_host
from data.loader import Window
from minigpt.config import Model
from minigpt.flat import flatten
from minigpt.layers import RMSNorm
from minigpt.models import GPT, MLP, Batch, Parts
from minigpt.module import Module, initialize, named_parameters

TINY = Model(d_model=16, n_layers=2, n_heads=4, context=8, vocab_size=11)


def batch(rows=3, length=8, seed=0, config=TINY, **more):
    ids = np.random.default_rng(seed).integers(0, config.vocab_size, (rows, length + 1), dtype=np.int32)
    window = Window(ids[:, :-1], ids[:, 1:], np.arange(rows), np.arange(length, dtype=np.int32))
    return Batch.of(window, config.vocab_size, **more)


def logits(model, given):
    return to_host(model(given).data)


def test_logits_are_one_row_of_the_vocabulary_for_every_position():
    assert logits(initialize(GPT(TINY), 1), batch()).shape == (3, 8, 11)


def test_a_position_sees_itself_and_what_is_before_and_nothing_after():
    model = initialize(GPT(TINY), 1, "float64")
    given = batch()
    changed = to_host(given.tokens).copy()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = logits(model, given), logits(model, replace(given, tokens=to_device(changed)))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert (np.abs(before[:, 5:] - after[:, 5:]).max(-1) > 1e-6).all()


def test_gpt_2_has_its_124_million_parameters():
    gpt2 = Model(d_model=768, n_layers=12, n_heads=12, context=1024, vocab_size=50257)
    assert sum(p.size for _, p in named_parameters(GPT(gpt2))) == 124_439_808


def test_weights_start_as_gpt_2_does():
    config = Model(d_model=64, n_layers=8, n_heads=4, context=64, vocab_size=200)
    for name, p in named_parameters(initialize(GPT(config), 1)):
        data = to_host(p.data)
        if name.endswith("bias"):
            assert not data.any()
        elif name.endswith("gain"):
            assert (data == 1).all()
        else:
            expected = 0.02 / 4 if "output" in name or "down" in name else 0.02
            assert data.std() == pytest.approx(expected, rel=0.05), name


def test_gradients_of_the_whole_model_are_those_of_finite_differences():
    model = initialize(GPT(TINY), 1, "float64")
    flat, given = flatten(model), batch(total=24)
    rng = np.random.default_rng(0)
    flat.data += to_device(0.1 * rng.normal(size=flat.size))      # leave the special point where biases are 0
    direction = np.zeros(flat.size)
    for run in flat.ranges.values():
        direction[run] = rng.normal(size=run.stop - run.start)

    def loss():
        return model.loss(model(given), given.targets, total=given.total)

    loss().backward()
    slope = float((to_host(flat.gradient()) * direction).sum())
    h, start = 1e-6, to_host(flat.data).copy()
    flat.data[:] = to_device(start + h * direction)
    above = loss().item()
    flat.data[:] = to_device(start - h * direction)
    assert slope == pytest.approx((above - loss().item()) / (2 * h), rel=1e-6)


def test_a_part_is_swapped_in_one_line():
    model = initialize(GPT(TINY, replace(Parts(), norm=RMSNorm)), 1)
    assert "norm.bias" not in dict(named_parameters(model)) and logits(model, batch()).shape == (3, 8, 11)


def test_dropout_drops_in_training_only_and_by_coordinates():
    config = replace(TINY, dropout=0.5)
    model = initialize(GPT(config), 1)
    plain = logits(initialize(GPT(TINY), 1), batch())
    np.testing.assert_array_equal(logits(model, batch()), plain)
    first, second = logits(model, batch(step=0)), logits(model, batch(step=1))
    assert not np.allclose(first, plain) and not np.allclose(first, second)
    np.testing.assert_array_equal(first, logits(model, batch(step=0)))
    alone = replace(batch(step=0), tokens=batch().tokens[1:2], samples=batch().samples[1:2])
    np.testing.assert_allclose(logits(model, alone)[0], first[1], rtol=1e-4, atol=1e-6)


def test_a_batch_beyond_the_context_is_refused():
    with pytest.raises(ValueError, match="a batch of 9 positions for a model with context=8: cut it"):
        initialize(GPT(TINY), 1)(batch(length=9))


@pytest.mark.parametrize("field, wrong", [("tokens", 11), ("tokens", -1), ("targets", 11), ("targets", -2)])
def test_case_14_an_id_outside_the_vocabulary_is_named_before_it_reaches_the_device(field, wrong):
    ids = np.zeros((1, 4), np.int32)
    window = Window(ids, ids, np.arange(1), np.arange(4))
    bad = ids.copy()
    bad[0, 2] = wrong
    with pytest.raises(IndexError, match=f"{field[:-1]} id {wrong} is outside the vocabulary of 11"):
        Batch.of(window._replace(**{field: bad}), 11)
    Batch.of(window._replace(targets=ids - 1), 11)                # -1 is a target that is not counted


def test_an_ignored_target_has_no_influence():
    model = initialize(GPT(TINY), 1, "float64")
    given = batch()
    masked = to_host(given.targets).copy()
    masked[:, :4] = -1
    masked = to_device(masked)
    part = model.loss(model(given), masked, total=12).item()
    rows = Tensor(model(given).data[:, 4:])
    assert part == pytest.approx(ops.cross_entropy(rows, given.targets[:, 4:], total=12).item(), rel=1e-12)


# ------------------------------------------------------------------------------------ MLP

def test_fact_1_the_digits_network_has_13002_parameters():
    parameters = named_parameters(MLP((784, 16, 16, 10)))
    assert sum(p.size for n, p in parameters if n.endswith("weight")) == 12960
    assert sum(p.size for n, p in parameters if n.endswith("bias")) == 42


def test_fact_2_without_activation_the_layers_are_one_linear_map_and_with_it_not():
    for activation, collapses in ((None, True), (ops.relu, False)):
        model = initialize(MLP((3, 4, 4, 2), activation), 1, "float64")
        assert sum(p.size for _, p in named_parameters(model)) == 46
        points = np.random.default_rng(0).normal(size=(4, 3))
        zero = to_host(model(Tensor(np.zeros((1, 3)))).data)
        whole = to_host(model(Tensor(points.sum(0, keepdims=True))).data) - zero
        parts = (to_host(model(Tensor(points)).data) - zero).sum(0, keepdims=True)
        assert np.allclose(whole, parts, rtol=1e-12) == collapses


def test_an_mlp_needs_two_sizes():
    with pytest.raises(ValueError, match=r"sizes=\(784,\): expected the width of the input, then of every layer"):
        MLP((784,))


def test_every_layer_keeps_float32_and_nothing_of_a_step_stays_alive():
    model = initialize(GPT(TINY), 1)
    flat, given = flatten(model), batch(total=24)
    loss = model.loss(model(given), given.targets, total=given.total)
    loss.backward()
    assert loss.dtype == "float32" and flat.gradient().dtype == "float32"
    assert loss.origin[0].backward is None


def test_case_41_one_head_of_two_is_unused_and_gets_zero():
    class Two(Module):
        def __init__(self):
            self.one, self.two = MLP((2, 2)), MLP((2, 2))

        def forward(self, x):
            return self.one(x)

    model = initialize(Two(), 1)
    flat = flatten(model)
    ops.sum(model(Tensor(np.ones((1, 2), "f")))).backward()
    gradient = to_host(flat.gradient())
    assert not gradient[flat.ranges["two.layers.0.weight"]].any() and gradient.any()

