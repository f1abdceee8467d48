"""A run: steps, validations and checkpoints until the last step or until somebody asks it to stop."""

from dataclasses import replace

import numpy as np

from autograd import NonFinite, debug
from data.loader import Loader
from minigpt import checkpoint, optim
from minigpt import config as configs
from minigpt.flat import flatten
from minigpt.models import GPT, Batch
from minigpt.models.batch import IGNORED
from minigpt.module import initialize
from minigpt.optim import warmup_cosine
from minigpt.parallel.data_parallel import DataParallel, sum_over_ranks
from minigpt.train.evaluate import evaluate
from minigpt.train.step import NotFinite, check, train_step


class Trainer:
    """The state of one rank of a run, and what it does with it.

    config   a `minigpt.config.Config`
    corpus   a `data.corpus.Corpus`
    group    the ranks that train together; every rank makes its Trainer at the same time
    parts    what the model is made of, see `minigpt.models.Parts`

    Raises ValueError if the text is too short for one window (case 117), or has more tokens than the model.
    """

    def __init__(self, config, corpus, group, parts=None):
        vocab_size = config.model.vocab_size or corpus.vocab_size
        if vocab_size < corpus.vocab_size:
            raise ValueError(f"model.vocab_size={vocab_size}, but the corpus has {corpus.vocab_size} tokens: choose "
                             f"0, which means what it has, or at least {corpus.vocab_size}")
        self.config = config = replace(config, model=replace(config.model, vocab_size=vocab_size))
        self.corpus, self.group, self.step = corpus, group, 0
        self.model = initialize(GPT(config.model, parts), config.model.seed, config.train.dtype)
        self.optimizer = optim.make(config.optim, flatten(self.model))
        self.sync = DataParallel(group, self.optimizer.flat)
        self.loader = Loader(corpus.train, config.model.context, config.data.batch_size, config.data.seed,
                             replica=group.rank, replicas=group.size, accumulate=config.train.accumulate)

    def lr(self, step):
        o = self.config.optim
        return warmup_cosine(step, lr=o.lr, min_lr=o.min_lr, warmup_steps=o.warmup_steps,
                             max_steps=self.config.train.max_steps)

    def train_step(self, stop=False):
        """One step: (loss summand, gradient norm), or None if any rank wants to `stop`: then nothing was done.

        The count of tokens that losses are divided by, and the wish to stop, travel in one short all-reduce.
        """
        windows = [self.loader.batch(self.step, micro) for micro in range(self.config.train.accumulate)]
        counted = sum(int((window.targets != IGNORED).sum()) for window in windows)
        total, stops = sum_over_ranks(self.group, counted, stop)
        if stops:
            return None
        batches = [Batch.of(window, self.config.model.vocab_size, self.step, int(total)) for window in windows]
        if self.config.train.debug:
            result = self._checked_step(batches)
        else:
            result = self._step(batches)
        self.step += 1
        return result

    @np.errstate(over="ignore", invalid="ignore")           # `check` reads the norm and says what to do
    def _step(self, batches):
        return train_step(self.model, self.optimizer, batches, self.sync, self.lr(self.step), self.config.optim.clip)

    def _checked_step(self, batches):
        """A step that names the op which first produces NaN, and compares the copies of the weights."""
        try:
            with debug():
                result = self._step(batches)
        except NonFinite as error:
            raise NotFinite(f"step {self.step}: {error}") from error
        self.sync.check_copies(self.step)
        return result

    def read(self, loss, norm):
        """The step's loss over all ranks and its gradient norm as floats. Waits for the device; all ranks call it."""
        norm = float(norm)
        check(norm, self.step - 1)
        return sum_over_ranks(self.group, float(loss))[0], norm

    def validate(self, limit=None):
        """Validation loss over all ranks, on every rank; None without validation text."""
        return evaluate(self.model, self.corpus.validation, self.config.model, self.config.data.batch_size, self.group,
                        limit)

    def save(self, folder):
        """Write a checkpoint and drop old ones: its path. Rank 0 writes, the others wait."""
        path = None
        if self.group.rank == 0:
            path = checkpoint.save(folder, self.step, self.optimizer.flat, self.optimizer, configs.dumps(self.config),
                                   self.corpus.tokenizer.to_json(), self.group.size)
            checkpoint.prune(folder, self.config.train.keep)
        self.group.barrier()
        return path

    def resume(self, path):
        """Go on from a checkpoint: the same losses, to the last bit, as without the interruption. Its Snapshot.

        Raises CheckpointError if it is damaged, or of another model, tokenizer or optimizer.
        """
        snapshot = checkpoint.Snapshot(path)
        if snapshot.tokenizer != self.corpus.tokenizer.to_json():
            raise checkpoint.CheckpointError(f"{path} was trained with another tokenizer or corpus than "
                                             f"data.corpus={self.config.data.corpus!r}: set them back")
        heads = configs.loads(snapshot.config).model.n_heads
        if heads != self.config.model.n_heads:              # the same shapes, but another function
            raise checkpoint.CheckpointError(f"{path} was trained with model.n_heads={heads}, not "
                                             f"{self.config.model.n_heads}: set it back")
        snapshot.restore(self.optimizer.flat, self.optimizer)
        self.step = snapshot.step
        return snapshot

    @property
    def tokens_per_step(self):
        return self.loader.tokens_per_step

