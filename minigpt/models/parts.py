"""What a model is made of. Serial and parallel models are one text with other parts."""

from collections.abc import Callable
from dataclasses import dataclass

from autograd import ops
from minigpt.layers import Attention, Embedding, FeedForward, LayerNorm, Linear, TiedHead
from minigpt.module import normal


def residual_init(config):
    """GPT-2's draw for a layer that writes to the residual stream: 2 n_layers of them add up there."""
    return normal(0.02 / (2 * config.n_layers) ** 0.5)


@dataclass(frozen=True)
class Parts:
    """Factories of layers; swap one with `dataclasses.replace(Parts(), norm=RMSNorm)`.

    column        (inputs, *outputs) -> Linear-like: one product, outputs side by side
    row           (inputs, outputs, init=...) -> Linear-like: back to the residual stream
    norm          (width) -> norm(x, branch) -> (x + branch, normalised)
    attention     (config, parts) -> layer on (B, T, d_model)
    feed_forward  (config, parts) -> layer on (..., d_model)
    embedding     (rows, width) -> layer on ids
    head          (embedding) -> layer to logits
    residual      (config) -> initialiser of what writes to the residual stream
    loss          (logits, targets, total=...) -> the sum over counted targets, divided by total
    """
    column: Callable = Linear
    row: Callable = Linear
    norm: Callable = LayerNorm
    attention: Callable = Attention
    feed_forward: Callable = FeedForward
    embedding: Callable = Embedding
    head: Callable = TiedHead
    residual: Callable = residual_init
    loss: Callable = ops.cross_entropy
