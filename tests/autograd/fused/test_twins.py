"""Every tuned twin equals its formula, forward and backward, and writes only where it may."""

import numpy as np
import pytest

from autograd import Tensor, arena, backend, formulas_only, ops
from autograd.gradients import Lazy
from autograd.ops import REGISTRY

pytestmark = pytest.mark.skipif(backend.device != "cpu", reason="the twins here are the CPU's")

random = np.random.default_rng(5)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def integers(high, *shape):
    return random.integers(0, high, shape)


def with_ignored(targets, every):
    targets = targets.copy()
    targets.reshape(-1)[::every] = -1
    return targets


# op -> calls that its twins must take; sizes around tiles, blocks and the one-hot limit, and odd ones
CALLS = {
    "linear": [((normal(2, 3, 5), normal(5, 7), normal(7)), {}),
               ((normal(3, 5), normal(5, 7)), {}),
               ((normal(1, 300, 65), normal(130, 65)), {"transposed": True})],
    "embedding": [((normal(65, 8), integers(65, 3, 50)), {}),
                  ((normal(1000, 8), integers(1000, 4, 70)), {}),
                  ((normal(300, 3), integers(2, 500)), {})],
    "layer_norm": [((normal(2, 5, 6), normal(6), normal(6)), {}), ((normal(700, 130), normal(130)), {})],
    "add_layer_norm": [((normal(2, 5, 6), normal(2, 5, 6), normal(6), normal(6)), {}),
                       ((normal(700, 130), None, normal(130), normal(130)), {}),
                       ((normal(515, 129), normal(515, 129), normal(129)), {"eps": 1e-3})],
    "bias_gelu": [((normal(2, 5, 6), normal(6)), {}), ((3 * normal(131, 517), normal(517)), {})],
    "relu": [((normal(7),), {}), ((normal(200, 300),), {})],
    "packed_attention": [((normal(2, 7, 3 * 12),), {"d_head": 4}),
                         ((normal(1, 256, 3 * 64),), {"d_head": 32}),
                         ((normal(3, 1, 3 * 8),), {"d_head": 8}),
                         ((normal(5, 131, 3 * 18),), {"d_head": 6, "scale": 0.3}),
                         ((normal(2, 384, 3 * 40),), {"d_head": 8})],
    "cross_entropy": [((5 * normal(3, 7, 11), integers(11, 3, 7)), {}),
                      ((normal(600, 65), with_ignored(integers(65, 600), 7)), {"total": 1234}),
                      ((normal(4, 40000), with_ignored(integers(40000, 4), 2)), {}),
                      ((normal(4, 5), np.full(4, -1)), {})],
}
TWINS = {name: op for name, op in REGISTRY.items() if op.twins}


def test_every_twin_has_calls_here():
    assert set(CALLS) == set(TWINS)


def as_float64(x):
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def listed(y):
    return list(y) if isinstance(y, tuple) else [y]


def computed(gradients):
    return [None if g is None else g() if callable(g) else g for g in listed(gradients)]


def cases():
    return [pytest.param(name, number, owned, id=f"{name}-{number}-{'owned' if owned else 'shared'}")
            for name, calls in CALLS.items() for number in range(len(calls)) for owned in (False, True)]


@pytest.mark.parametrize("name, number, owned", cases())
def test_twin_equals_its_formula(name, number, owned):
    inputs, options = CALLS[name][number]
    (twin,) = [t for t in TWINS[name].twins if t.when(*inputs, **options)]
    expected, formula_backward = TWINS[name].formula.function(*map(as_float64, inputs), **options)
    ours = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
    y, backward = twin.function(*ours, **options, **({"owned": owned} if twin.consumes else {}))
    check_outputs(y, expected)
    dys = [random.standard_normal(part.shape).astype(np.float32) for part in listed(y)]
    given = [dy.copy() for dy in dys]
    single = not isinstance(y, tuple)
    rights = (owned if single else (owned,) * len(dys),) if twin.overwrites else ()
    gradients = backward(given[0] if single else tuple(given), *rights)
    check_gradients(gradients, formula_backward(as_float64(dys[0]) if single else tuple(map(as_float64, dys))), inputs)
    if not owned:
        for before, after in zip((*inputs, *dys), (*ours, *given)):
            np.testing.assert_array_equal(after, before, err_msg="written without being owned")


def check_outputs(y, expected):
    for ours, theirs in zip(listed(y), listed(expected), strict=True):
        assert ours.dtype == np.float32 and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def check_gradients(gradients, expected, inputs):
    for ours, lazy, theirs, x in zip(computed(gradients), listed(gradients), computed(expected), inputs):
        if theirs is None:
            continue
        assert ours.shape == x.shape and ours.dtype == x.dtype
        size = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours / size, theirs / size, rtol=1e-5, atol=2e-6)
        if isinstance(lazy, Lazy):
            check_placement(lazy, ours)


def check_placement(lazy, gradient):
    """A Lazy overwrites a fresh buffer and adds to one that is not."""
    out = np.full_like(gradient, np.nan)
    lazy.write(out, True)
    np.testing.assert_array_equal(out, gradient)
    lazy.write(out, False)
    np.testing.assert_allclose(out, 2 * gradient, rtol=1e-5, atol=1e-6)


def test_a_twin_leaves_what_it_does_not_understand_to_the_formula():
    x, w = normal(4, 6), normal(6, 3)
    for inputs in [(x.astype(np.float64), w), (x.T.copy().T, w), (x[:0], w), (x, w.T.copy().T)]:
        assert not any(t.when(*inputs) for t in TWINS["linear"].twins)
    assert not any(t.when(normal(2, 4, 24), d_head=4, groups=2) for t in TWINS["packed_attention"].twins)


def test_scratch_of_one_call_is_not_seen_in_the_result_of_another():
    """Results of two calls stay what they were while later calls use the same scratch."""
    x, gain, bias = normal(600, 128), normal(128), normal(128)
    first = [y.data.copy() for y in ops.add_layer_norm(x, x, gain, bias)]
    kept = ops.add_layer_norm(x, x, gain, bias)
    ops.add_layer_norm(normal(600, 128), x, gain, bias)
    ops.bias_gelu(normal(600, 128), bias)
    for y, expected in zip(kept, first):
        np.testing.assert_array_equal(y.data, expected)
    arena.clear()


@pytest.mark.parametrize("name, number", [(name, i) for name, calls in CALLS.items() for i in range(len(calls))])
def test_through_the_tape_twins_and_formulas_give_the_same_gradients(name, number):
    inputs, options = CALLS[name][number]

    def gradients():
        tensors = [Tensor(x.copy(), requires_grad=True) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                   for x in inputs]
        results = TWINS[name](*tensors, **options)
        results = results if isinstance(results, tuple) else (results,)
        sum((y * weight).sum() for y, weight in zip(results, range(1, 9))).backward()
        return [t.grad for t in tensors if isinstance(t, Tensor)]

    with formulas_only():
        expected = gradients()
    for ours, theirs in zip(gradients(), expected, strict=True):
        size = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours / size, theirs / size, rtol=1e-4, atol=2e-5)
