"""A row for every token, and the way back: logits from the same rows."""

from autograd import ops
from minigpt.module import Module, Parameter, normal


class Embedding(Module):
    """ids, integers (...) -> rows (..., width). IndexError names an id outside the table and its size."""

    def __init__(self, rows, width, init=None):
        self.weight = Parameter((rows, width), init or normal(0.02))

    def forward(self, ids):
        return ops.embedding(self.weight, ids)


class TiedHead(Module):
    """x (..., width) -> logits (..., rows): the product with every row of `embedding` (https://arxiv.org/abs/1608.05859).

    It has no parameter of its own: gradients of both uses add up in the embedding's.
    """

    def __init__(self, embedding):
        self.embedding = embedding

    def forward(self, x):
        return ops.linear(x, self.embedding.weight, transposed=True)
