"""One token after another."""

import numpy as np

from autograd import no_grad, streams
from autograd.backend import to_device, to_host
from minigpt.errors import UserError
from minigpt.models import Batch
from minigpt.models.batch import check_ids


def generate(model, ids, tokens, temperature=1.0, top_k=0, seed=0):
    """Yield `tokens` ids that go on from `ids`, a non-empty sequence of ids.

    temperature  0 is the likeliest token, 1 the model's own probabilities (case 124)
    top_k        only the k likeliest may come; 0, or more than there are, is all (case 125)

    The model sees the last `context` tokens, so a text may grow beyond the context (case 129).
    Raises ValueError for no ids or a bad temperature, IndexError for ids outside the vocabulary.
    """
    config, ids = model.config, list(ids)
    if not ids:
        raise ValueError("nothing to go on from: give at least one token")
    check_ids("prompt", np.array(ids), config.vocab_size)
    draws = to_host(streams.uniform(seed, "generate", (tokens,), dtype="float64"))
    for draw in draws:
        with no_grad():
            logits = to_host(next_logits(model, ids[-config.context:]))
        ids.append(choose(logits, draw, temperature, top_k))
        yield ids[-1]


def next_logits(model, ids):
    """Logits (V,) of the token after `ids`, which are no more than the context.

    The row is filled up to a power of two: what comes after a position has no influence on it, and the buffers of
    a growing text then are of few sizes, which are kept and used again.
    """
    last, length = len(ids) - 1, min(model.config.context, 1 << (len(ids) - 1).bit_length())
    tokens = np.zeros((1, length), np.int32)
    tokens[0, :len(ids)] = ids
    x = model.features(Batch(to_device(tokens), positions=to_device(np.arange(length, dtype=np.int32))))
    return model.head(x[:, last]).data[0]


def choose(logits, draw, temperature=1.0, top_k=0):
    """The id that `draw`, between 0 and 1, picks from softmax(logits / temperature). logits: (V,) host array."""
    if not temperature >= 0:
        raise ValueError(f"temperature={temperature}: expected 0 (the likeliest token) or more")
    if temperature == 0:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable")[:top_k or None]
    scores = (logits[order].astype(np.float64) - float(logits[order[0]])) / temperature
    whole = np.cumsum(np.exp(scores))
    last = np.searchsorted(whole, whole[-1])        # beyond it, nothing has a probability above 0
    return int(order[min(np.searchsorted(whole, draw * whole[-1], side="right"), last)])


def stream_text(model, tokenizer, prompt, settings):
    """Yield the prompt and then text as it is sampled, never half a character (case 135).

    settings: a `minigpt.config.Sample`. An empty prompt begins with a newline (case 130).
    Raises UserError if the tokenizer has no token for something in the prompt.
    """
    ids = prompt_ids(tokenizer, prompt)
    yield prompt
    stream = tokenizer.decode_stream()
    for token in generate(model, ids, settings.tokens, settings.temperature, settings.top_k, settings.seed):
        yield stream.feed(token)
    yield stream.flush()


def prompt_ids(tokenizer, prompt):
    """Ids of the prompt, at least one. Raises UserError, see `stream_text`."""
    try:
        ids = tokenizer.encode(prompt).tolist()
    except ValueError as error:
        raise UserError(f"prompt: {error}") from None
    if not ids and tokenizer.id_of_newline is None:
        raise UserError("an empty prompt begins with a newline, but this vocabulary has none: give a prompt")
    return ids or [tokenizer.id_of_newline]
