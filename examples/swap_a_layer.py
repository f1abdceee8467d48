"""Swap a layer in one line; write an op and a layer of your own, and let them be checked.

    python examples/swap_a_layer.py
    python examples/swap_a_layer.py --steps 300

A model is written once, from `Parts`; another norm is `replace(Parts(), norm=RMSNorm)`. An op is a function over
arrays that returns its output and its backward; `check_op` and `check_layer` hold new ones against everything that
the tape, the optimizer and the ranks rely on. Then each variant trains on the documentation of Python for a while.
"""

import argparse
from dataclasses import replace

import numpy as np

from autograd import op
from autograd.backend import xp
from autograd.gradcheck import GradientError, check_layer, check_op
from data import corpus
from data.loader import Loader
from minigpt.config import Model
from minigpt.flat import flatten
from minigpt.layers import RMSNorm
from minigpt.models import GPT, Batch, Parts
from minigpt.module import Module, initialize
from minigpt.optim import AdamW
from minigpt.train.step import train_step


@op
def squared_relu(x):
    """y = max(x, 0)^2          dx = 2 max(x, 0) dy         https://arxiv.org/abs/2109.08668"""
    r = xp.maximum(x, 0)
    return r * r, lambda dy: 2 * r * dy


@op
def wrong_squared_relu(x):
    """The same with a slip in backward: the 2 is missing."""
    r = xp.maximum(x, 0)
    return r * r, lambda dy: r * dy


class SquaredFeedForward(Module):
    """x (..., d_model) -> squared_relu(x W1 + b1) W2 + b2, (..., d_model)"""

    def __init__(self, config, parts):
        self.up = parts.column(config.d_model, config.d_ff)
        self.down = parts.row(config.d_ff, config.d_model, init=parts.residual(config))

    def forward(self, x):
        return self.down(squared_relu(self.up(x)))


VARIANTS = {
    "as it is": Parts(),
    "norm=RMSNorm": replace(Parts(), norm=RMSNorm),
    "feed_forward=SquaredFeedForward": replace(Parts(), feed_forward=SquaredFeedForward),
}


def check():
    """Hold the op and the layer against their contracts; the message that the wrong op gets."""
    x = np.random.default_rng(1).normal(size=(4, 6))
    check_op(squared_relu, [x], reference=lambda x: np.where(x > 0, x**2, 0), empty=[x[:0]])
    layer = initialize(SquaredFeedForward(Model(d_model=6, n_heads=2), Parts()), seed=1)
    check_layer(layer, [x], empty=[x[:0]])
    try:
        check_op(wrong_squared_relu, [x])
    except GradientError as error:
        return str(error)
    raise AssertionError("check_op let a wrong gradient pass")


def train(parts, text, steps, lr=3e-3):
    """(number of parameters, mean loss of the last 10 steps) of a small GPT made of `parts`."""
    config = Model(d_model=48, n_layers=2, n_heads=4, context=32, vocab_size=text.vocab_size)
    model = initialize(GPT(config, parts), seed=1)
    flat = flatten(model)
    loader, optimizer = Loader(text.train, config.context, batch_size=8, seed=1), AdamW(flat)
    losses = []
    for step in range(steps):
        batch = Batch.of(loader.batch(step), config.vocab_size, step, total=loader.tokens_per_step)
        loss, _ = train_step(model, optimizer, [batch], sync=lambda gradient: None, lr=lr, longest=1.0)
        losses.append(float(loss))
    return sum(p.size for p in flat.parameters.values()), np.mean(losses[-10:])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="of training for each variant (default 100)")
    arguments = parser.parse_args(argv)
    if arguments.steps < 1:
        parser.error(f"--steps {arguments.steps}: at least 1, to have a loss to compare")
    print("The op and the layer keep their contracts. Without its factor 2 the op is refused:")
    print("".join(f"  {line}\n" for line in check().splitlines()))
    text = corpus.prepare("python-docs", progress=print)
    print(f"{'parts':<34}{'parameters':>11}   loss after {arguments.steps} steps")
    for name, parts in VARIANTS.items():
        number, loss = train(parts, text, arguments.steps)
        print(f"{name:<34}{number:>11,}   {loss:.3f}")


if __name__ == "__main__":
    main()
