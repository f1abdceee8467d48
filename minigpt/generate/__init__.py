"""Text from a trained model."""

from minigpt.generate.load import load_model, load_snapshot
from minigpt.generate.sample import choose, generate, stream_text

__all__ = ["choose", "generate", "load_model", "load_snapshot", "stream_text"]
