"""Causal self-attention."""

from autograd import ops
from minigpt.module import Module


class Attention(Module):
    """x (B, T, d_model) -> (B, T, d_model), where position t sees positions 0 to t.

    It knows how wide a head is and takes as many as the packed projection brings, so a rank that holds some of
    the heads runs the same code. Scores are divided by the square root of d_head (case 46).
    Raises ValueError if the heads do not fit the model.
    """

    def __init__(self, config, parts):
        d_model, d_head = config.d_model, config.d_head
        self.d_head = d_head
        self.query_key_value = parts.column(d_model, d_model, d_model, d_model)
        self.output = parts.row(d_model, d_model, init=parts.residual(config))

    def forward(self, x):
        return self.output(ops.packed_attention(self.query_key_value(x), d_head=self.d_head))
