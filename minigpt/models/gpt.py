"""GPT: blocks between an embedding and its own transpose."""

from minigpt.layers import Block, Dropout
from minigpt.models.parts import Parts
from minigpt.module import Module


class GPT(Module):
    """batch -> logits (B, T, vocab_size): learned positions, pre-norm, GELU, tied head, as GPT-2.

    https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf
    config: a `minigpt.config.Model`. Raises ValueError for a batch longer than the context.
    """

    def __init__(self, config, parts=None):
        parts = parts or Parts()
        self.config, self.loss = config, parts.loss
        self.embedding = parts.embedding(config.vocab_size, config.d_model)
        self.position_embedding = parts.embedding(config.context, config.d_model)
        self.dropout = Dropout(config.dropout, config.seed)
        self.blocks = [Block(config, parts) for _ in range(config.n_layers)]
        self.norm = parts.norm(config.d_model)
        self.head = parts.head(self.embedding)

    def forward(self, batch):
        return self.head(self.features(batch))

    def features(self, batch):
        """What the head reads: the normalised stream after the last block, (B, T, d_model)."""
        if batch.tokens.shape[1] > self.config.context:
            raise ValueError(f"a batch of {batch.tokens.shape[1]} positions for a model with "
                             f"context={self.config.context}: cut it")
        x = self.dropout(self.embedding(batch.tokens) + self.position_embedding(batch.positions), batch)
        branch = None
        for block in self.blocks:
            x, branch = block(x, branch, batch)
        return self.norm(x, branch)[1]
