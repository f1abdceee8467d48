"""The layers that models are made of: each holds its parameters and says what it promises."""

from minigpt.layers.attention import Attention
from minigpt.layers.block import Block
from minigpt.layers.dropout import Dropout
from minigpt.layers.embedding import Embedding, TiedHead
from minigpt.layers.feed_forward import FeedForward
from minigpt.layers.linear import Linear
from minigpt.layers.norm import LayerNorm, RMSNorm

__all__ = ["Attention", "Block", "Dropout", "Embedding", "FeedForward", "LayerNorm", "Linear", "RMSNorm", "TiedHead"]
