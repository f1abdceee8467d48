"""A model and its tokenizer, as a checkpoint describes them."""

from data import tokenizer as tokenizers
from minigpt import checkpoint, config
from minigpt.flat import flatten
from minigpt.models import GPT
from minigpt.module import initialize


def load_model(place):
    """(model, tokenizer) of the checkpoint that `place` means; the model has its `config`.

    Raises CheckpointError if there is none or it is damaged.
    """
    model, snapshot = load_snapshot(place)
    return model, tokenizers.load(snapshot.tokenizer)


def load_snapshot(place):
    """(model, Snapshot) of the checkpoint that `place` means."""
    snapshot = checkpoint.Snapshot(checkpoint.find(place))
    settings = config.loads(snapshot.config)
    model = initialize(GPT(settings.model), settings.model.seed, settings.train.dtype)
    snapshot.restore(flatten(model))
    return model, snapshot
