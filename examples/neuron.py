"""A neuron, and why it needs a non-linearity.

    python examples/neuron.py

A neuron multiplies its inputs by weights, adds a bias, and passes the sum through a bend. Without the bend,
layers on layers of neurons are one layer: ((x W1 + b1) W2 + b2) W3 + b3 is x W + b with W = W1 W2 W3. A network
3-4-4-2 has 46 parameters and can do what 8 can. With a ReLU between the layers it no longer collapses.
"""

import numpy as np

from autograd import Tensor, no_grad, ops
from autograd.backend import to_host
from minigpt.flat import flatten
from minigpt.models import MLP
from minigpt.module import initialize, named_parameters
from minigpt.optim import SGD

SIZES = 3, 4, 4, 2
XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float64), np.array([[0], [1], [1], [0]], np.float64)


def neuron(x, weights, bias):
    """relu(x . w + b): one number from many."""
    return ops.relu((x * weights).sum() + bias)


def network(sizes, activation, bias=0.0, seed=1):
    """An MLP in float64; its biases, which start at 0, are set to `bias`."""
    model = initialize(MLP(sizes, activation), seed, "float64")
    for layer in model.layers:
        layer.bias.data += bias
    return model


def count(model):
    return sum(parameter.size for _, parameter in named_parameters(model))


def collapsed(model):
    """(W, b) of the one linear layer that equals all layers of `model` if it has no activation."""
    weight, bias = np.eye(SIZES[0]), np.zeros(SIZES[0])
    for layer in model.layers:
        w, b = to_host(layer.weight.data), to_host(layer.bias.data)
        weight, bias = weight @ w, bias @ w + b
    return weight, bias


def distance_from_linear(model, x):
    """How far the outputs for x are from those of the best single linear layer, at worst."""
    with no_grad():
        y = model(Tensor(x)).numpy()
    columns = np.column_stack([x, np.ones(len(x))])                 # the bias as one more weight
    best = columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return abs(y - best).max()


def learn_xor(activation, steps=400, lr=0.1):
    """Train 2-8-1 on exclusive or; returns the last loss and the four outputs."""
    x, y = map(Tensor, XOR)
    model = network((2, 8, 1), activation)
    flat = flatten(model)
    optimizer = SGD(flat, momentum=0.9)
    for _ in range(steps):
        flat.zero_grad()
        loss = ops.mse(model(x), y)
        loss.backward()
        flat.gradient()
        optimizer.step(lr)
    with no_grad():
        return loss.item(), model(x).numpy().ravel().round(4) + 0        # + 0 turns -0 into 0


def show_neuron():
    x, w = Tensor([1.0, -2.0, 3.0]), Tensor([0.5, 1.0, 2.0], requires_grad=True)
    y = neuron(x, w, bias=-1)
    y.backward()
    print("A neuron with inputs 1, -2, 3, weights 0.5, 1, 2 and bias -1")
    print(f"  gives relu(0.5 - 2 + 6 - 1) = {y.item()}")
    print(f"  its slope along the weights is {to_host(w.grad)}: the inputs\n")


def show_collapse():
    points = np.random.default_rng(1).normal(size=(1000, SIZES[0]))
    straight, bent = (network(SIZES, activation, bias=0.5) for activation in (None, ops.relu))
    weight, bias = collapsed(straight)
    with no_grad():
        error = abs(straight(Tensor(points)).numpy() - (points @ weight + bias)).max()
    print(f"Layers {'-'.join(map(str, SIZES))}: {count(straight)} parameters")
    print(f"  without activations they are one layer 3-2 with {weight.size + bias.size} parameters:")
    print(f"  the largest difference over {len(points):,} inputs is {error:.1e}, which is rounding")
    print(f"  with ReLU they are not: the best single layer misses by {distance_from_linear(bent, points):.2f}\n")


def main():
    show_neuron()
    show_collapse()
    print("Exclusive or, which no line can separate: a network 2-8-1 after 400 steps")
    for name, activation in ("without activation", None), ("with ReLU", ops.relu):
        loss, outputs = learn_xor(activation)
        print(f"  {name:<20}loss {loss:.4f}   outputs {' '.join(f'{v:.2f}' for v in outputs)}   wanted 0 1 1 0")


if __name__ == "__main__":
    main()
