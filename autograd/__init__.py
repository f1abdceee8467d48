"""Reverse-mode automatic differentiation over NumPy or CuPy arrays."""

from autograd import ops
from autograd.debug import NonFinite, debug
from autograd.gradients import Deferred, Lazy, accumulation
from autograd.tape import accelerates, formulas_only, no_grad, op
from autograd.tensor import Tensor

__all__ = ["Deferred", "Lazy", "NonFinite", "Tensor", "accelerates", "accumulation", "debug", "formulas_only",
           "no_grad", "op", "ops"]
