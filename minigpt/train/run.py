"""`minigpt train`: what it says before and after, and when it logs, validates and saves."""

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

import numpy as np

from minigpt import checkpoint, planner
from minigpt import config as configs
from minigpt.errors import UserError
from minigpt.generate import prompt_ids
from minigpt.train import report
from minigpt.train.corpus import prepare_corpus
from minigpt.train.folder import claim, set_aside
from minigpt.train.metrics import Metrics
from minigpt.train.progress import Progress
from minigpt.train.trainer import Trainer


class Run:
    """One rank of a configured run: `go()` trains to the last step, saves, and says how it went.

    config  a `minigpt.config.Config` with a train.name
    group   the ranks that train together
    words   what stood on the command line after `train`, for the command that goes on
    resume  go on from the newest checkpoint of the run's folder; without it, what is there is set aside
    stop    a function that says whether this rank was asked to stop

    Raises UserError for what the user can mend.
    """

    def __init__(self, config, group, words=(), resume=False, stop=lambda: False):
        self.group, self.words, self.stop, self.stopwatch = group, words, stop, Stopwatch()
        self.folder = Path(config.train.folder, config.train.name)
        self.progress = Progress(config.train.max_steps)
        self.say = self.progress.say if group.rank == 0 else lambda line="": None
        corpus = prepare_corpus(config.data, group, self.say)
        refuse_too_large(config, corpus.vocab_size)
        try:
            self.trainer = Trainer(config, corpus, group)
        except ValueError as error:
            raise UserError(str(error)) from None
        self.config = self.trainer.config
        self.prompt = self.config.sample.prompt or beginning(corpus)
        prompt_ids(corpus.tokenizer, self.prompt)           # a mistake in it is told now, not after the training
        report.introduce(self.trainer, self.say)
        self.lock = claim(self.folder) if group.rank == 0 else None
        try:
            self.begin(resume)
        except BaseException:
            self.leave()
            raise

    def begin(self, resume):
        if resume:
            self.resume(self.newest())
        elif self.group.rank == 0:
            set_aside(self.folder, self.say)
        step = self.trainer.step
        self.metrics = None
        if self.group.rank == 0:
            self.metrics = Metrics(self.folder / "metrics.jsonl", step, end=step >= self.config.train.max_steps)

    def newest(self):
        """The checkpoint to go on from. Only rank 0 looks, for it holds the lock: ranks of a run that was killed may
        still have been writing and removing checkpoints when the others looked."""
        folder, step = self.folder / "checkpoints", np.zeros(1, np.int64)
        if self.group.rank == 0:
            step[0] = checkpoint.step_of(checkpoint.find(folder))
        newest = int(self.group.broadcast(step)[0])         # first of all: until then, the folder may still change
        return checkpoint.steps(folder)[newest]

    def leave(self):
        """Let other runs into the folder."""
        if self.lock:
            self.lock.release()

    def resume(self, path):
        snapshot = self.trainer.resume(path)
        self.say(f"Going on from {path}, after step {self.trainer.step:,}.")
        changes = configs.differences(configs.loads(snapshot.config), self.config)
        if snapshot.ranks != self.group.size:
            changes.append(f"ranks: {snapshot.ranks} -> {self.group.size}")
        for line in changes:
            self.say(f"  changed since then: {line}")

    def go(self):
        """Train until the last step, or until a rank is asked to stop; True if the run came to its end."""
        try:
            return self.train()
        finally:
            self.leave()

    def train(self):
        trainer, train = self.trainer, self.config.train
        self.first, self.saved_step, finished = trainer.step, None, True
        self.stopwatch.restart()
        while trainer.step < train.max_steps:
            result = trainer.train_step(self.stop())
            if result is None:
                finished = False
                break
            if self.due(train.log_every) or trainer.step in (1, train.max_steps):
                self.log(*trainer.read(*result))
            if self.due(train.eval_every) and trainer.step < train.max_steps:
                self.validate()
            if self.due(train.save_every):
                self.save()
        if self.saved_step != trainer.step:
            self.save()
        report.conclude(self) if finished else report.stopped(self)
        return finished

    def due(self, every):
        return every and self.trainer.step % every == 0

    def log(self, loss, norm):
        trainer, step = self.trainer, self.trainer.step
        if self.metrics is None:
            return
        seconds = self.stopwatch.seconds()
        rate = trainer.tokens_per_step * self.stopwatch.lap(step - self.first)
        left = (self.config.train.max_steps - step) * seconds / (step - self.first)
        lr = trainer.lr(step - 1)
        self.progress.step(step, loss, rate, lr, norm, left, last=step == self.config.train.max_steps)
        self.metrics.write(step=step, loss=loss, lr=lr, gradient_norm=norm, tokens=step * trainer.tokens_per_step,
                           tokens_per_second=round(rate), seconds=round(seconds, 3))

    def validate(self):
        with self.stopwatch.paused():
            loss = self.trainer.validate(self.config.train.eval_batches)
            if loss is not None and self.metrics:
                self.say(f"step {self.trainer.step:,}  validation loss {loss:.4f}")
                self.metrics.write(step=self.trainer.step, validation_loss=loss)

    def save(self):
        with self.stopwatch.paused():
            self.saved = self.trainer.save(self.folder / "checkpoints")
            self.saved_step = self.trainer.step


def refuse_too_large(config, vocab_size):
    """Raise UserError if this machine cannot hold one rank of the run, before anything is made."""
    model = replace(config.model, vocab_size=max(vocab_size, config.model.vocab_size))
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if message := planner.shortage(replace(config, model=model), available):
        raise UserError(message)


class Stopwatch:
    """Seconds that steps took, without what was done between them."""

    def __init__(self, clock=monotonic):
        self.clock = clock
        self.restart()

    def restart(self):
        self._start, self._pauses, self._lap = self.clock(), 0.0, (0, 0.0)

    def seconds(self):
        return self.clock() - self._start - self._pauses

    @contextmanager
    def paused(self):
        start = self.clock()
        yield
        self._pauses += self.clock() - start

    def lap(self, steps):
        """Steps a second since the last lap, when `steps` have been done since the start."""
        (before, then), now = self._lap, self.seconds()
        self._lap = steps, now
        return (steps - before) / max(now - then, 1e-9)


def beginning(corpus):
    """A prompt where none was given: nothing, which stands for a new line, or if the text has none its first token."""
    return "" if corpus.tokenizer.id_of_newline is not None else corpus.tokenizer.decode(corpus.train[:1])
