"""One block of a transformer."""

from minigpt.layers.dropout import Dropout
from minigpt.module import Module


class Block(Module):
    """x, branch -> x, branch: the residual stream, and what is still to be added to it.

    Attention, then feed-forward, each on a normalised copy of the stream (pre-norm). A norm adds the branch
    before it, so the sum and the norm are one pass; the model's last norm closes the last branch.
    """

    def __init__(self, config, parts):
        self.norm1 = parts.norm(config.d_model)
        self.attention = parts.attention(config, parts)
        self.dropout1 = Dropout(config.dropout, config.seed)
        self.norm2 = parts.norm(config.d_model)
        self.feed_forward = parts.feed_forward(config, parts)
        self.dropout2 = Dropout(config.dropout, config.seed)

    def forward(self, x, branch, batch):
        x, y = self.norm1(x, branch)
        branch = self.dropout1(self.attention(y), batch)
        x, y = self.norm2(x, branch)
        return x, self.dropout2(self.feed_forward(y), batch)
