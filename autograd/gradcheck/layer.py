"""The contract of a layer: any callable from Tensors to Tensors that holds parameters."""

import gc
import weakref

import numpy

from autograd.backend import to_host
from autograd.gradcheck.contract import ContractError, _check_values
from autograd.gradcheck.difference import gradcheck
from autograd.gradcheck.project import Inputs, floating_outputs, project, random_like
from autograd.tensor import Tensor


def check_layer(layer, inputs, reference=None, *, parameters=None, unused=(), empty=None, tolerance=1e-6):
    """Hold `layer(*inputs)` against everything that a layer promises.

    layer       a callable with its parameters initialised
    inputs      an example: floating-point arrays are checked, the rest (token ids, masks) is passed on
    reference   NumPy arrays -> the same values, in the dtype of the parameters
    parameters  (name, Tensor) pairs; by default `layer.named_parameters()`, or else every leaf that requires a
                gradient among its attributes, in lists and dicts
    unused      names of parameters that this call shall not reach; all others must get a gradient
    empty       inputs with zero-size arrays that the layer shall take too

    Checked in turn: gradients of inputs and parameters against differences, in float64; shape and dtype of each
    in the parameters' own dtype; a second call gives the same; parameters and inputs left as they were; nothing
    of a call kept by the layer.  Parameters and their gradients are as before afterwards.
    Raises GradientError or ContractError (AssertionErrors) at the first promise that is broken.
    """
    name = type(layer).__name__
    parameters = list(parameters_of(layer) if parameters is None else parameters)
    before = [(p, p.data, p.grad, p.buffer) for _, p in parameters]
    dtype = str(parameters[0][1].dtype) if parameters else "float32"
    try:
        for _, p in parameters:
            p.buffer = None
        if reference is not None:
            _check_values(name, layer, inputs, reference)
        gradcheck(layer, inputs, parameters=parameters, tolerance=tolerance)
        _check_training_dtype(name, layer, inputs, parameters, unused, dtype)
        if empty is not None:
            _check_training_dtype(name, layer, empty, parameters, unused, dtype)
        _check_keeps_nothing(name, layer, inputs, dtype)
    finally:
        for p, *state in before:
            p.data, p.grad, p.buffer = state


def parameters_of(layer):
    """(name, leaf) for every leaf that requires a gradient in the layer's attributes, lists and dicts."""
    if hasattr(layer, "named_parameters"):
        return list(layer.named_parameters())
    return list(_walk(layer, "", set()))


def _walk(x, name, seen):
    if id(x) in seen:
        return
    seen.add(id(x))
    if isinstance(x, Tensor):
        if x.requires_grad and x.origin is None:
            yield name, x
        return
    children = (x if isinstance(x, dict) else dict(enumerate(x)) if isinstance(x, (list, tuple))
                else getattr(x, "__dict__", {}) if callable(x) else {})
    for key, child in children.items():
        yield from _walk(child, f"{name}.{key}" if name else str(key), seen)


def _check_training_dtype(name, layer, inputs, parameters, unused, dtype):
    """One forward and backward as in training."""
    held = Inputs(inputs, dtype)
    leaves = [*held.leaves, *parameters]
    values = [to_host(leaf.data).copy() for _, leaf in leaves]
    for _, leaf in leaves:
        leaf.grad = None
    outputs = floating_outputs(layer(*held.args))
    _check_unchanged(name, "forward", leaves, values)
    again = floating_outputs(layer(*held.args))
    for i, (y, z) in enumerate(zip(outputs, again)):
        if str(y.dtype) != dtype:
            raise ContractError(f"{name}: output {i} is {y.dtype}, parameters and inputs are {dtype}")
        if not numpy.array_equal(to_host(y.data), to_host(z.data), equal_nan=True):
            raise ContractError(f"{name}: a second call with the same inputs gives another output {i}: "
                                "what is random must follow from the inputs")
    generator = numpy.random.default_rng(2)
    project(outputs, [random_like(generator, y) for y in outputs]).backward()
    _check_unchanged(name, "backward", leaves, values)
    for label, leaf in leaves:
        _check_gradient(name, label, leaf, label in unused)


def _check_unchanged(name, what, leaves, values):
    for (label, leaf), value in zip(leaves, values):
        if not numpy.array_equal(value, to_host(leaf.data), equal_nan=True):
            raise ContractError(f"{name}: {label} was changed by {what}: compute into a new array")


def _check_gradient(name, label, leaf, unused):
    if leaf.grad is None:
        if not unused and leaf.size and not label.startswith("input "):
            raise ContractError(f"{name}: {label} got no gradient: use it in forward, or name it in unused=")
        return
    if unused:
        raise ContractError(f"{name}: {label} got a gradient though it is said to be unused")
    if leaf.grad.shape != leaf.shape or leaf.grad.dtype != leaf.dtype:
        raise ContractError(f"{name}: the gradient of {label} is {leaf.grad.shape}, {leaf.grad.dtype}; "
                            f"it must be {leaf.shape}, {leaf.dtype}")


def _check_keeps_nothing(name, layer, inputs, dtype):
    """A layer that stores activations on itself holds the whole graph (CASES 39, 40)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        held = Inputs(inputs, dtype)
        outputs = floating_outputs(layer(*held.args))
        watched = [(label, weakref.ref(leaf.data)) for label, leaf in held.leaves]
        watched += [(f"output {i}", weakref.ref(y)) for i, y in enumerate(outputs)]
        del held, outputs
        alive = [label for label, reference in watched if reference() is not None]
        if alive:
            raise ContractError(f"{name}: still alive after the call and the last reference: {', '.join(alive)}. "
                                "A layer must not keep what it computes")
    finally:
        if enabled:
            gc.enable()
