"""From gradients to new weights."""

from minigpt.optim.adamw import AdamW
from minigpt.optim.clip import clip_factor, global_norm
from minigpt.optim.lr_schedule import warmup_cosine
from minigpt.optim.sgd import SGD

__all__ = ["SGD", "AdamW", "clip_factor", "global_norm", "make", "warmup_cosine"]


def make(config, flat):
    """The optimizer that a `minigpt.config.Optim` names, on the buffers of `flat`."""
    if config.name == "sgd":
        return SGD(flat, config.momentum, config.weight_decay)
    return AdamW(flat, (config.beta1, config.beta2), config.eps, config.weight_decay)
