"""Forget activations, run forward again in backward: memory for time (Chen et al., arxiv.org/abs/1604.06174)."""

from autograd import tape
from autograd.gradients import Lazy
from autograd.rank import rank
from autograd.tape import Node, backpropagate, no_grad, op
from autograd.tensor import Tensor


def recompute(f, *inputs, parameters=()):
    """f(*inputs), of which only the inputs are kept for backward.

    f           Tensors -> a Tensor or a tuple of them; the same at every call: what is random in it follows from
                coordinates that it closes over (autograd.streams), so the second run draws the same (CASES 64)
    inputs      Tensors get gradients; everything else is passed on as it is
    parameters  every leaf that f reaches besides its inputs; they count as inputs of this node, so that
                `accumulation` knows when they are complete, and their lazy gradients stay lazy

    Gradients equal those of f(*inputs) bit for bit.  (An input that f uses several times and that is also used
    outside gets the same summands in another order.)
    Raises RuntimeError in backward if f reaches a leaf that is not named, or a result from outside.
    """
    if not rank.recording:
        return f(*inputs)
    parameters = [p for p in dict.fromkeys(parameters) if p.requires_grad]         # a tied one once
    with no_grad():
        y = f(*inputs)
    outputs = y if isinstance(y, tuple) else (y,)
    parents = [(x.origin or x) if isinstance(x, Tensor) and x.requires_grad else None for x in inputs]
    if not parameters and all(parent is None for parent in parents):
        return y
    given = [Given(x.data, x.requires_grad) if isinstance(x, Tensor) else x for x in inputs]
    node = Node("recompute", (*parents, *parameters), _again(f, given, parameters),
                tuple((t.shape, t.dtype) for t in outputs), False)
    results = tuple(_result(t, node, i) for i, t in enumerate(outputs))
    return results if isinstance(y, tuple) else results[0]


class Given:
    """What is kept of an input Tensor: its array, never its past."""
    __slots__ = ("array", "requires_grad")

    def __init__(self, array, requires_grad):
        self.array, self.requires_grad = array, requires_grad


def _result(t, node, i):
    """An output of the forgetful run, with this node as its past."""
    result = Tensor(t.data)
    if t.dtype.kind == "f":
        result.requires_grad, result.origin = True, (node, i)
    return result


def _again(f, given, parameters):
    """The node's backward: f once more, recorded, on fresh leaves; then back through that graph."""
    def backward(dys):
        dys = dys if isinstance(dys, tuple) else (dys,)
        start = next(tape._serial)
        leaves = [Tensor(x.array, x.requires_grad) if isinstance(x, Given) else x for x in given]
        before, rank.recording = (rank.recording, rank.accumulation), True
        rank.accumulation = None                # it counts the gradients that this node hands on, not those inside
        try:
            y = f(*leaves)
            found = Found(leaves, parameters)
            _backpropagate(y if isinstance(y, tuple) else (y,), dys, found, start)
        finally:
            rank.recording, rank.accumulation = before
        return (*(found.sum(leaf) for leaf in leaves), *(found.lazy(p) for p in parameters))
    return backward


def _backpropagate(ys, dys, found, start):
    wanted = [(y, dy) for y, dy in zip(ys, dys) if dy is not None and y.requires_grad]
    if not wanted:
        return
    root = wanted[0][0] if len(wanted) == 1 else _join([y for y, _ in wanted], [dy for _, dy in wanted])
    if root.origin is not None:
        oldest = tape._reachable(root.origin[0])[0][-1]
        if oldest.serial < start:
            raise RuntimeError(f"recompute: the function uses a result from outside, made by {oldest.name}: "
                               "pass it as an input")
    backpropagate(root, wanted[0][1] if len(wanted) == 1 else None, sink=found)


@op
def _join(ys, dys):
    """One number behind several outputs, whose gradients are the given ones."""
    return ys[0].sum() * 0, lambda dy: (dys, None)


class Found:
    """A sink that keeps the gradients of the leaves it knows, in the order in which they come."""

    def __init__(self, leaves, parameters):
        self.parts = {leaf: [] for leaf in (*leaves, *parameters) if isinstance(leaf, Tensor)}

    def __call__(self, leaf, gradient):
        if leaf not in self.parts:
            raise RuntimeError(f"recompute: the function reaches a leaf of shape {leaf.shape} that is neither among "
                               "its inputs nor in parameters=: name it, so that its gradient is counted")
        self.parts[leaf].append(gradient)

    def lazy(self, leaf):
        """The gradient of a parameter: a single one as it came, several one after the other when wanted."""
        parts = self.parts[leaf]
        if len(parts) < 2:
            return parts[0] if parts else None
        return Lazy(lambda out, fresh: _add_in_turn(parts, out, fresh), leaf.shape, leaf.dtype)

    def sum(self, leaf):
        """The gradient of an input, at once: whatever made it waits."""
        if not isinstance(leaf, Tensor):
            return None
        gradient = self.lazy(leaf)
        return gradient() if callable(gradient) else gradient


def _add_in_turn(parts, out, fresh):
    """Add each gradient in turn, so that sums come about as without recomputing."""
    for part in parts:
        if isinstance(part, Lazy):
            part.write(out, fresh)
        else:
            part = part() if callable(part) else part
            out[...] = part if fresh else out + part
        fresh = False
