"""One step of training. The reading of this project begins here."""

from math import isfinite

from minigpt.errors import UserError
from minigpt.optim import clip_factor, global_norm


class NotFinite(UserError, ArithmeticError):
    """Training broke: a gradient is NaN or infinite. The weights are those of before the step."""


def train_step(model, optimizer, batches, sync, lr, longest=0.0):
    """Forward and backward for every micro-batch, sum gradients over replicas, update: (loss, gradient norm).

    batches  micro-batches of this rank; each knows the `total` of counted tokens of the whole step, over all ranks,
             so that every token weighs the same however the step is cut (case 51)
    sync     sync(gradient): sum the flat gradient over ranks
    longest  clip the gradient to this length; 0: do not

    The loss is this rank's summand of the step's mean, a 0-d array of the device; the norm a float, on a device a
    0-d array. Raises NotFinite, on every rank alike, before anything is changed (on a device nobody has read the
    norm yet: whoever reads it there calls `check`).
    """
    flat = optimizer.flat
    flat.zero_grad()
    loss = 0
    for batch in batches:
        part = model.loss(model(batch), batch.targets, total=batch.total)
        part.backward()
        loss = part.data + loss
    gradient = flat.gradient()
    sync(gradient)
    norm = global_norm(gradient)
    if isinstance(norm, float):
        check(norm, batches[0].step)
    optimizer.step(lr, clip_factor(norm, longest))
    return loss, norm


def check(norm, step):
    """Raise NotFinite if the gradient of `step` was not finite."""
    if not isfinite(norm):
        raise NotFinite(f"step {step}: the gradient is {norm}, so training has broken down. Nothing was saved since "
                        "the last checkpoint. A smaller optim.lr or a longer optim.warmup_steps often helps; "
                        "train.debug=true names the first op that produces NaN or infinity")
