"""y = x W + b."""

from autograd import ops
from minigpt.module import Module, Parameter, normal, zeros


class Linear(Module):
    """x (..., inputs) -> (..., sum of outputs).

    outputs  one width, or several that come side by side from one product: query, key and value
    init     how W is drawn; the bias starts at 0 and lies beside W
    """

    def __init__(self, inputs, *outputs, init=None, bias=True):
        width = sum(outputs)
        self.weight = Parameter((inputs, width), init or normal(0.02))
        self.bias = Parameter((width,), zeros) if bias else None

    def forward(self, x):
        return ops.linear(x, self.weight, self.bias)

    def product(self, x):
        """x W alone, for a step that adds the bias itself."""
        return ops.linear(x, self.weight)
