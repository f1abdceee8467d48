"""The contract that every op keeps, checked for one example: what someone who writes a new op calls."""

import gc
import weakref

import numpy

from autograd.backend import to_device, to_host, xp
from autograd.gradcheck.difference import gradcheck
from autograd.gradcheck.project import Inputs, floating_outputs, project, random_like
from autograd.gradcheck.strictly import run_on_strict
from autograd.ops.common import shares_memory
from autograd.tape import backpropagate
from autograd.tensor import Tensor

DTYPES = {"float64": 1e-9, "float32": 1e-4}         # relative to the largest value


class ContractError(AssertionError):
    """An op or layer breaks a rule that the tape, the optimizer or the device relies on."""


def check_op(op, inputs, reference=None, *, empty=None, views=None, passes=None, strict=False, tolerance=1e-6,
             **options):
    """Hold `op(*inputs, **options)` against everything that an op promises.

    op         lifted by @op, or any function from Tensors to Tensors
    inputs     an example: floating-point arrays are checked, the rest (integers, masks, None) is passed on
    reference  NumPy arrays -> the same values, written in another way
    empty      inputs with zero-size arrays that the op shall take too, for example a batch of no rows
    views      may outputs share memory with inputs?  passes: may gradients share memory with dy?
               By default what the op declares with `@shares("y", "dy")`: nothing
    strict     run all of it again in a child process under MINIGPT_DEVICE=strict, where host arrays do not
               mix with device arrays; the op must stand in an importable module

    Checked in turn: values in float64 and float32; shape and dtype of each gradient; gradients against
    differences; inputs and dy left as they were; memory shared with nobody; non-contiguous inputs and dy;
    one array as several operands; zero-size arrays; nothing left alive.
    Raises GradientError or ContractError (AssertionErrors) at the first promise that is broken.
    """
    declared = getattr(op, "shares", ())
    views = "y" in declared if views is None else views
    passes = "dy" in declared if passes is None else passes
    name = getattr(op, "__name__", "op")
    call = lambda *args: op(*args, **options)

    if reference is not None:
        _check_values(name, call, inputs, lambda *args: reference(*args, **options))
    for dtype in DTYPES:
        _check_gradients_fit(name, call, inputs, dtype)
    gradcheck(call, inputs, tolerance=tolerance)
    _check_memory(name, call, inputs, views, passes)
    _check_layouts(name, call, inputs)
    _check_repeated(call, inputs, tolerance)
    if empty is not None:
        _check_gradients_fit(f"{name} without elements", call, empty, "float32")
    _check_leaks(name, call, inputs)
    if strict:
        run_on_strict(op, inputs, options)


def _check_values(name, call, inputs, reference):
    for dtype, tolerance in DTYPES.items():
        held = Inputs(inputs, dtype)
        results = call(*held.args)
        expected = reference(*_on_host(Inputs(inputs, "float64").args))
        results, expected = _listed(results), _listed(expected)
        if len(results) != len(expected):
            raise ContractError(f"{name}: {len(results)} outputs, the reference has {len(expected)}")
        for i, (y, e) in enumerate(zip(results, expected)):
            e = numpy.asarray(e)
            if y.shape != e.shape:
                raise ContractError(f"{name}: output {i} has shape {y.shape}, the reference {e.shape}")
            error = _error(to_host(y.data), e)
            if not error <= tolerance:
                raise ContractError(f"{name}: output {i} in {dtype} differs from the reference by {error:.2g} "
                                    f"of its largest value, more than {tolerance}")


def _listed(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _on_host(args):
    return [[to_host(y.data) for y in x] if isinstance(x, list) and all(isinstance(y, Tensor) for y in x)
            else to_host(x.data) if isinstance(x, Tensor) else x for x in args]


def _error(y, expected):
    """Largest difference, relative to the largest finite value; infinities and NaN must stand in the same places."""
    finite = numpy.isfinite(expected)
    if not numpy.array_equal(numpy.where(finite, 0, y), numpy.where(finite, 0, expected), equal_nan=True):
        return numpy.inf
    y, expected = numpy.where(finite, y, 0.0), numpy.where(finite, expected, 0.0)
    return numpy.abs(y - expected).max(initial=0) / max(numpy.abs(expected).max(initial=0), 1e-30)


class Backward:
    """One forward and backward, with every gradient as the op returned it, before anything was copied."""

    def __init__(self, call, held, arrange=lambda array: array):
        self.held, self.gradients = held, {}
        self.outputs = floating_outputs(call(*held.args))
        generator = numpy.random.default_rng(1)
        self.dys = [arrange(random_like(generator, y)) for y in self.outputs]
        self.given = [to_host(dy).copy() for dy in self.dys]
        reach = [y for y in self.outputs if y.requires_grad]
        for y, dy in zip(self.outputs, self.dys):
            if y.requires_grad:
                backpropagate(y, dy, retain_graph=y is not reach[-1], sink=self._receive)

    def _receive(self, leaf, gradient):
        gradient = gradient() if callable(gradient) else gradient
        self.gradients.setdefault(leaf, []).append(gradient)

    def of(self, leaf):
        """The whole gradient of a leaf on the host; None if the op has none."""
        parts = self.gradients.get(leaf)
        return None if parts is None else sum(to_host(part) for part in parts)


def _check_gradients_fit(name, call, inputs, dtype):
    for i, y in enumerate(floating_outputs(call(*Inputs(inputs, dtype).args))):
        if str(y.dtype) != dtype:
            raise ContractError(f"{name}: output {i} is {y.dtype}, its inputs are {dtype}: a NumPy scalar or an "
                                "integer array took part; convert it to the input's dtype")
    held = Inputs(inputs, dtype)
    try:
        run = Backward(call, held)
    except TypeError as error:
        raise ContractError(f"{name} in {dtype}: {error}") from error
    for label, leaf in held.leaves:
        for gradient in run.gradients.get(leaf, ()):
            if gradient.shape != leaf.shape or str(gradient.dtype) != dtype:
                raise ContractError(f"{name}: the gradient of {label} has shape {gradient.shape}, {gradient.dtype}; "
                                    f"it must be like the input, {leaf.shape}, {dtype}")


def _check_memory(name, call, inputs, views, passes):
    """Nothing is written that was given; nothing is shared that was not declared."""
    held = Inputs(inputs, "float64")
    before = {label: to_host(leaf.data).copy() for label, leaf in held.leaves}
    outputs = floating_outputs(call(*held.args))
    for label, leaf in held.leaves:
        if not numpy.array_equal(before[label], to_host(leaf.data), equal_nan=True):
            raise ContractError(f"{name}: forward wrote into {label}: compute into a new array")
        for i, y in enumerate(outputs):
            if not views and shares_memory(y.data, leaf.data):
                raise ContractError(f'{name}: output {i} shares memory with {label}: copy it, or declare @shares("y")')
    run = Backward(call, held)
    for dy, given in zip(run.dys, run.given):
        if not numpy.array_equal(given, to_host(dy)):
            raise ContractError(f"{name}: backward wrote into dy: others may still read it")
    for label, leaf in held.leaves:
        if not numpy.array_equal(before[label], to_host(leaf.data), equal_nan=True):
            raise ContractError(f"{name}: backward wrote into {label}")
        for gradient in run.gradients.get(leaf, ()):
            if not passes and any(shares_memory(gradient, dy) for dy in run.dys):
                raise ContractError(f'{name}: the gradient of {label} shares memory with dy: copy it, '
                                    'or declare @shares("dy")')
            if any(shares_memory(gradient, other.data) for _, other in held.leaves) or any(
                    shares_memory(gradient, y.data) for y in run.outputs):
                raise ContractError(f"{name}: the gradient of {label} shares memory with an input or an output, "
                                    "which accumulation would overwrite: copy it")


def strided(array):
    """The same values in memory that is not contiguous: every second place of a larger array."""
    wide = xp.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


def reversed_axes(array):
    """The same values, laid out in Fortran's order."""
    return xp.array(array.T, order="C").T if array.ndim > 1 else array


def _check_layouts(name, call, inputs):
    """Same values and gradients, however inputs and dy lie in memory."""
    plain = Backward(call, Inputs(inputs, "float64"))
    for word, arrange in (("non-contiguous", strided), ("transposed", reversed_axes)):
        other = Backward(call, Inputs(inputs, "float64", arrange=arrange), arrange)
        for i, (y, z) in enumerate(zip(plain.outputs, other.outputs)):
            if not _error(to_host(z.data), to_host(y.data)) <= 1e-9:
                raise ContractError(f"{name}: output {i} changes when inputs are {word} in memory")
        for (label, a), (_, b) in zip(plain.held.leaves, other.held.leaves):
            ga, gb = plain.of(a), other.of(b)
            if (ga is None) != (gb is None) or (ga is not None and not _error(gb, ga) <= 1e-9):
                raise ContractError(f"{name}: the gradient of {label} changes when inputs or dy are {word} in memory")


def _check_repeated(call, inputs, tolerance):
    """One array as two operands: its gradient is the sum of both (CASES 3)."""
    leaves = [i for i, x in enumerate(inputs) if hasattr(x, "dtype") and x.dtype.kind == "f"]
    for first, i in enumerate(leaves):
        for j in leaves[first + 1:]:
            if inputs[i].shape == inputs[j].shape:
                def twice(x, i=i, j=j):
                    args = list(inputs)
                    args[i] = args[j] = x
                    return call(*[_as_float64(a) for a in args])
                gradcheck(twice, [inputs[i]], names=[f"one array as inputs {i} and {j}"], tolerance=tolerance)


def _as_float64(x):
    if isinstance(x, numpy.ndarray) and x.dtype.kind == "f":
        return to_device(x.astype("float64"))
    if isinstance(x, Tensor) and x.origin is None and x.dtype.kind == "f" and x.dtype != xp.float64:
        return Tensor(x.data.astype(xp.float64))
    return x


def _check_leaks(name, call, inputs):
    """With the cycle collector off, everything dies with its last user: with and without backward (CASES 39)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        for backward in (False, True):
            watched = _watched(call, inputs, backward)
            alive = [what for what, reference in watched if reference() is not None]
            if alive:
                raise ContractError(f"{name}: still alive after {'backward' if backward else 'forward'} and the last "
                                    f"reference: {', '.join(alive)}. Backward must close over arrays, never over "
                                    "Tensors or itself")
    finally:
        if enabled:
            gc.enable()


def _watched(call, inputs, backward):
    """Weak references to all that one call makes; its only strong ones end here."""
    held = Inputs(inputs, "float64")
    outputs = floating_outputs(call(*held.args))
    watched = [(label, weakref.ref(leaf.data)) for label, leaf in held.leaves]
    watched += [(f"output {i}", weakref.ref(y.data)) for i, y in enumerate(outputs)]
    watched += [("the node", weakref.ref(y.origin[0])) for y in outputs if y.origin]
    watched += [("its backward", weakref.ref(y.origin[0].backward)) for y in outputs if y.origin]
    if backward and any(y.requires_grad for y in outputs):
        project(outputs, [xp.ones_like(y.data) for y in outputs]).backward()
    return watched
