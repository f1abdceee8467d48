"""Every op of the registry keeps the whole contract, over drawn shapes and options."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd import Tensor, formulas_only, no_grad, ops
from autograd.backend import to_host
from autograd.gradcheck import check_op, gradcheck
from autograd.gradcheck.project import Inputs
from tests.autograd.ops.references import REFERENCES
from tests.strategies import STRATEGIES, for_op

NAMES = sorted(ops.REGISTRY)
WITHOUT_GRADIENT = ["argmax", "equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]
WITH_GRADIENT = sorted(set(NAMES) - set(WITHOUT_GRADIENT))
FEW = settings(max_examples=max(5, settings.default.max_examples // 5))      # the whole contract is many calls


def is_floating(x):
    return any(map(is_floating, x)) if isinstance(x, list) else isinstance(x, np.ndarray) and x.dtype.kind == "f"


def test_every_op_has_a_strategy_and_a_reference():
    assert set(STRATEGIES) == set(ops.REGISTRY) == set(REFERENCES)


def test_every_op_of_the_family_modules_is_in_the_registry():
    modules = [import_module(f"autograd.ops.{path.stem}") for path in Path(ops.__file__).parent.glob("[!_]*.py")]
    lifted = {value for module in modules for value in vars(module).values() if hasattr(value, "formula")}
    assert lifted == set(ops.REGISTRY.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_op_says_what_it_does(name):
    assert len(ops.REGISTRY[name].__doc__) > 20


@pytest.mark.parametrize("name", WITH_GRADIENT)
@given(data=st.data())
def test_backward_equals_a_difference_along_a_random_direction(name, data):
    inputs, options = data.draw(for_op(name, "float64"))
    gradcheck(lambda *args: ops.REGISTRY[name](*args, **options), inputs, tolerance=1e-6)


@pytest.mark.parametrize("name", WITH_GRADIENT)
@FEW
@given(data=st.data())
def test_every_op_keeps_the_contract(name, data):
    inputs, options = data.draw(for_op(name, "float64"))
    check_op(ops.REGISTRY[name], inputs, REFERENCES[name], **options)


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
@given(data=st.data())
def test_ops_without_gradient_give_values_and_no_past(name, data):
    inputs, options = data.draw(for_op(name, "float32"))
    y = ops.REGISTRY[name](*Inputs(inputs, "float32").args, **options)
    np.testing.assert_array_equal(y.numpy(), REFERENCES[name](*inputs, **options))
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="integers, comparisons, argmax"):
        y.backward()


@pytest.mark.parametrize("name", [name for name in NAMES if ops.REGISTRY[name].twins])
@given(data=st.data())
def test_twins_equal_formulas_through_the_tape(name, data):
    inputs, options = data.draw(for_op(name, "float32"))

    def run():
        held = Inputs(inputs, "float32")
        y = ops.REGISTRY[name](*held.args, **options)
        for each in y if isinstance(y, tuple) else (y,):
            each.backward(np.ones(each.shape, "float32") if isinstance(each.data, np.ndarray) else each.data * 0 + 1,
                          retain_graph=True)
        return [*(y if isinstance(y, tuple) else (y,)), *(leaf.grad for _, leaf in held.leaves)]

    tuned = run()
    with formulas_only():
        plain = run()
    for a, b in zip(tuned, plain):
        a, b = (to_host(x.data if isinstance(x, Tensor) else x) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * max(1, np.abs(b).max(initial=0)))


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_float16_stays_float16(name, data):
    inputs, options = data.draw(for_op(name, "float16"))
    with no_grad():
        y = ops.REGISTRY[name](*Inputs(inputs, "float16").args, **options)
    for each in y if isinstance(y, tuple) else (y,):
        assert each.dtype == "float16" or each.dtype.kind in "ib"
