"""Loss on text that was not trained on."""

from autograd import no_grad
from data.loader import evaluation_batches
from minigpt.models import Batch
from minigpt.models.batch import IGNORED
from minigpt.parallel.data_parallel import sum_over_ranks


def evaluate(model, tokens, config, batch_size, group, limit=None):
    """Mean loss in nats over the targets in `tokens`, every token weighing the same (case 51), on every rank.

    The ranks of `group` take the batches in turn. config: the model's. limit: read about that many batches, spread
    over the text, instead of all of it. None if there are fewer than two tokens.
    """
    if len(tokens) < 2:
        return None
    total, counted = 0.0, 0
    with no_grad():
        for number, window in enumerate(evaluation_batches(tokens, config.context, batch_size, limit)):
            if number % group.size == group.rank:
                batch = Batch.of(window, config.vocab_size, total=1)
                total += model.loss(model(batch), batch.targets, total=batch.total).item()
                counted += int((window.targets != IGNORED).sum())
    total, counted = sum_over_ranks(group, total, counted)
    return total / counted
