"""Reverse-mode automatic differentiation: the tape.

An op is a function over arrays that returns its output and its backward:

    y, backward = op(x, ...)            dx, ... = backward(dy)

`@op` lifts such a function to Tensors and records one Node per call.  What backward needs is what
it closes over: arrays, never nodes, so nothing forms a cycle and memory is freed by reference
count.  Nodes are numbered as they are made, so descending number is a reverse topological order.

A gradient is an array, None (no gradient), or lazy: a zero-argument function, called when, and only
if, somebody wants it.  A `Lazy` can also write straight into the buffer where it is to be added.
"""

from contextlib import contextmanager
from functools import wraps
from inspect import signature
from itertools import count

from numpy import generic

from autograd.backend import is_array, xp
from autograd.debug import check_finite
from autograd.ownership import alone, handed_over
from autograd.rank import rank
from autograd.tensor import Tensor

_serial = count()
_new = Tensor.__new__


class Node:
    """One call of an op.

    parents     for every input: None (no gradient wanted), a leaf Tensor, or (node, output number);
                a tuple of such entries where the input was a list
    backward    gradients of the outputs -> gradients of the inputs; None once released
    outputs     (shape, dtype) of every output
    overwrites  backward takes a second argument: whether it may write into dy
    layer       name of the layer that called, in debug mode
    """
    __slots__ = ("serial", "name", "parents", "backward", "outputs", "overwrites", "layer", "__weakref__")

    def __init__(self, name, parents, backward, outputs, overwrites):
        self.serial, self.name, self.parents, self.backward = next(_serial), name, parents, backward
        self.outputs, self.overwrites, self.layer = outputs, overwrites, rank.layer

    def __repr__(self):
        return f"<{self.name} #{self.serial} {self.outputs[0][0]}>"


class Lazy:
    """A gradient that can be computed into place.

    write(out, fresh)   sets out to the gradient if fresh, adds the gradient to out if not
    Called with nothing, it returns the gradient as a new array.
    """
    __slots__ = ("write", "shape", "dtype")

    def __init__(self, write, shape, dtype):
        self.write, self.shape, self.dtype = write, shape, dtype

    def __call__(self):
        out = xp.empty(self.shape, self.dtype)
        self.write(out, True)
        return out


class Body:
    """One way to compute an op: its formula, or a tuned twin.

    when        arrays, options -> whether this twin can take the call
    consumes    the function takes owned=: whether it may overwrite its first input
    overwrites  its backward takes owned: whether it may overwrite dy
    """
    __slots__ = ("function", "when", "consumes", "overwrites")

    def __init__(self, function, when=None, consumes=False, overwrites=False):
        self.function, self.when, self.consumes, self.overwrites = function, when, consumes, overwrites


# ------------------------------------------------------------------------------------ recording

def op(function):
    """Lift `function(*arrays, **options) -> (y, backward)` to Tensors.

    Inputs may be Tensors, arrays, numbers, None or lists of Tensors; a Tensor may also be given by
    keyword.  `y` may be a tuple of outputs: then backward takes a tuple, with None for an output
    that nobody used.  Integer and boolean outputs, and all outputs of a function that returns None
    for its backward, carry no gradient.  For a list input, backward returns a list.

    The lifted function has `.formula` (a Body) and `.twins` (more of them, see `accelerates`).
    """
    parameters = list(signature(function).parameters.values())
    formula, twins, name = Body(function), [], function.__name__

    @wraps(function)
    def apply(*inputs, **options):
        if options and any(isinstance(value, Tensor) for value in options.values()):
            inputs, options = _by_position(name, parameters, inputs, options)
        arrays = [x.data if isinstance(x, Tensor) else _array_of(x) for x in inputs]
        body = formula
        if twins and rank.twins:
            for twin in twins:
                if twin.when(*arrays, **options):
                    body = twin
                    if twin.consumes:
                        options["owned"] = isinstance(inputs[0], Tensor) and handed_over(inputs)
                    break
        y, backward = body.function(*arrays, **options)
        parents = _parents(inputs) if backward is not None and rank.recording else None
        outputs = y if type(y) is tuple else (y,)
        results = _record(name, parents, backward, outputs, body.overwrites)
        if rank.debug:
            check_finite(name, arrays, outputs)
        return tuple(results) if outputs is y else results[0]

    apply.formula, apply.twins = formula, twins
    return apply


def accelerates(target, when, consumes=False, overwrites=False):
    """Register a function with the signature of the op `target` as its twin, tried where `when` says so."""
    def register(function):
        target.twins.append(Body(function, when, consumes, overwrites))
        return function
    return register


def _by_position(name, parameters, inputs, options):
    """Move Tensors given by keyword to their place among the positional inputs."""
    inputs, options = list(inputs), dict(options)
    last = max(i for i, p in enumerate(parameters) if isinstance(options.get(p.name), Tensor))
    for p in parameters[len(inputs):last + 1]:
        if p.kind == p.KEYWORD_ONLY:
            raise TypeError(f"{name}: {p.name} takes an array, not a Tensor: no gradient flows through it")
        if p.name not in options and p.default is p.empty:
            raise TypeError(f"{name}: missing input {p.name!r}")
        inputs.append(options.pop(p.name, p.default))
    return tuple(inputs), options


def _array_of(x):
    """An input that is not a Tensor: NumPy scalars become Python numbers, so that they never promote."""
    if isinstance(x, generic):
        return x.item()
    if isinstance(x, (list, tuple)):
        return [i.data if isinstance(i, Tensor) else i for i in x]
    return x


def _parents(inputs):
    """Where gradients of the inputs go; None if nowhere."""
    parents, wanted = [], False
    for x in inputs:
        if isinstance(x, Tensor):
            parent = (x.origin or x) if x.requires_grad else None
        elif isinstance(x, (list, tuple)):
            parent = _parents(x)
        else:
            parent = None
        wanted = wanted or parent is not None
        parents.append(parent)
    return tuple(parents) if wanted else None


def _record(name, parents, backward, outputs, overwrites):
    """Wrap output arrays in Tensors; make the node if a gradient is wanted."""
    outputs = [y if is_array(y) else xp.asarray(y) for y in outputs]
    node = None
    if parents is not None:
        node = Node(name, parents, backward, tuple([(y.shape, y.dtype) for y in outputs]), overwrites)
    results = []
    for i, y in enumerate(outputs):
        tensor = _new(Tensor)
        tensor.data, tensor.grad, tensor.buffer = y, None, None
        tensor.requires_grad = node is not None and y.dtype.kind == "f"
        tensor.origin = (node, i) if tensor.requires_grad else None
        results.append(tensor)
    return results


@contextmanager
def no_grad():
    """Record nothing: results have no past and hold no activations."""
    before, rank.recording = rank.recording, False
    try:
        yield
    finally:
        rank.recording = before


@contextmanager
def formulas_only():
    """Run every op by its formula, never by a tuned twin."""
    before, rank.twins = rank.twins, False
    try:
        yield
    finally:
        rank.twins = before


# ------------------------------------------------------------------------------------ going back

def backpropagate(output, grad=None, retain_graph=False, sink=None):
    """Push `grad` from `output` back to every leaf that requires it.

    grad          dL/d(output), an array of its shape; None means 1 for an output of one element
    retain_graph  keep the graph for another backward; otherwise it is released as it is used
    sink          sink(leaf, gradient) receives the gradients of leaves; by default they are added
                  to `.grad`.  A `Deferred` keeps the lazy ones for later.

    Raises RuntimeError as `Tensor.backward` says.
    """
    grad, sink = _root_gradient(output, grad), sink or add_to_leaf
    if output.origin is None:
        return sink(output, grad)
    root, index = output.origin
    order, uses = _reachable(root)
    if rank.accumulation is not None:
        rank.accumulation.begin(uses)
    pending = {root: [None] * len(root.outputs)}
    pending[root][index] = grad
    del grad
    for node in order:
        if node in pending:
            _backward_of(node, pending, retain_graph, sink)
        if rank.after_node is not None:
            rank.after_node()


def _root_gradient(output, grad):
    if not output.requires_grad:
        raise RuntimeError("backward of something that requires no gradient: no input of it has requires_grad=True, "
                           "it was made under no_grad, or it comes from an op without a gradient "
                           f"(integers, comparisons, argmax); its dtype is {output.dtype}")
    if grad is None:
        if output.size != 1:
            raise RuntimeError(f"backward of a tensor of shape {output.shape} needs its gradient: "
                               "call backward(grad) or reduce it to one number first")
        return xp.ones(output.shape, output.dtype)
    grad = grad.data if isinstance(grad, Tensor) else xp.asarray(grad, dtype=output.dtype)
    if grad.shape != output.shape:
        raise RuntimeError(f"gradient of shape {grad.shape} for a tensor of shape {output.shape}: they must be equal")
    return grad


def _reachable(root):
    """All nodes that feed the root, latest first, and how often each leaf is used."""
    seen, stack, uses = {root}, [root], {}
    while stack:
        node = stack.pop()
        if node.backward is None:
            raise RuntimeError(f"this graph was released by an earlier backward (at {node.name}): call "
                               "backward(retain_graph=True) the first time, or run forward again")
        for entry in node.parents:
            if entry is None:
                continue
            for parent in (entry if _is_list(entry) else (entry,)):
                if type(parent) is tuple:
                    if parent[0] not in seen:
                        seen.add(parent[0])
                        stack.append(parent[0])
                elif parent is not None:
                    uses[parent] = uses.get(parent, 0) + 1
    return sorted(seen, key=_by_serial, reverse=True), uses


def _by_serial(node):
    return node.serial


def _is_list(entry):
    """A parents' entry is (node, number) for one input and a tuple of entries for a list of inputs."""
    return type(entry) is tuple and type(entry[0]) is not Node


def _backward_of(node, pending, retain_graph, sink):
    """Run one node's backward and hand its gradients on.  (Its locals die here, so that `alone` counts right.)"""
    dys, backward, parents = pending.pop(node), node.backward, node.parents
    if not retain_graph:
        node.backward, node.parents = None, ()
    single = len(dys) == 1
    if node.overwrites:
        owned = alone(dys, 0) if single else tuple([dy is not None and alone(dys, i) for i, dy in enumerate(dys)])
        gradients = backward(dys[0] if single else tuple(dys), owned)
    else:
        gradients = backward(dys[0] if single else tuple(dys))
    if type(gradients) is not tuple:
        gradients = (gradients,)
    if len(gradients) != len(parents):
        _check_count(node, parents, gradients)
    for entry, gradient in zip(parents, gradients):
        if entry is None:
            continue
        if _is_list(entry):
            for parent, part in zip(entry, gradient, strict=True):
                if parent is not None:
                    _hand_on(node, parent, part, pending, sink)
        else:
            _hand_on(node, entry, gradient, pending, sink)


def _check_count(node, parents, gradients):
    """Gradients may be left out at the end, for inputs that want none; more than inputs is a mistake."""
    if len(gradients) > len(parents) or any(p is not None for p in parents[len(gradients):]):
        raise TypeError(f"{node.name}: its backward returned {len(gradients)} gradients for {len(parents)} inputs: "
                        "return one for every input, None where there is none")


def _hand_on(node, parent, gradient, pending, sink):
    """Give one gradient to a leaf, or add it to what waits for an earlier node."""
    if type(parent) is not tuple:
        if gradient is None:
            gradient = _zeros_like(parent)
        elif not callable(gradient) or type(gradient) is Lazy:
            _check(node, gradient, parent.data.shape, parent.data.dtype)
        return sink(parent, gradient)
    if gradient is None:
        return None
    source, index = parent
    if callable(gradient):
        gradient = gradient()
    _check(node, gradient, *source.outputs[index])
    if source not in pending:
        pending[source] = [None] * len(source.outputs)
    waiting = pending[source]
    if waiting[index] is None:
        waiting[index] = gradient
    elif alone(waiting, index):
        xp.add(waiting[index], gradient, out=waiting[index])
    else:
        waiting[index] = waiting[index] + gradient
    return None


def _check(node, gradient, shape, dtype):
    """An op must return gradients like its inputs (CASES 7, 24)."""
    if gradient.shape != shape or gradient.dtype != dtype:
        raise TypeError(f"{node.name}: its backward returned a gradient of shape {gradient.shape}, {gradient.dtype}, "
                        f"for an input of shape {shape}, {dtype}: they must be equal")
    if rank.debug and type(gradient) is not Lazy:
        check_finite(f"backward of {node.name}", (), (gradient,), node.layer)


def _zeros_like(leaf):
    """The gradient of a leaf that an op says has no influence: zero, so that the use still counts."""
    return Lazy(lambda out, fresh: out.fill(0) if fresh else None, leaf.data.shape, leaf.data.dtype)


# ------------------------------------------------------------------------------------ leaves

def add_to_leaf(leaf, gradient):
    """Add a gradient, lazy or not, to `leaf.grad`; in place only into the leaf's own buffer."""
    if leaf.buffer is not None:
        _add_to_buffer(leaf, gradient)
    else:
        gradient = gradient() if callable(gradient) else gradient
        if gradient.shape != leaf.data.shape:
            raise TypeError(f"gradient of shape {gradient.shape} for a leaf of shape {leaf.data.shape}")
        leaf.grad = gradient.copy() if leaf.grad is None else leaf.grad + gradient
    if rank.accumulation is not None:
        rank.accumulation.used(leaf)


def _add_to_buffer(leaf, gradient):
    fresh, out = leaf.grad is None, leaf.buffer
    if not fresh and leaf.grad is not out:
        out[...] = leaf.grad            # somebody replaced the gradient: go on from theirs
    if type(gradient) is Lazy:
        gradient.write(out, fresh)
    else:
        gradient = gradient() if callable(gradient) else gradient
        if gradient.shape != out.shape:
            raise TypeError(f"gradient of shape {gradient.shape} for a leaf of shape {out.shape}")
        if fresh:
            out[...] = gradient
        else:
            xp.add(out, gradient, out=out)
    leaf.grad = out


class Deferred(list):
    """A sink that keeps lazy gradients of leaves for later: the W of zero-bubble pipelines.

    `run()` computes and adds them, in the order in which they were met.
    """

    def __call__(self, leaf, gradient):
        if callable(gradient):
            self.append((leaf, gradient))
        else:
            add_to_leaf(leaf, gradient)

    def run(self):
        owed, self[:] = list(self), []
        for leaf, gradient in owed:
            add_to_leaf(leaf, gradient)


class Accumulation:
    """Knows when a leaf's gradient is complete: see `accumulation`."""

    def __init__(self, parameters, backwards, on_complete):
        self.parameters, self.backwards, self.on_complete = list(parameters), backwards, on_complete
        self.owed, self.complete = {}, set()

    def begin(self, uses):
        if self.backwards == 0:
            raise RuntimeError("more backwards than accumulation(backwards=...) announced: count every micro-batch")
        self.backwards -= 1
        for leaf, number in uses.items():
            self.owed[leaf] = self.owed.get(leaf, 0) + number

    def used(self, leaf):
        self.owed[leaf] = self.owed.get(leaf, 1) - 1
        if self.owed[leaf] == 0 and self.backwards == 0:
            self._fire(leaf)

    def flush(self):
        """Leaves that the last backward did not reach, in the order of the parameters."""
        late = [name for name, number in self.owed.items() if number]
        if late or self.backwards:
            raise RuntimeError(f"accumulation ended with {self.backwards} backwards missing and "
                               f"{len(late)} gradients still owed: run every micro-batch and every Deferred")
        for leaf in self.parameters:
            self._fire(leaf)

    def _fire(self, leaf):
        if leaf not in self.complete:
            self.complete.add(leaf)
            if self.on_complete is not None:
                self.on_complete(leaf)


@contextmanager
def accumulation(parameters, backwards=1, on_complete=None):
    """Announce how many backwards make one step, and hear of every leaf whose gradient is complete.

    parameters   the leaves, in the order in which unused ones are reported at the end
    backwards    number of backward calls (micro-batches) of this step
    on_complete  on_complete(leaf), when the last use of the leaf in the last backward was added;
                 a leaf that the step did not use is reported at the end, its grad perhaps None

    Raises RuntimeError for more or fewer backwards than announced.
    """
    if rank.accumulation is not None:
        raise RuntimeError("accumulation inside accumulation: a step is announced once, around all its backwards")
    rank.accumulation = opened = Accumulation(parameters, backwards, on_complete)
    try:
        yield opened
        opened.flush()
    finally:
        rank.accumulation = None


# An op whose only input nobody else holds, so that `handed_over` learns what its counts look like.
@op
def _made_for_this_call(x):
    return x, None


@accelerates(_made_for_this_call, when=lambda x: True, consumes=True)
def _look(x, owned):
    return x, None


_made_for_this_call(Tensor([0.0]))
