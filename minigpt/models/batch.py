"""What a model is given."""

from dataclasses import dataclass
from typing import Any

from autograd.backend import to_device

IGNORED = -1                # a target that no loss counts


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids and where they stand; everything a layer may want to know about its input.

    tokens     (B, T) integers of the device
    targets    (B, T), the token that follows each, or IGNORED; None where nothing is to be learnt
    positions  (T,) or (B, T): places in the window, and rows of the position embedding
    samples    (B,): numbers of the samples, counted from the beginning of the run
    step       of the optimizer; None outside training, where nothing is dropped
    total      what losses are divided by: the counted targets of the whole step, over all micro-batches and ranks
    """
    tokens: Any
    targets: Any = None
    positions: Any = None
    samples: Any = None
    step: Any = None
    total: Any = None

    @classmethod
    def of(cls, window, vocab_size, step=None, total=None):
        """A host `data.loader.Window` on the device. IndexError for ids outside the vocabulary (case 14)."""
        check_ids("token", window.tokens, vocab_size)
        check_ids("target", window.targets, vocab_size, IGNORED)
        return cls(to_device(window.tokens), to_device(window.targets), to_device(window.positions),
                   to_device(window.samples), step, total)


def check_ids(what, ids, vocab_size, lowest=0):
    """Raise IndexError if an id of the host array `ids` is no row of a table of `vocab_size`."""
    if ids.size and not (lowest <= ids.min() and ids.max() < vocab_size):
        wrong = ids[(ids < lowest) | (ids >= vocab_size)].flat[0]
        raise IndexError(f"{what} id {wrong} is outside the vocabulary of {vocab_size} (0 to {vocab_size - 1}): "
                         "the text was encoded by another tokenizer than the model was made for")
