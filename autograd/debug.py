"""Debug mode: the first op that produces something that is not a number is named."""

from contextlib import contextmanager

from autograd.backend import xp
from autograd.rank import rank


class NonFinite(ArithmeticError):
    """An op produced NaN or infinity; the message names the op, its input shapes and the layer."""


@contextmanager
def debug():
    """Check the result of every op, forward and backward.

    Raises NonFinite at the first op that turns finite inputs into NaN or infinity, with its name,
    the shapes of its inputs and the layer it ran in.
    """
    before, rank.debug = rank.debug, True
    try:
        yield
    finally:
        rank.debug = before


def check_finite(name, inputs, outputs, layer=None):
    """Raise NonFinite if an output holds NaN or infinity."""
    for y in outputs:
        if hasattr(y, "dtype") and y.dtype.kind == "f" and not bool(xp.isfinite(y).all()):
            shapes = ", ".join(str(x.shape) for x in inputs if hasattr(x, "shape"))
            where = layer if layer is not None else rank.layer
            raise NonFinite(f"{name} produced NaN or infinity (result {y.shape}"
                            + (f", inputs {shapes}" if shapes else "")
                            + (f", in layer {where}" if where else "") + ")")
