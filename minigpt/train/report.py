"""What a run says about itself: what it is about to do, and how it went."""

import resource
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from data import baselines
from data import tokenizer as tokenizers
from minigpt import config as configs
from minigpt import planner
from minigpt.errors import UserError
from minigpt.generate import load_snapshot, stream_text
from minigpt.parallel.data_parallel import sum_over_ranks
from minigpt.train.corpus import prepare_corpus
from minigpt.train.evaluate import evaluate
from minigpt.train.progress import size

LABEL = 13


def introduce(trainer, say):
    """Corpus, tokens, parameters by part, mesh, and the memory that the arithmetic predicts."""
    config, group = trainer.config, trainer.group
    model, train, steps = config.model, config.train, config.train.max_steps
    entry(say, "Corpus", trainer.corpus.describe())
    entry(say, "Tokens", f"{trainer.tokens_per_step:,} a step, {trainer.tokens_per_step * steps:,} in {steps:,} steps: "
                         f"the training text {trainer.loader.epoch(steps):.1f} times over")
    entry(say, "Parameters", *planner.describe_parameters(model))
    entry(say, "Mesh", f"{ranks(group.size)}, data parallel: each holds the whole model and reads "
                       f"{config.data.batch_size * train.accumulate} sequences of {model.context} tokens a step")
    entry(say, "Memory", *planner.describe_memory(config))
    say()


def conclude(run):
    """Validation loss beside what counting reaches, a sample, the bytes sent, and how to go on."""
    trainer, say = run.trainer, run.say
    loss = trainer.validate()
    if run.metrics and loss is not None:
        run.metrics.write(step=trainer.step, validation_loss=loss)
    totals = sum_over_ranks(trainer.group, *sent_and_formula(trainer.group.ledger))
    if trainer.group.rank:
        return
    say()
    if loss is not None:
        say_baselines(loss, trainer.corpus, say)
    sample = run.config.sample
    say(f"A sample at temperature {sample.temperature:g}:")
    say("".join(stream_text(trainer.model, trainer.corpus.tokenizer, run.prompt, sample)).strip("\n"))
    say()
    say_traffic(trainer, totals, say)
    entry(say, "Memory", f"{size(peak_memory())} at most in this rank; "
                         f"{size(sum(planner.memory(run.config).values()))} was predicted")
    entry(say, "Checkpoint", str(run.saved))
    entry(say, "Metrics", str(run.metrics.path))
    entry(say, "Go on", command("generate", "--checkpoint", str(run.folder), "--prompt", a_word(trainer.corpus)),
          resume(run, f"train.max_steps={2 * run.config.train.max_steps}"))


def stopped(run):
    """Asked to stop before the last step."""
    run.say()
    run.say(f"Stopped after step {run.trainer.step:,} of {run.config.train.max_steps:,}; everything is in {run.saved}.")
    entry(run.say, "Go on", resume(run))


def evaluate_checkpoint(place, group, corpus=None):
    """Print the validation loss of a checkpoint beside the baselines. corpus: another text than its own.

    Raises UserError if the checkpoint, or the text, cannot be used.
    """
    model, snapshot = load_snapshot(place)
    settings = configs.loads(snapshot.config)
    data = replace(settings.data, corpus=corpus) if corpus else settings.data
    say = print if group.rank == 0 else lambda line="": None
    text = prepare_corpus(data, group, say, tokenizers.load(snapshot.tokenizer))
    loss = evaluate(model, text.validation, settings.model, data.batch_size, group)
    if loss is None:
        raise UserError(f"{text.name} leaves no validation text: a longer text, or data.validation above 0, is needed")
    if group.rank == 0:
        entry(say, "Checkpoint", f"{snapshot.path}, after step {snapshot.step:,}")
        entry(say, "Corpus", text.describe())
        say_baselines(loss, text, say)


def say_baselines(loss, corpus, say):
    """The final loss beside two honest baselines."""
    counted = corpus.train, corpus.validation, corpus.vocab_size
    rows = (("this model", loss), ("bigram counts", baselines.bigram(*counted)),
            ("unigram counts", baselines.unigram(*counted)))
    for number, (name, value) in enumerate(rows):
        entry(say, "" if number else "Validation", f"{name:<16}{value:.4f} nats a token")


def sent_and_formula(ledger):
    """Bytes that left this rank for anything, and how many the formulas of the algorithms allow."""
    rows = ledger.everything().values()
    return sum(row.sent for row in rows), sum(row.formula for row in rows)


def say_traffic(trainer, totals, say):
    """What left rank 0, by group and collective, and the sums over all ranks."""
    sent, formula = trainer.sync.traffic()
    if trainer.group.size == 1:
        entry(say, "Sent", "nothing: a rank alone has nobody to send to")
        return
    entry(say, "Sent", f"{sent:,} bytes ({size(sent)}) of gradients by this rank; the formula allows {formula:,}",
          "{:,.0f} bytes for everything by all ranks together, {:,.0f} by the formulas; by this rank:".format(*totals),
          *trainer.group.ledger.report(peers=False).splitlines())


def a_word(corpus):
    """Something that the vocabulary can spell, to begin with: the first word of the training text."""
    return " ".join(corpus.tokenizer.decode(corpus.train[:40]).split()[:1])


def peak_memory():
    """Bytes that this process has had in memory at most."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if sys.platform == "darwin" else 1024 * kilobytes


def entry(say, label, *lines):
    for number, line in enumerate(lines):
        say(f"{'' if number else label:<{LABEL}}{line}")


def ranks(n):
    return f"{n} rank" + "s" * (n > 1)


def resume(run, *changes):
    words = [word for word in run.words if word.partition("=")[0] not in {c.partition("=")[0] for c in changes}]
    return command("train", *words, *changes, "--resume", ranks=run.group.size)


def command(*words, ranks=1):
    """A command line that works when it is copied."""
    start = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    line = shlex.join([*start, "minigpt", *words])
    home = Path(sys.executable).parent
    if shutil.which("minigpt") is None and (home / "activate").exists():
        line = f"source {home / 'activate'} && {line}"
    return line
