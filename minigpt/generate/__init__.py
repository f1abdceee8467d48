"""Text from a trained model."""

from minigpt.generate.load import load_model, load_snapshot
from minigpt.generate.sample import choose, generate, prompt_ids, stream_text

__all__ = ["choose", "generate", "load_model", "load_snapshot", "prompt_ids", "stream_text"]
