"""Reverse-mode automatic differentiation over NumPy or CuPy arrays."""

from autograd import ops
from autograd.backend import device
from autograd.debug import NonFinite, debug
from autograd.gradients import Deferred, Lazy, accumulation
from autograd.tape import accelerates, formulas_only, no_grad, op
from autograd.tensor import Tensor

__all__ = ["Deferred", "Lazy", "NonFinite", "Tensor", "accelerates", "accumulation", "debug", "formulas_only",
           "no_grad", "op", "ops"]

if device == "cpu":
    from autograd import fused  # noqa: F401  (its import registers the CPU's twins)
