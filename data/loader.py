"""Batches of text as a pure function of (seed, step, replica).

The samples of a run are numbered 0, 1, 2, ...: step s takes the samples s*G to (s+1)*G - 1, where
G = batch_size * accumulate * replicas, cut in order over the replicas and then over the micro-batches. What a
sample holds depends on its number and the seed only, so any layout with the same G sees the same step (case
120), and a run goes on from any step without saved state.

An epoch cuts the text into W windows of `context` tokens that do not overlap, beginning at an offset drawn
for that epoch so that window borders move, and visits them in an order drawn for that epoch. Sample n is
window n mod W of epoch n div W. Fewer than 2 * context tokens at the two ends of the text are left out of an
epoch; the next offset brings them in.
"""

import operator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from data.shuffle import mix, permute

PLAN = 4096                                       # samples whose places are worked out at once


class Window(NamedTuple):
    tokens: np.ndarray        # (B, T) int32
    targets: np.ndarray       # (B, T) int32: the token that follows each
    samples: np.ndarray       # (B,) int64: number of each sample, counted from the beginning of the run
    positions: np.ndarray     # (T,) int32: place of each token in its window


class Loader:
    """`batch(step, micro)` for one of `replicas` copies of a model; see the head of this file.

    tokens: (N,) integers. Raises ValueError if N < context + 1, naming both (case 117); with N = context + 1
    every sample is the one window there is (case 118).
    """

    def __init__(self, tokens, context, batch_size, seed, *, replica=0, replicas=1, accumulate=1):
        context, batch_size, seed, replica, replicas, accumulate = map(
            operator.index, (context, batch_size, seed, replica, replicas, accumulate))
        sizes = {"context": context, "batch_size": batch_size, "replicas": replicas, "accumulate": accumulate}
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"{name}={value} must be 1 or more")
        if not 0 <= replica < replicas:
            raise ValueError(f"replica={replica} must be in 0 .. {replicas - 1} (replicas={replicas})")
        count = len(check_tokens(tokens))
        if count < context + 1:
            raise ValueError(f"the text has {count} tokens, but one window of context={context} needs "
                             f"{context + 1} (its last target included): choose context <= "
                             f"{max(count - 1, 1)} or more text")
        self.context, self.batch_size, self.accumulate = context, batch_size, accumulate
        self.replica, self.replicas, self.seed = replica, replicas, seed
        self.samples_per_step = batch_size * accumulate * replicas
        self.tokens_per_step = self.samples_per_step * context
        self.windows_per_epoch = max(1, (count - context) // context)
        self._slack = count - 1 - self.windows_per_epoch * context        # the largest offset
        self._every_window = sliding_window_view(tokens, context + 1)     # a view: row i begins at token i
        self._positions = positions(context)
        self._planned = range(0), None                                    # steps, where their samples begin

    def batch(self, step, micro=0):
        """Micro-batch `micro` of this replica at optimizer step `step`."""
        step = operator.index(step)
        if step < 0 or not 0 <= micro < self.accumulate:
            raise ValueError(f"step={step}, micro={micro}: expected step >= 0 and micro in 0 .. "
                             f"{self.accumulate - 1}")
        samples = self.samples(step)[micro]
        return window(self._every_window[self._starts(step)[micro]], samples, self._positions)

    def samples(self, step):
        """Numbers of this replica's samples of `step` (one step, or an array (S, 1, 1)): (accumulate, B)."""
        mine = self.replica * self.accumulate * self.batch_size
        shape = self.accumulate, self.batch_size
        return self.samples_per_step * step + mine + np.arange(shape[0] * shape[1]).reshape(shape)

    def _starts(self, step):
        """`starts` of the samples of `step`, worked out for many steps at once: one alone costs 0.4 ms."""
        steps, starts = self._planned
        if step not in steps:
            steps = range(step, step + max(1, PLAN // (self.accumulate * self.batch_size)))
            starts = self.starts(self.samples(np.array(steps)[:, None, None]))
            self._planned = steps, starts
        return starts[step - steps.start]

    def starts(self, samples):
        """Where in the text each of `samples` (an array of numbers) begins."""
        epochs, numbers = np.divmod(samples, self.windows_per_epoch)
        keys = mix(mix(self.seed) ^ mix(epochs))
        offsets = (keys % np.uint64(self._slack + 1)).astype(np.int64)
        return offsets + permute(numbers, self.windows_per_epoch, keys) * self.context

    def epoch(self, step):
        """How often the text has been read before `step`: 0.5 is half of it once."""
        return step * self.samples_per_step / self.windows_per_epoch


def evaluation_batches(tokens, context, batch_size, limit=None):
    """Yield consecutive windows so that every token but the first is a target exactly once.

    The last batch may hold fewer windows; what is left after the last whole window comes alone, in a shorter
    one. limit: at most that many batches, spread evenly over the text, so an estimate is not one of its
    beginning only. Raises ValueError if there are fewer than two tokens.
    """
    count = len(check_tokens(tokens)) - 1                                 # targets
    if count < 1 or context < 1 or batch_size < 1:
        raise ValueError(f"cannot evaluate on {count + 1} tokens with context={context}, "
                         f"batch_size={batch_size}: at least 2 tokens, 1 and 1 are needed")
    whole, rest = divmod(count, context)
    batches = range(0, whole, batch_size)
    if limit is not None and limit < len(batches):
        batches = [batches[i * len(batches) // limit] for i in range(limit)]
        rest = 0
    for first in batches:
        samples = np.arange(first, min(first + batch_size, whole))
        rows = sliding_window_view(tokens, context + 1)[samples * context]
        yield window(rows, samples, positions(context))
    if rest:
        yield window(tokens[None, whole * context:], np.array([whole]), positions(rest))


def window(rows, samples, places):
    """rows: (B, T + 1), each a window and the token after it."""
    return Window(rows[:, :-1].astype(np.int32), rows[:, 1:].astype(np.int32), samples, places)


def positions(context):
    places = np.arange(context, dtype=np.int32)
    places.flags.writeable = False                                        # shared by every batch
    return places


def check_tokens(tokens):
    if getattr(tokens, "ndim", None) != 1 or tokens.dtype.kind not in "iu":
        what = f"{tokens.dtype} {tokens.shape}" if hasattr(tokens, "dtype") else type(tokens).__name__
        raise ValueError(f"tokens must be a 1-d NumPy array of integers, not {what}")
    return tokens
