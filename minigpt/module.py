"""Layers hold parameters; a parameter knows its shape, how it is drawn and how it is cut.

A model is a tree of Modules. The dotted path from the root ("blocks.3.attention.output.weight") names a parameter,
and its values are a function of (seed, name) only, so every layout of ranks starts at the same point.
"""

from dataclasses import dataclass

from autograd import Tensor, streams
from autograd.backend import xp
from autograd.rank import rank


@dataclass(frozen=True)
class Shard:
    """This rank holds part `index` of `parts` equal parts of `axis`; with `sections` each of them is cut by itself.

    sections    widths along the axis that are cut apart, such as query, key and value of a packed projection;
                () is the whole axis as one
    """
    axis: int
    index: int
    parts: int
    sections: tuple = ()

    def region(self, shape):
        """The part of an array of the full `shape` that this rank holds, as indices for `autograd.streams`.

        Raises ValueError if a section cannot be cut into equal parts.
        """
        places, start = [], 0
        for width in self.sections or (shape[self.axis],):
            if width % self.parts:
                raise ValueError(f"a section of {width} along axis {self.axis} of {shape} cannot be cut into "
                                 f"{self.parts} equal parts: choose a width divisible by {self.parts}")
            share = width // self.parts
            places += range(start + self.index * share, start + (self.index + 1) * share)
            start += width
        if start != shape[self.axis]:
            raise ValueError(f"sections {self.sections} add up to {start}, but axis {self.axis} of {shape} "
                             f"has {shape[self.axis]}")
        return (slice(None),) * self.axis + (places,)


class Parameter(Tensor):
    """A leaf that training changes.

    shape   of the whole parameter, over all ranks
    init    init(seed, name, shape, dtype, region) -> array; see `normal`, `zeros`, `ones`
    shard   the part of it that this rank holds; None: all
    decay   whether weight decay shrinks it; by default if it has two or more axes

    Until `initialize` draws it, its data is NaN throughout (and takes no memory).
    """
    __slots__ = ("full_shape", "init", "shard", "decay", "name")

    def __init__(self, shape, init, shard=None, decay=None):
        super().__init__(xp.broadcast_to(xp.asarray(float("nan"), xp.float32), tuple(shape)), requires_grad=True)
        self.full_shape, self.init, self.shard, self.name = tuple(shape), init, shard, ""
        self.decay = len(self.full_shape) > 1 if decay is None else decay


def normal(std):
    """Initialiser: normally distributed around 0."""
    def draw(seed, name, shape, dtype, region):
        return streams.normal(seed, name, shape, std, dtype=dtype, region=region)
    return draw


def constant(value):
    """Initialiser: one value throughout."""
    def draw(seed, name, shape, dtype, region):
        lengths = [len(part) if isinstance(part, list) else size for part, size in zip(region or (), shape)]
        return xp.full((*lengths, *shape[len(lengths):]), value, dtype)
    return draw


zeros, ones = constant(0), constant(1)


class Module:
    """A layer or a model: parameters and modules as attributes, in lists or dicts, and `forward`.

    `name` is its dotted path in the model; `initialize` writes it.
    """

    name = ""

    def __call__(self, *inputs, **options):
        if rank.debug:
            return self._named(inputs, options)
        return self.forward(*inputs, **options)

    def _named(self, inputs, options):
        """Run with this layer's name where the debug mode finds it."""
        before, rank.layer = rank.layer, self.name or type(self).__name__
        try:
            return self.forward(*inputs, **options)
        finally:
            rank.layer = before

    def forward(self, *inputs, **options):
        raise NotImplementedError(f"{type(self).__name__} has no forward")


def walk(x, name=""):
    """Every (dotted name, Module or Parameter) in x, itself included, by attributes, lists and dicts; the first
    name of what is shared."""
    return _walk(x, name, set())


def _walk(x, name, seen):
    if isinstance(x, (Module, Parameter)):
        if id(x) in seen:
            return
        seen.add(id(x))
        yield name, x
    children = (vars(x) if isinstance(x, Module) else x if isinstance(x, dict)
                else dict(enumerate(x)) if isinstance(x, (list, tuple)) else {})
    for key, child in children.items():
        yield from _walk(child, f"{name}.{key}" if name else str(key), seen)


def named_parameters(x):
    """(dotted name, Parameter) for every parameter of x; a shared (tied) one appears once, under its first name."""
    return [(name, each) for name, each in walk(x) if isinstance(each, Parameter)]


def initialize(model, seed, dtype="float32"):
    """Name every layer and parameter of `model` and draw the parameters, each by its name; returns the model."""
    for name, each in walk(model):
        each.name = name
        if isinstance(each, Parameter):
            region = each.shard and each.shard.region(each.full_shape)
            each.data, each.grad = each.init(seed, name, each.full_shape, dtype, region), None
    return model
