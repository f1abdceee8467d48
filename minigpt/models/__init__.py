"""Models, each written once from parts."""

from minigpt.models.batch import Batch
from minigpt.models.gpt import GPT
from minigpt.models.mlp import MLP
from minigpt.models.parts import Parts

__all__ = ["GPT", "MLP", "Batch", "Parts"]
