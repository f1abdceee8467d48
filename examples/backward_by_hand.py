"""Backward by hand, against the tape.

    python examples/backward_by_hand.py

A network with one hidden layer, written twice: with ops on Tensors, where `loss.backward()` does the rest, and in
plain NumPy, where every line of the chain rule is written out. All gradients agree to rounding.

    h = x W1 + b1       (32, 8)        a = relu(h)
    z = a W2 + b2       (32, 3)        p = softmax(z)       loss = mean over the 32 of -log p[target]
"""

import numpy as np

from autograd import Tensor, graph, ops
from autograd.backend import to_host

N, INPUTS, HIDDEN, CLASSES = 32, 5, 8, 3
FORMULAS = {
    "z": "(p - onehot) / N    softmax and log cancel to a difference",
    "W2": "a^T dz              an input times what came back, summed over examples",
    "b2": "sum of dz           the bias is an input that is always 1",
    "a": "dz W2^T             back through the weights, the way it came",
    "h": "da where h > 0      the bend lets through what it let through before",
    "W1": "x^T dh",
    "b1": "sum of dh",
    "x": "dh W1^T             what a layer below would go on with",
}


def draw(seed=1):
    """x, targets, and the parameters by name."""
    random = np.random.default_rng(seed)
    parameters = {"W1": random.normal(size=(INPUTS, HIDDEN)), "b1": random.normal(size=HIDDEN),
                  "W2": random.normal(size=(HIDDEN, CLASSES)), "b2": random.normal(size=CLASSES)}
    return random.normal(size=(N, INPUTS)), random.integers(0, CLASSES, N), parameters


def by_hand(x, targets, W1, b1, W2, b2):
    """(loss, {name: gradient}), in NumPy."""
    h = x @ W1 + b1
    a = np.maximum(h, 0)
    z = a @ W2 + b2
    e = np.exp(z - z.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(N), targets]).mean()

    dz = (p - np.eye(CLASSES)[targets]) / N
    dW2, db2 = a.T @ dz, dz.sum(0)
    da = dz @ W2.T
    dh = da * (h > 0)
    dW1, db1 = x.T @ dh, dh.sum(0)
    return loss, {"z": dz, "W2": dW2, "b2": db2, "a": da, "h": dh, "W1": dW1, "b1": db1, "x": dh @ W1.T}


def by_tape(x, targets, parameters):
    """(loss, {name: gradient}, the graph as text): of leaves only, for the tape forgets what lies between."""
    leaves = {name: Tensor(value, requires_grad=True) for name, value in {"x": x, **parameters}.items()}
    x, W1, b1, W2, b2 = leaves.values()
    loss = ops.cross_entropy(ops.relu(x @ W1 + b1) @ W2 + b2, targets)
    drawn = graph.text(loss, {leaf: name for name, leaf in leaves.items()})
    loss.backward()
    return loss.item(), {name: to_host(leaf.grad) for name, leaf in leaves.items()}, drawn


def by_difference(x, targets, parameters, name, place, step=1e-6):
    """The slope of the loss along one number, by moving it a little both ways."""
    moved = []
    for sign in 1, -1:
        changed = {key: value.copy() for key, value in parameters.items()}
        changed[name][place] += sign * step
        moved.append(by_hand(x, targets, **changed)[0])
    return (moved[0] - moved[1]) / (2 * step)


def main():
    x, targets, parameters = draw()
    loss, hand = by_hand(x, targets, **parameters)
    tape_loss, tape, drawn = by_tape(x, targets, parameters)
    print("The graph that the tape recorded, from the loss down to the leaves:")
    print("".join(f"  {line}\n" for line in drawn.splitlines()))
    print(f"The loss by hand {loss:.12f}, by the tape {tape_loss:.12f}\n")
    print(f"{'':<7}{'shape':<10}{'tape - hand':<14}formula")
    for name, formula in FORMULAS.items():
        gap = f"{abs(tape[name] - hand[name]).max():.1e}" if name in tape else "(no leaf)"
        print(f"  d{name:<4}{str(hand[name].shape):<10}{gap:<14}{formula}")
    slope = by_difference(x, targets, parameters, "W1", (2, 3))
    print(f"\nAnd by moving W1[2, 3] a little: {slope:.9f}; the formula says {hand['W1'][2, 3]:.9f}")


if __name__ == "__main__":
    main()
