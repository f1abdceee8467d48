"""Gradients on their way into leaves: lazy ones, deferred ones, and when a leaf is complete."""

from contextlib import contextmanager

from autograd.backend import xp
from autograd.rank import rank


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


def add_to_leaf(leaf, gradient):
    """Add a gradient, lazy or not, to `leaf.grad`; in place only into the leaf's own buffer."""
    if leaf.buffer is not None:
        _add_to_buffer(leaf, gradient)
    else:
        gradient = _computed(leaf, gradient)
        leaf.grad = xp.asarray(gradient.copy() if leaf.grad is None else leaf.grad + gradient)   # 0-d sums are scalars
    if rank.accumulation is not None:
        rank.accumulation.used(leaf)


def _computed(leaf, gradient):
    """A gradient as an array like its leaf (CASES 9, 24)."""
    gradient = gradient() if callable(gradient) else gradient
    if gradient.shape != leaf.data.shape or gradient.dtype != leaf.data.dtype:
        raise TypeError(f"a gradient of shape {gradient.shape}, {gradient.dtype}, for a leaf of shape "
                        f"{leaf.data.shape}, {leaf.data.dtype}: they must be equal")
    return gradient


def _add_to_buffer(leaf, gradient):
    fresh, out = leaf.grad is None, leaf.buffer
    if not fresh and leaf.grad is not out:
        out[...] = leaf.grad            # somebody replaced the gradient: go on from theirs
    if type(gradient) is Lazy:
        gradient.write(out, fresh)
    else:
        gradient = _computed(leaf, gradient)
        if fresh:
            out[...] = gradient
        else:
            xp.add(out, gradient, out=out)
    leaf.grad = out


class Deferred(list):
    """A sink that keeps lazy gradients of leaves for later: the W of zero-bubble pipelines.

    at_once   leaves whose gradients are wanted at once, lazy or not: a stage's inputs, for which the
              stage before waits
    `run()` computes and adds the others, in the order in which they were met.
    """

    def __init__(self, at_once=()):
        super().__init__()
        self.at_once = frozenset(at_once)

    def __call__(self, leaf, gradient):
        if callable(gradient) and leaf not in self.at_once:
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
        self.owed, self.complete, self.announced = {}, set(), frozenset(self.parameters)

    def begin(self, uses):
        if self.backwards == 0:
            raise RuntimeError("more backwards than accumulation(backwards=...) announced: "
                               "count every micro-batch")
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
        if leaf in self.announced and leaf not in self.complete:
            self.complete.add(leaf)
            if self.on_complete is not None:
                self.on_complete(leaf)


@contextmanager
def accumulation(parameters, backwards=1, on_complete=None):
    """Announce how many backwards make one step, and hear of every leaf whose gradient is complete.

    parameters   the leaves to hear of, in the order in which unused ones are reported at the end
    backwards    number of backward calls (micro-batches) of this step
    on_complete  on_complete(leaf), when the last use of the leaf in the last backward was added;
                 a leaf that the step did not use is reported at the end, its grad perhaps None

    Raises RuntimeError for more or fewer backwards than announced.
    """
    if rank.accumulation is not None:
        raise RuntimeError("accumulation inside accumulation: announce a step once, around all its backwards")
    rank.accumulation = opened = Accumulation(parameters, backwards, on_complete)
    try:
        yield opened
        opened.flush()
    finally:
        rank.accumulation = None
