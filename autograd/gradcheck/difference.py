"""Gradients against differences, along random directions (Griewank and Walther, Evaluating Derivatives, 2008).

With random weights w on the outputs and a random direction v of one input, <w, J v> is a difference of two
values and <J^T w, v> comes from one backward: two numbers that check a whole Jacobian.

Two step sizes give one-sided slopes at h and h/2.  Where the function is smooth, the gap between the slopes
to the right and to the left halves with the step; if it does not, a kink (ReLU at 0, ties of max) lies in
between and differences say nothing: the point is moved a little, and if kinks are everywhere, the input is
skipped with a warning.
"""

import math
import warnings
from typing import NamedTuple

import numpy

from autograd.backend import to_host, xp
from autograd.gradcheck.project import Inputs, floating_outputs, project, random_like
from autograd.tape import no_grad

STEP = 2e-4                 # truncation STEP^4 after extrapolation, rounding 1e-16 / STEP: both near 1e-12
MOVES = 4                   # times that a point is moved away from a kink
LOCATE = 4096               # elements up to which a wrong gradient is searched for its worst element


class GradientError(AssertionError):
    """A gradient does not match the differences of the function."""


class Unchecked(UserWarning):
    """Differences say nothing here: kinks wherever the point was moved."""


class Checked(NamedTuple):
    """What `gradcheck` found for one input: <J^T w, v> from differences and from backward."""
    name: str
    numeric: float
    analytic: float
    note: str = ""


def gradcheck(function, inputs, *, parameters=(), names=(), tolerance=1e-6, seed=0, directions=1):
    """Compare the gradients of `function(*inputs)` with differences in float64.

    function    Tensors -> Tensor, or several; deterministic; computes in the dtype of its inputs
    inputs      floating-point arrays or Tensors (also in lists) are checked; the rest is passed as it is
    parameters  (name, leaf) pairs that the function reaches by itself; converted for the check, then restored
    tolerance   of the difference, relative to the length of the gradient
    directions  random directions for every input

    -> [Checked(name, numeric, analytic, note)], where note tells of a point that was moved off a kink.
    Raises GradientError naming input, numbers and worst element; warns Unchecked where kinks are everywhere.
    """
    generator = numpy.random.default_rng(seed)
    held = Inputs(inputs, xp.float64, names)
    parameters = list(parameters)
    before = [(leaf, leaf.data, leaf.grad, leaf.buffer) for _, leaf in parameters]
    try:
        for _, leaf in parameters:
            leaf.data, leaf.buffer = leaf.data.astype(xp.float64), None
        point = Point(function, held.args, [*held.leaves, *parameters], generator)
        return [_check_leaf(point, i, tolerance) for _ in range(directions) for i in range(len(point.leaves))]
    finally:
        for leaf, *state in before:
            leaf.data, leaf.grad, leaf.buffer = state


class Point:
    """A function with its leaves at one point, projected on random weights."""

    def __init__(self, function, args, leaves, generator):
        self.function, self.args, self.leaves, self.generator = function, args, leaves, generator
        if not leaves:
            raise ValueError("gradcheck: nothing to check, no input is floating point")
        self.outputs = floating_outputs(function(*args))
        for y in self.outputs:
            if y.dtype != xp.float64:
                raise GradientError(f"computed {y.dtype} from float64: differences need all of it in float64; "
                                    "take dtypes from the inputs")
        self.weights = [random_like(generator, y) for y in self.outputs]
        value = self.value()
        if not math.isfinite(value):
            raise GradientError(f"the outputs hold NaN or infinity (their weighted sum is {value}): "
                                "choose inputs where the function is finite")
        if value != self.value():
            raise GradientError("two calls gave two results: fix what is random, for instance pass the mask of dropout")

    def value(self):
        with no_grad():
            return project(floating_outputs(self.function(*self.args)), self.weights).item()

    def gradient(self, leaf):
        """dL/d(leaf) as backward has it, in NumPy."""
        for _, other in self.leaves:
            other.grad = None
        loss = project(floating_outputs(self.function(*self.args)), self.weights)
        if loss.requires_grad:
            loss.backward()
        grad = xp.zeros(leaf.shape, leaf.dtype) if leaf.grad is None else leaf.grad
        if grad.shape != leaf.shape or grad.dtype != leaf.dtype:
            raise GradientError(f"gradient of shape {grad.shape}, {grad.dtype} for {leaf.shape}, {leaf.dtype}")
        return to_host(grad)

    def magnitude(self):
        """Sum of the terms' absolute values: what rounding errors are relative to."""
        with no_grad():
            outputs = floating_outputs(self.function(*self.args))
        return sum(float(xp.abs(y.data * w).sum()) for y, w in zip(outputs, self.weights))


def _check_leaf(point, i, tolerance):
    """Check one leaf along one direction, moving all leaves off kinks."""
    name, leaf = point.leaves[i]
    note = ""
    for attempt in range(MOVES + 1):
        analytic_gradient = point.gradient(leaf)
        if leaf.size == 0:
            return Checked(name, 0.0, 0.0, "no elements")
        direction = random_like(point.generator, leaf)
        host = to_host(direction)
        analytic, length = float((analytic_gradient * host).sum()), float(numpy.sqrt((analytic_gradient**2).sum()))
        numeric, kink, noise = _differences(point, leaf, direction, tolerance, length)
        if not kink:
            if not abs(numeric - analytic) <= tolerance * max(length, abs(numeric)) + noise:
                raise GradientError(_explain(point, i, numeric, analytic, analytic_gradient, noise))
            return Checked(name, numeric, analytic, note)
        _move(point, attempt)
        note = f"moved off a kink {attempt + 1} times"
    warnings.warn(f"gradcheck: {name} was skipped: a kink within {STEP} of every point that was tried",
                  Unchecked, stacklevel=4)
    return Checked(name, numeric, analytic, "skipped: kinks everywhere")


def _differences(point, leaf, direction, tolerance, length):
    """-> (slope along the direction, is a kink near, how far rounding may move the slope)."""
    start = leaf.data

    def at(step):
        leaf.data = start + step * direction
        return point.value()

    try:
        middle = point.value()
        right, left, half_right, half_left = at(STEP), at(-STEP), at(STEP / 2), at(-STEP / 2)
    finally:
        leaf.data = start
    gap = (right - 2 * middle + left) / STEP                       # right slope - left slope at each step size
    half_gap = (half_right - 2 * middle + half_left) / (STEP / 2)
    wide, narrow = (right - left) / (2 * STEP), (half_right - half_left) / STEP
    noise = 50 * 2.2e-16 * point.magnitude() / STEP
    scale = max(length, abs(wide))
    kink = (abs(half_gap - gap / 2) > 0.25 * tolerance * scale + noise
            or abs(wide - narrow) > 1e-3 * scale + noise)
    return (4 * narrow - wide) / 3, kink, noise                    # Richardson's extrapolation


def _move(point, attempt):
    """Take every leaf a random step, larger each time, away from where it stands."""
    for _, leaf in point.leaves:
        leaf.data = leaf.data + 0.01 * 2**attempt * random_like(point.generator, leaf)


def _explain(point, i, numeric, analytic, gradient, noise):
    name, leaf = point.leaves[i]
    text = (f"the gradient of {name} {leaf.shape} is wrong: along a random direction differences give "
            f"{numeric:.9g}, backward gives {analytic:.9g}")
    if leaf.size > LOCATE:
        return text
    start, slopes = to_host(leaf.data), numpy.empty(leaf.shape)
    for index in numpy.ndindex(leaf.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = start.copy()
            moved[index] += step
            leaf.data = xp.asarray(moved)
            ends.append(point.value())
        slopes[index] = (ends[0] - ends[1]) / (2 * STEP)
    leaf.data = xp.asarray(start)
    wrong = numpy.abs(slopes - gradient)
    worst = numpy.unravel_index(wrong.argmax(), wrong.shape)
    place = tuple(int(n) for n in worst)
    return (f"{text}; {int((wrong > 1e-5 * numpy.abs(slopes).max() + noise).sum())} of {leaf.size} elements are off, "
            f"worst at {place}: differences {slopes[worst]:.6g}, backward {gradient[worst]:.6g}")


def check_adjoint(function, x, *, seed=0, tolerance=1e-12):
    """<f(x), w> = <x, f*(w)> for a linear function of one array: its backward is its transpose, without differences.

    Raises GradientError if the two products differ by more than `tolerance` of their terms.
    """
    held = Inputs([x], xp.float64)
    leaf = held.leaves[0][1]
    y, = floating_outputs(function(leaf))
    w = random_like(numpy.random.default_rng(seed), y)
    y.backward(w)
    back = xp.zeros(leaf.shape, leaf.dtype) if leaf.grad is None else leaf.grad
    forth, backward = float((y.data * w).sum()), float((leaf.data * back).sum())
    terms = float(xp.abs(y.data * w).sum()) + float(xp.abs(leaf.data * back).sum())
    if not abs(forth - backward) <= tolerance * terms:
        raise GradientError(f"<f(x), w> = {forth:.12g}, but <x, f*(w)> = {backward:.12g}: "
                            "backward is not the transpose of forward")
