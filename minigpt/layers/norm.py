"""Norms that close a residual branch: one pass adds the branch and normalises the sum."""

from autograd import ops
from minigpt.module import Module, Parameter, ones, zeros


class LayerNorm(Module):
    """x, branch (..., width) -> (x + branch, the sum with mean 0 and variance 1 times a gain plus a bias).

    branch None is no branch: the first norm of a model. https://arxiv.org/abs/1607.06450
    """

    def __init__(self, width, eps=1e-5):
        self.gain, self.bias, self.eps = Parameter((width,), ones), Parameter((width,), zeros), eps

    def forward(self, x, branch=None):
        return ops.add_layer_norm(x, branch, self.gain, self.bias, self.eps)


class RMSNorm(Module):
    """x, branch (..., width) -> (x + branch, the sum with mean square 1 times a gain).

    https://arxiv.org/abs/1910.07467
    """

    def __init__(self, width, eps=1e-5):
        self.gain, self.eps = Parameter((width,), ones), eps

    def forward(self, x, branch=None):
        return ops.add_rms_norm(x, branch, self.gain, self.eps)
