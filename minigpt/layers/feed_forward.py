"""The part of a block that works on each position by itself."""

from autograd import ops
from minigpt.module import Module


class FeedForward(Module):
    """x (..., d_model) -> gelu(x W1 + b1) W2 + b2, (..., d_model); d_ff numbers in between.

    The bias is added within the GELU's pass over memory. https://arxiv.org/abs/1606.08415
    """

    def __init__(self, config, parts):
        self.up = parts.column(config.d_model, config.d_ff)
        self.down = parts.row(config.d_ff, config.d_model, init=parts.residual(config))

    def forward(self, x):
        return self.down(ops.bias_gelu(self.up.product(x), self.up.bias))
