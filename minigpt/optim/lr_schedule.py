"""How large the steps are, step by step."""

from math import cos, pi


def warmup_cosine(step, *, lr, min_lr, warmup_steps, max_steps):
    """Learning rate of `step` = 0, 1, ...: up in a line to lr, then down half a cosine to min_lr.

    Positive from the first step (case 121); after max_steps it stays at min_lr (case 123).
    """
    if step < warmup_steps:
        return lr * (step + 1) / warmup_steps
    share = min(1.0, (step - warmup_steps) / max(1, max_steps - warmup_steps))
    return min_lr + (lr - min_lr) * (1 + cos(pi * share)) / 2
