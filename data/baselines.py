"""What counting alone reaches: the losses that a trained model has to beat.

Both are the mean of -log p(target) in nats over every token of `validation` but the first, the targets that
`loader.evaluation_batches` gives a model. Every count starts at one, so nothing is impossible (Laplace).
"""

import numpy as np

from data.loader import check_tokens

TABLE = 1 << 22                                   # pairs counted in a table; a larger one is kept sparse


def unigram(train, validation, vocab_size):
    """Loss of p(b) = (count(b) + 1) / (N + V)."""
    counts = np.bincount(check_tokens(train), minlength=vocab_size)
    targets = _targets(validation, vocab_size, len(counts))
    return float(np.mean(np.log(len(train) + vocab_size) - np.log(counts + 1.0)[targets]))


def bigram(train, validation, vocab_size):
    """Loss of p(b | a) = (count(a, b) + 1) / (count(a) + V), where count(a) is of a with any successor."""
    firsts = np.bincount(check_tokens(train)[:-1], minlength=vocab_size)
    _targets(validation, vocab_size, len(firsts))
    together = _count_of(_pairs(train, vocab_size), _pairs(validation, vocab_size), vocab_size**2)
    return float(np.mean(np.log(firsts[validation[:-1]] + float(vocab_size)) - np.log(together + 1.0)))


def _targets(validation, vocab_size, counted):
    if len(check_tokens(validation)) < 2:
        raise ValueError(f"validation has {len(validation)} tokens; at least 2 are needed to predict one")
    largest = max(counted - 1, int(validation.max()))
    if largest >= vocab_size:
        raise ValueError(f"token id {largest} is outside the vocabulary of vocab_size={vocab_size}")
    return validation[1:]


def _pairs(tokens, vocab_size):
    """One number for every token and its successor."""
    return tokens[:-1].astype(np.int64) * vocab_size + tokens[1:]


def _count_of(seen, asked, kinds):
    """How often each of `asked` is in `seen`; both hold numbers below `kinds`."""
    if kinds <= TABLE:
        return np.bincount(seen, minlength=kinds)[asked]
    values, counts = np.unique(seen, return_counts=True)
    if not len(values):
        return np.zeros(len(asked), np.int64)
    places = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    return np.where(values[places] == asked, counts[places], 0)
