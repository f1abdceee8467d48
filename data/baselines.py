"""What counting alone reaches: the losses that a trained model has to beat.

Both are the mean of -log p(target) in nats over every token of `validation` but the first, the targets that
`loader.evaluation_batches` gives a model. Every count starts at one, so nothing is impossible (Laplace).
"""

import numpy as np

from data.loader import check_tokens

TABLE = 1 << 22                                   # pairs counted in a table; a larger one is kept sparse


def unigram(train, validation, vocab_size):
    """Loss of p(b) = (count(b) + 1) / (N + V). Token ids are (N,) integers below V = vocab_size."""
    _check(train, validation, vocab_size)
    counts = np.bincount(train, minlength=vocab_size)
    return float(np.mean(np.log(len(train) + vocab_size) - np.log(counts + 1.0)[validation[1:]]))


def bigram(train, validation, vocab_size):
    """Loss of p(b | a) = (count(a, b) + 1) / (count(a) + V), where count(a) is of a with any successor."""
    _check(train, validation, vocab_size)
    firsts = np.bincount(train[:-1], minlength=vocab_size)
    together = _count_of(_pairs(train, vocab_size), _pairs(validation, vocab_size), vocab_size**2)
    return float(np.mean(np.log(firsts[validation[:-1]] + float(vocab_size)) - np.log(together + 1.0)))


def _check(train, validation, vocab_size):
    for tokens in (check_tokens(train), check_tokens(validation)):
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < vocab_size:
            wrong = tokens.min() if tokens.min() < 0 else tokens.max()
            raise ValueError(f"token id {wrong} is outside the vocabulary of vocab_size={vocab_size}")
    if len(validation) < 2:
        raise ValueError(f"validation has {len(validation)} tokens; at least 2 are needed to predict one")


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
