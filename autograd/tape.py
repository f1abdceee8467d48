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

from autograd.backend import ndarray, xp
from autograd.debug import check_finite
from autograd.gradients import Lazy, add_to_leaf
from autograd.ownership import alone, handed_over
from autograd.rank import rank
from autograd.tensor import Tensor

_serial = count()
_new = Tensor.__new__
PLAIN = frozenset((type(None), int, float, bool, str, ndarray))      # inputs that an op takes as they are


class Node:
    """One call of an op.

    parents     for every input: None (no gradient wanted), a leaf Tensor, or (node, output number);
                Several such entries where the input was a list
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


class Several(tuple):
    """The parents of the tensors of one list input."""
    __slots__ = ()


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
        for value in options.values():
            if isinstance(value, Tensor):
                inputs, options = _by_position(name, parameters, inputs, options)
                break
        arrays, parents, wanted = [], [], False
        for x in inputs:
            if isinstance(x, Tensor):
                arrays.append(x.data)
                if x.requires_grad:
                    parents.append(x.origin or x)
                    wanted = True
                    continue
            elif type(x) in PLAIN:
                arrays.append(x)
            else:
                array, parent = _not_a_tensor(x)
                arrays.append(array)
                parents.append(parent)
                wanted = wanted or parent is not None
                continue
            parents.append(None)
        x = None                                        # or `handed_over` would count it
        body = formula
        if twins and rank.twins:
            for twin in twins:
                if twin.when(*arrays, **options):
                    body = twin
                    if twin.consumes:
                        options["owned"] = isinstance(inputs[0], Tensor) and handed_over(inputs)
                    break
        y, backward = body.function(*arrays, **options)
        if rank.debug:
            check_finite(name, arrays, y if type(y) is tuple else (y,))
        if not wanted or backward is None or not rank.recording:
            parents = None
        if type(y) is tuple:
            return _several(name, parents, backward, y, body.overwrites)
        if type(y) is not ndarray:
            y = xp.asarray(y)
        if parents is None or y.dtype.kind != "f":
            return _result(y, None)
        return _result(y, (Node(name, parents, backward, ((y.shape, y.dtype),), body.overwrites), 0))

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


def _not_a_tensor(x):
    """An input that is not a Tensor -> what the op gets, where gradients go.

    NumPy scalars become Python numbers, so that they never promote (CASES 20-23).
    """
    if isinstance(x, generic):
        return x.item(), None
    if isinstance(x, (list, tuple)) and any(isinstance(i, Tensor) for i in x):
        parents = Several([(i.origin or i) if isinstance(i, Tensor) and i.requires_grad else None for i in x])
        wanted = any(parent is not None for parent in parents)
        return [i.data if isinstance(i, Tensor) else i for i in x], parents if wanted else None
    return x, None


def _result(array, origin):
    tensor = _new(Tensor)
    tensor.data, tensor.grad, tensor.buffer, tensor.origin = array, None, None, origin
    tensor.requires_grad = origin is not None
    return tensor


def _several(name, parents, backward, outputs, overwrites):
    """The results of an op with several outputs; integers carry no gradient."""
    outputs = [y if type(y) is ndarray else xp.asarray(y) for y in outputs]
    if parents is None:
        return tuple([_result(y, None) for y in outputs])
    node = Node(name, parents, backward, tuple([(y.shape, y.dtype) for y in outputs]), overwrites)
    return tuple([_result(y, (node, i) if y.dtype.kind == "f" else None) for i, y in enumerate(outputs)])


@contextmanager
def _set(flag, value):
    before = getattr(rank, flag)
    setattr(rank, flag, value)
    try:
        yield
    finally:
        setattr(rank, flag, before)


def no_grad():
    """Record nothing: results have no past and hold no activations."""
    return _set("recording", False)


def formulas_only():
    """Run every op by its formula, never by a tuned twin."""
    return _set("twins", False)


# ------------------------------------------------------------------------------------ going back

def backpropagate(output, grad=None, retain_graph=False, sink=None):
    """Push `grad` from `output` back to every leaf that requires it.

    grad          dL/d(output), an array of its shape; None means 1 for an output of one element
    retain_graph  keep the graph for another backward; otherwise it is released as it is used
    sink          sink(leaf, gradient) receives the gradients of leaves; by default they are added
                  to `.grad`.  A `Deferred` keeps the lazy ones for later.

    Raises RuntimeError as `Tensor.backward` says.
    """
    grad, sink = _root_gradient(output, grad), add_to_leaf if sink is None else sink
    if output.origin is None:
        sink(output, grad)
        return
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
        raise RuntimeError("backward of something that requires no gradient: no input of it has "
                           "requires_grad=True, it was made under no_grad, or it comes from an op without a "
                           f"gradient (integers, comparisons, argmax); its dtype is {output.dtype}")
    if grad is None:
        if output.size != 1:
            raise RuntimeError(f"backward of a tensor of shape {output.shape} needs its gradient: "
                               "call backward(grad) or reduce it to one number first")
        return xp.ones(output.shape, output.dtype)
    grad = grad.data if isinstance(grad, Tensor) else xp.asarray(grad, dtype=output.dtype)
    if grad.shape != output.shape:
        raise RuntimeError(f"backward got a gradient of shape {grad.shape} for a tensor of shape "
                           f"{output.shape}: they must be equal")
    return grad


def _reachable(root):
    """All nodes that feed the root, latest first, and how often each leaf is used."""
    seen, stack, uses = {root}, [root], {}
    while stack:
        node = stack.pop()
        if node.backward is None:
            raise RuntimeError(f"this graph was released by an earlier backward (at {node.name}): call "
                               "backward(retain_graph=True) the first time, or run forward again")
        entries = list(node.parents)
        for entry in entries:                           # grows by the parents of list inputs
            if type(entry) is tuple:
                if entry[0] not in seen:
                    seen.add(entry[0])
                    stack.append(entry[0])
            elif type(entry) is Several:
                entries.extend(entry)
            elif entry is not None:
                uses[entry] = uses.get(entry, 0) + 1
    return sorted(seen, key=_by_serial, reverse=True), uses


def _by_serial(node):
    return node.serial


def _backward_of(node, pending, retain_graph, sink):
    """Run one node's backward and hand its gradients on (its locals die here, for `alone` to count right)."""
    dys, backward, parents = pending.pop(node), node.backward, node.parents
    if not retain_graph:
        node.backward, node.parents = None, ()
    single = len(dys) == 1
    if node.overwrites:
        owned = alone(dys, 0) if single else tuple([alone(dys, i) for i in range(len(dys))])
        gradients = backward(dys[0] if single else tuple(dys), owned)
    else:
        gradients = backward(dys[0] if single else tuple(dys))
    if type(gradients) is not tuple:
        gradients = (gradients,)
    if len(gradients) != len(parents):
        _check_count(node, parents, gradients)
    for entry, gradient in zip(parents, gradients):
        if type(entry) is Several:
            for parent, part in zip(entry, gradient, strict=True):
                if parent is not None:
                    _hand_on(node, parent, part, pending, sink)
        elif entry is not None:
            _hand_on(node, entry, gradient, pending, sink)


def _check_count(node, parents, gradients):
    """What is left out at either end must be None: inputs that want no gradient, options that were not given."""
    n = min(len(parents), len(gradients))
    if any(g is not None for g in gradients[n:]) or any(p is not None for p in parents[n:]):
        raise TypeError(f"{node.name}: its backward returned {len(gradients)} gradients for {len(parents)} "
                        "inputs: return one for every input, None where there is none")


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
        raise TypeError(f"{node.name}: its backward returned a gradient of shape {gradient.shape}, "
                        f"{gradient.dtype}, for an input of shape {shape}, {dtype}: they must be equal")
    if rank.debug and type(gradient) is not Lazy:
        check_finite(f"backward of {node.name}", (), (gradient,), node.layer)


def _zeros_like(leaf):
    """The gradient of a leaf that an op says has no influence: zero, so that the use still counts."""
    return Lazy(lambda out, fresh: out.fill(0) if fresh else None, leaf.data.shape, leaf.data.dtype)


# An op whose only input nobody else holds, so that `handed_over` learns what its counts look like.
@op
def _made_for_this_call(x):
    return x, None


@accelerates(_made_for_this_call, when=lambda x: True, consumes=True)
def _look(x, owned):
    return x, None


_made_for_this_call(Tensor([0.0]))
