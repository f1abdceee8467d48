"""A whole run: what it prints, what it leaves behind, how it is interrupted and goes on."""

import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import comm
from minigpt import checkpoint
from minigpt.errors import UserError
from minigpt.train.metrics import Metrics, read
from minigpt.train.progress import Progress, duration, size
from minigpt.train.run import Run, Stopwatch
from tests.minigpt import tiny
from tests.ranks import run


@pytest.fixture
def start(tmp_path, capsys, monkeypatch):
    """start(words, resume, stop) -> what a run on one rank printed."""
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    text = tmp_path / "fox.txt"
    text.write_text(tiny.TEXT)

    def go(*words, resume=False, stop=lambda: False):
        settings = tiny.config(f"data.corpus={text}", f"train.folder={tmp_path / 'runs'}", *words)
        Run(settings, comm.world(), ["tiny.toml", *words], resume, stop).go()
        return capsys.readouterr().out
    return go


def losses(folder):
    return {line["step"]: line["loss"] for line in read(folder / "metrics.jsonl") if "loss" in line}


SAID = (
    "Corpus       fox: 900 characters", "Tokens       16 a step, 96 in 6 steps", r"Parameters   \d+,\d+ in 2 blocks",
    "token embedding", "Mesh         1 rank, data parallel", r"Memory       about \d+ MB a rank",
    r"step 4  validation loss \d", r"step 6/6  loss [\d.]+  .* 0:00 left", r"Validation   this model +\d",
    r"bigram counts +\d", r"unigram counts +\d", "A sample at .*:\nthe ",
    "Sent         nothing: a rank alone has nobody to send to", "Checkpoint   .*step-00000006",
    "minigpt generate --checkpoint", "minigpt train tiny.toml .*train.max_steps=12 --resume")


def test_a_run_says_what_it_is_about_to_do_and_how_it_went(start, tmp_path):
    out = start("train.eval_every=4", "sample.prompt=the ")
    for expected in SAID:
        assert re.search(expected, out), expected
    folder = tmp_path / "runs" / "tiny"
    assert list(losses(folder)) == [1, 2, 3, 4, 5, 6]
    last = read(folder / "metrics.jsonl")[-1]
    assert set(last) == {"step", "validation_loss"} and last["step"] == 6
    assert list(checkpoint.steps(folder / "checkpoints")) == [6]


def test_interrupted_and_resumed_it_leaves_the_same_metrics_as_unbroken(start, tmp_path):
    folder = tmp_path / "runs" / "tiny"
    start()
    unbroken = losses(folder)
    for steps in (0, 1, 4):
        asked = iter([False] * steps + [True])
        out = start(stop=lambda asked=asked: next(asked))
        assert f"Stopped after step {steps} of 6; everything is in" in out and "--resume" in out
        out = start(resume=True)
        assert f"after step {steps}." in out
        assert losses(folder) == unbroken


def test_metrics_beyond_the_checkpoint_are_written_again_once(start, tmp_path):
    folder = tmp_path / "runs" / "tiny"
    start("train.save_every=4")
    unbroken = losses(folder)
    for path in (folder / "checkpoints").glob("*6"):
        path.rename(path.with_name("gone"))
    start("train.save_every=4", resume=True)
    assert losses(folder) == unbroken
    assert [line["step"] for line in read(folder / "metrics.jsonl") if "loss" in line] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("words", [(), ("train.save_every=3", "train.eval_every=2"), ("train.save_every=4",)], ids=str)
def test_several_ranks_make_the_same_calls_to_the_end(tmp_path, monkeypatch, capsys, words):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "fox.txt").write_text(tiny.TEXT)
    settings = tiny.config(f"data.corpus={tmp_path / 'fox.txt'}", f"train.folder={tmp_path / 'runs'}", *words)
    run(3, lambda group: Run(settings, group).go())
    assert capsys.readouterr().out.count("Checkpoint") == 1
    assert list(losses(tmp_path / "runs" / "tiny")) == [1, 2, 3, 4, 5, 6]


def test_a_finished_run_goes_on_to_more_steps_and_says_what_changed(start, tmp_path):
    start()
    out = start("train.max_steps=8", resume=True)
    assert "changed since then: train.max_steps: 6 -> 8" in out and "step 8/8" in out
    out = start("train.max_steps=8", resume=True)
    assert "after step 8." in out and "Validation   this model" in out


def test_a_second_run_sets_the_first_aside(start, tmp_path):
    start("train.max_steps=1")
    out = start("train.max_steps=2")
    assert "is now in" in out
    start("train.max_steps=3")
    runs = tmp_path / "runs"
    assert [max(losses(runs / name)) for name in ("tiny", "tiny.1", "tiny.2")] == [3, 1, 2]


def test_a_prompt_that_the_text_cannot_spell_is_told_before_training(start):
    with pytest.raises(UserError, match="prompt: character 'Ж'"):
        start("sample.prompt=Ж")


def test_mistakes_are_user_errors(start, tmp_path):
    for words, message in [((), "there is no checkpoint in .*tiny"),
                           (("model.context=900",), "the text has 810 tokens, but one window of context=900 needs 901"),
                           (("data.corpus=/no/such.txt",), "cannot prepare data.corpus='/no/such.txt'"),
                           (("data.tokenizer=chras",), "'chars', 'bytes', 'bpe'")]:
        with pytest.raises(UserError, match=message):
            start(*words, resume=True)


def test_without_validation_text_nothing_is_validated(start):
    out = start("data.validation=0", "train.eval_every=2")
    assert "validation loss" not in out and "Validation" not in out and "A sample" in out


# ------------------------------------------------------------------------------------ progress and metrics

class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_file_lines_come_every_few_seconds_and_the_last_always():
    stream, clock = io.StringIO(), Clock()
    progress = Progress(1000, stream, clock)
    for step in range(1, 13):
        clock.now += 1
        progress.step(step, 2.0, 1234.4, 1e-3, 0.5, 65)
    progress.step(1000, 1.0, 1234.4, 1e-3, 0.5, 0, last=True)
    assert stream.getvalue().splitlines() == [
        "step     1/1,000  loss 2.0000  1,234 tokens/s  lr 1.00e-03  gradient 0.500  1:05 left",
        "step     6/1,000  loss 2.0000  1,234 tokens/s  lr 1.00e-03  gradient 0.500  1:05 left",
        "step    11/1,000  loss 2.0000  1,234 tokens/s  lr 1.00e-03  gradient 0.500  1:05 left",
        "step 1,000/1,000  loss 1.0000  1,234 tokens/s  lr 1.00e-03  gradient 0.500  0:00 left"]


def test_on_a_terminal_one_line_is_written_over_again(monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())
    stream = Terminal()
    progress = Progress(10, stream, Clock())
    progress.step(1, 2.0, 1e6, 1e-3, 0.5, 65)
    progress.step(2, 2.0, 9, 1e-3, 0.5, 65)
    progress.say("validation")
    progress.step(10, 2.0, 9, 1e-3, 0.5, 0, last=True)
    lines = [line.split("\r")[-1].rstrip() for line in stream.getvalue().split("\n")]
    assert [line[:9] for line in lines] == ["validatio", "step 10/1", ""]
    assert "\r" in stream.getvalue()


def test_durations_and_sizes_are_for_readers():
    assert [duration(s) for s in (0, 59.6, 192, 3723)] == ["0:00", "1:00", "3:12", "1:02:03"]
    assert [size(n) for n in (0, 999, 1000, 65_200_000, 3e12)] == ["0 B", "999 B", "1.0 kB", "65.2 MB", "3.0 TB"]


def test_pauses_do_not_count_as_training():
    clock = Clock()
    watch = Stopwatch(clock)
    clock.now = 2
    with watch.paused():
        clock.now = 10
    clock.now = 12
    assert watch.seconds() == 4
    assert watch.lap(8) == 2
    clock.now = 14
    assert watch.lap(9) == 0.5


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path):
    path = tmp_path / "run" / "metrics.jsonl"
    Metrics(path).write(step=1, loss=0.1)
    Metrics(path, step=1).write(step=2, loss=1 / 3)
    path.write_text(path.read_text() + '{"step": 3, "lo')
    assert read(path) == [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 1 / 3}]
    Metrics(path, step=1)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1]


def test_a_rank_looks_for_the_checkpoint_only_when_it_knows_which(tmp_path):
    """Until rank 0 has the lock, ranks of a run that was killed may still write and remove checkpoints."""
    class Late:
        rank = 1

        def broadcast(self, step):
            (tmp_path / "checkpoints" / "step-00000134").mkdir(parents=True)
            return np.array([134])

    assert Run.newest(SimpleNamespace(folder=tmp_path, group=Late())).name == "step-00000134"


def test_a_run_that_no_machine_can_hold_is_refused_before_anything_is_made(start, tmp_path):
    with pytest.raises(UserError, match=r"GB a rank is predicted, and this machine has .* data.batch_size"):
        start("data.batch_size=100000000")
    assert not (tmp_path / "runs").exists()


def test_other_heads_than_those_of_the_checkpoint_are_refused(start):
    start("model.n_heads=2")
    with pytest.raises(UserError, match="was trained with model.n_heads=2, not 4"):
        start("model.n_heads=4", "train.max_steps=12", resume=True)
