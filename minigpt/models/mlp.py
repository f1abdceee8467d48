"""A multi-layer perceptron."""

from autograd import ops
from minigpt.layers import Linear
from minigpt.module import Module, normal


class MLP(Module):
    """x (..., sizes[0]) -> (..., sizes[-1]): linear layers with an activation between them, none at the end.

    sizes       (784, 16, 16, 10) is FACTS F1
    activation  an op, or None: then all layers together are one linear map (FACTS F2)

    W is drawn with variance 2 / inputs, which keeps the size of what a ReLU lets through
    (https://arxiv.org/abs/1502.01852). Raises ValueError for fewer than two sizes.
    """

    def __init__(self, sizes, activation=ops.relu):
        if len(sizes) < 2:
            raise ValueError(f"sizes={tuple(sizes)}: expected the width of the input, then of every layer")
        self.activation = activation
        self.layers = [Linear(n, m, init=normal((2 / n) ** 0.5)) for n, m in zip(sizes, sizes[1:])]

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x) if self.activation is None else self.activation(layer(x))
        return self.layers[-1](x)
