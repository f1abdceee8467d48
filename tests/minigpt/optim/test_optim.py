"""Optimizers against their textbook formulas, clipping, the learning-rate schedule."""

from math import cos, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograd.backend import device, to_device, to_host
from minigpt.config import Optim
from minigpt.flat import flatten
from minigpt.module import Module, Parameter, initialize, normal
from minigpt.optim import SGD, AdamW, clip_factor, global_norm, make, warmup_cosine


class Some(Module):
    def __init__(self, rows=5, width=7):
        self.weight = Parameter((rows, width), normal(1.0))
        self.bias = Parameter((width,), normal(1.0))
        self.again = self.weight


def trained(make_optimizer, gradients, lr=0.1, scale=1.0, dtype="float64", **sizes):
    """{name: weights} after one update for each of `gradients`, functions of (name, shape)."""
    flat = flatten(initialize(Some(**sizes), 1, dtype))
    optimizer = make_optimizer(flat)
    for gradient in gradients:
        for name, parameter in flat.parameters.items():
            parameter.grad = to_device(gradient(name, parameter.shape).astype(dtype))
        flat.gradient()
        optimizer.step(lr, scale)
    return {name: to_host(parameter.data).copy() for name, parameter in flat.parameters.items()}


def gradients(steps):
    def of(step):
        return lambda name, shape: np.random.default_rng([step, len(name)]).normal(size=shape)
    return [of(step) for step in range(steps)]


def start(**sizes):
    return {n: to_host(p.data).copy() for n, p in flatten(initialize(Some(**sizes), 1, "float64")).parameters.items()}


def textbook_adamw(gradients, lr, beta1, beta2, eps, decay):
    weights = start()
    for name, p in weights.items():
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, gradient in enumerate(gradients, 1):
            g = gradient(name, p.shape)
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            if p.ndim > 1:
                p *= 1 - lr * decay
            p -= lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return weights


@pytest.mark.parametrize("beta1, beta2, eps, decay", [(0.9, 0.95, 1e-8, 0.1), (0.0, 0.999, 1e-2, 0.0), (0.5, 0, 1, 2)])
def test_adamw_is_the_textbook_formula_and_case_141_decays_matrices_once(beta1, beta2, eps, decay):
    steps = gradients(5)
    result = trained(lambda flat: AdamW(flat, (beta1, beta2), eps, decay), steps)
    expected = textbook_adamw(steps, 0.1, beta1, beta2, eps, decay)
    for name in expected:
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("momentum, decay", [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1)])
def test_sgd_is_the_textbook_formula(momentum, decay):
    steps, expected = gradients(4), start()
    for name, p in expected.items():
        velocity = np.zeros_like(p)
        for gradient in steps:
            velocity = momentum * velocity + gradient(name, p.shape) + (decay * p if p.ndim > 1 else 0)
            p -= 0.1 * velocity
    result = trained(lambda flat: SGD(flat, momentum, decay), steps)
    for name in expected:
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("make_optimizer", [AdamW, lambda flat: SGD(flat, 0.9, 0.1)], ids=["adamw", "sgd"])
def test_tiles_change_nothing(monkeypatch, make_optimizer):
    whole = trained(make_optimizer, gradients(3), dtype="float32", rows=40)
    monkeypatch.setattr("minigpt.optim.tiles.TILE", 64)
    for name, weights in trained(make_optimizer, gradients(3), dtype="float32", rows=40).items():
        np.testing.assert_array_equal(weights, whole[name])


@pytest.mark.parametrize("make_optimizer", [AdamW, lambda flat: SGD(flat, 0.9)], ids=["adamw", "sgd"])
def test_a_scaled_gradient_is_a_gradient_that_was_scaled(make_optimizer):
    scaled = trained(make_optimizer, gradients(3), scale=0.25)
    shrunk = trained(make_optimizer, [lambda name, shape, g=g: 0.25 * g(name, shape) for g in gradients(3)])
    for name in scaled:
        np.testing.assert_array_equal(scaled[name], shrunk[name])


def test_optimizers_stay_in_the_precision_of_the_weights():
    flat = flatten(initialize(Some(), 1))
    optimizer = AdamW(flat)
    optimizer.step(np.float64(0.1))
    assert {str(each.dtype) for each in (flat.data, *optimizer.moments.values())} == {"float32"}


def test_a_configuration_names_its_optimizer():
    flat = flatten(initialize(Some(), 1))
    made = make(Optim(name="adamw", beta1=0.5, eps=1e-3, weight_decay=0.2), flat)
    assert type(made) is AdamW and made.betas == (0.5, 0.95) and (made.eps, made.weight_decay) == (1e-3, 0.2)
    made = make(Optim(name="sgd", momentum=0.5, weight_decay=0.2), flat)
    assert type(made) is SGD and (made.momentum, made.weight_decay) == (0.5, 0.2)


# ------------------------------------------------------------------------------------ clipping

def test_the_norm_counts_every_parameter_once_tied_ones_too():
    flat = flatten(initialize(Some(), 1, "float64"))
    for parameter in flat.parameters.values():
        parameter.grad = parameter.data
    expected = np.sqrt(sum((to_host(p.data)**2).sum() for p in flat.parameters.values()))
    assert float(global_norm(flat.gradient())) == pytest.approx(expected, rel=1e-12)


@pytest.mark.skipif(device != "cpu", reason="a device sums in its own order, to about 1e-4")
def test_the_norm_of_a_long_float32_gradient_is_exact_to_float32():
    gradient = np.full(1 << 22, 1e-3, "f")
    gradient[::2] *= -3
    expected = np.sqrt(np.square(gradient.astype("d")).sum())
    assert float(global_norm(to_device(gradient))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm, longest, factor",
                         [(0.0, 1.0, 1), (0.5, 1.0, 1), (1.0, 1.0, 1), (4.0, 1.0, 0.25), (9.0, 0, 1)])
def test_a_gradient_is_cut_to_the_limit_and_a_short_one_left_alone(norm, longest, factor):
    assert clip_factor(norm, longest) == factor
    on_device = to_device(np.array(norm, "f"))
    assert float(clip_factor(on_device, longest)) == factor


# ------------------------------------------------------------------------------------ learning rate

SCHEDULE = {"lr": 1e-3, "min_lr": 1e-4, "warmup_steps": 10, "max_steps": 110}


def test_case_121_the_first_step_is_positive_and_the_warm_up_a_line():
    assert [warmup_cosine(s, **SCHEDULE) for s in (0, 4, 9)] == pytest.approx([1e-4, 5e-4, 1e-3])


def test_case_123_the_cosine_ends_at_the_minimum_and_stays_there():
    assert warmup_cosine(10, **SCHEDULE) == pytest.approx(1e-3)
    assert warmup_cosine(60, **SCHEDULE) == pytest.approx((1e-3 + 1e-4) / 2)
    assert warmup_cosine(35, **SCHEDULE) == pytest.approx(1e-4 + 9e-4 * (1 + cos(pi / 4)) / 2)
    assert [warmup_cosine(s, **SCHEDULE) for s in (110, 111, 10**9)] == pytest.approx([1e-4] * 3)


@given(st.integers(0, 500), st.integers(0, 50), st.integers(0, 400))
def test_the_rate_is_positive_and_never_above_the_maximum(step, warmup_steps, max_steps):
    rate = warmup_cosine(step, lr=1.0, min_lr=0.1, warmup_steps=warmup_steps, max_steps=max_steps)
    assert 0 < rate <= 1.0
