"""The command line: help, mistakes, signals, several ranks."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from minigpt import checkpoint, cli
from minigpt.errors import UserError
from tests.minigpt import tiny
from tests.ranks import REPOSITORY, mpirun

COMMANDS = ("train", "generate", "evaluate", "launch", "doctor", "bench")


@pytest.fixture
def job(tmp_path):
    """(words of a tiny training job, environment): everything it writes lies in tmp_path."""
    (tmp_path / "fox.txt").write_text(tiny.TEXT + "\n")
    path = tmp_path / "fox.toml"
    path.write_text("")
    words = ["train", str(path), *tiny.TINY, f"data.corpus={tmp_path / 'fox.txt'}", "train.name=fox",
             f"train.folder={tmp_path / 'runs'}"]
    return words, {"MINIGPT_CACHE": str(tmp_path / "cache")}


def minigpt(*words, timeout=60, **environment):
    """The command in a process of its own: what it printed, and its status."""
    return subprocess.run([sys.executable, "-m", "minigpt.cli", *words], cwd=REPOSITORY, timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment})


def losses(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


# ------------------------------------------------------------------------------------ where output goes

def test_a_run_ends_well_without_stdout_and_on_one_that_cannot_show_its_text(job, tmp_path):
    words, environment = job
    (tmp_path / "fox.txt").write_text("быстрая лиса " * 60 + "\n", encoding="utf-8")
    for changes, close in (({"PYTHONIOENCODING": "ascii"}, ""), ({}, ">&-"), ({}, ">&- 2>&-")):
        ended = subprocess.run(["sh", "-c", f'exec "$@" {close}', "sh", sys.executable, "-m", "minigpt.cli", *words],
                               cwd=REPOSITORY, timeout=60, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                               env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment, **changes})
        assert ended.returncode == 0, ended.stderr
        assert list(checkpoint.steps(tmp_path / "runs" / "fox" / "checkpoints")) == [6]


@pytest.mark.parametrize("device, message", [("nonsense", "expected one of auto, cpu, cuda, strict"),
                                             ("CPU", "expected one of auto, cpu, cuda, strict")])
def test_a_device_that_is_not_there_is_told_in_one_line(job, device, message):
    words, environment = job
    for command in (words, ["generate", "--checkpoint", "nowhere"], ["evaluate", "--checkpoint", "nowhere"]):
        ended = minigpt(*command, MINIGPT_DEVICE=device, **environment)
        assert ended.returncode == 2 and ended.stdout.count("\n") == 1 and message in ended.stdout


@pytest.mark.parametrize("error", [MemoryError("no 8 TB"), OSError(12, "Cannot allocate memory")])
def test_a_lack_of_memory_says_what_needs_less(monkeypatch, capsys, error):
    def run(arguments):
        raise error
    monkeypatch.setattr(cli, "evaluate", run)
    with pytest.raises(SystemExit) as ended:
        cli.main(["evaluate", "--checkpoint", "x"])
    message = capsys.readouterr().err
    assert ended.value.code == 2 and "a smaller data.batch_size" in message and "Traceback" not in message


def test_of_several_ranks_one_writes_the_text(monkeypatch, capsys):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert cli.main(["generate", "--checkpoint", "nowhere"]) == 0
    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------------------------ help and mistakes

@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_examples_and_every_command_is_listed(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and f"minigpt {command}" in text
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert f"minigpt {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words, message", [
    (["train", "nowhere.toml"], "minigpt: cannot read the configuration nowhere.toml"),
    (["train", "examples/configs/python-docs.toml", "train.max_step=1"], "did you mean train.max_steps?"),
    (["generate", "--checkpoint", "nowhere"], "there is no checkpoint in nowhere"),
    (["evaluate", "--checkpoint", "nowhere"], "there is no checkpoint in nowhere"),
    (["generate", "--checkpoint", "nowhere", "--temperature", "-1"], "sample.temperature=-1.0: expected at least 0"),
    (["trian"], "invalid choice: 'trian'"),
])
def test_a_mistake_is_one_message_without_a_traceback_and_status_2(words, message):
    ended = minigpt(*words)
    assert ended.returncode == 2 and message in ended.stdout and "Traceback" not in ended.stdout


def test_threads_are_the_cores_that_each_rank_has_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setattr(cli, "cores", lambda: 8)
    for ranks, mine, expected in ((None, None, "8"), ("2", None, "4"), ("16", None, "1"), ("2", "3", "3")):
        environment = {"OPENBLAS_NUM_THREADS": mine} if mine else {}
        if ranks:
            environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = ranks
        cli.set_threads(environment)
        assert environment["OPENBLAS_NUM_THREADS"] == expected


def test_numpy_is_not_loaded_before_the_number_of_threads_is_set():
    code = "import sys, minigpt.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY).returncode == 0


def test_other_ranks_wait_before_they_say_what_rank_0_says_too(monkeypatch, capsys):
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)
    for rank, expected in (("0", "minigpt: no\n"), ("3", "minigpt (rank 3): no\n")):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        cli.complain(UserError("no"))
        assert capsys.readouterr().err == expected
    assert waited == [cli.WAIT]


# ------------------------------------------------------------------------------------ one rank

def test_train_generate_evaluate(job, tmp_path):
    words, environment = job
    trained = minigpt(*words, **environment)
    assert trained.returncode == 0 and "Validation   this model" in trained.stdout, trained.stdout
    place = str(tmp_path / "runs" / "fox")
    one, two = (minigpt("generate", "--checkpoint", place, "--prompt", "the", "--tokens", "20", "--top-k", "40",
                        "--temperature", "0.8", "--seed", "1", **environment) for _ in range(2))
    assert one.returncode == 0 and one.stdout == two.stdout and one.stdout.startswith("the") and len(one.stdout) == 24
    judged = minigpt("evaluate", "--checkpoint", place, **environment)
    said = {line.split("nats")[0].strip() for line in trained.stdout.splitlines() if "nats a token" in line}
    assert len(said) == 3 and all(line in judged.stdout for line in said), judged.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_saves_and_ends_well(job, tmp_path, number):
    words, environment = job
    words += ["train.max_steps=100000", "train.log_every=100"]
    process = subprocess.Popen([sys.executable, "-m", "minigpt.cli", *words], cwd=REPOSITORY, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, **environment})
    for line in process.stdout:
        if line.startswith("step"):
            process.send_signal(number)
            break
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "Stopped after step" in rest and "--resume" in rest, rest
    step, = checkpoint.steps(tmp_path / "runs" / "fox" / "checkpoints")
    assert f"Stopped after step {step:,} of 100,000" in rest


# ------------------------------------------------------------------------------------ mpirun

@pytest.mark.mpi
def test_two_ranks_train_stop_and_go_on_with_the_losses_of_one_rank(job, tmp_path):
    words, environment = job
    whole = minigpt(*words, "train.dtype=float64", "data.batch_size=4", "train.name=one", **environment)
    assert whole.returncode == 0, whole.stdout
    words += ["train.dtype=float64", "train.debug=true", "train.name=two", "train.save_every=3"]
    first = mpirun(2, "-m", "minigpt.cli", *words, **environment)
    assert first.returncode == 0 and "Mesh         2 ranks" in first.stdout, first.stdout
    runs = tmp_path / "runs"
    unbroken = losses(runs / "two")
    assert unbroken == pytest.approx(losses(runs / "one"), rel=1e-10)
    newest = checkpoint.find(runs / "two")
    newest.rename(newest.with_name("gone"))
    second = mpirun(2, "-m", "minigpt.cli", *words, "--resume", **environment)
    assert second.returncode == 0 and "after step 3" in second.stdout, second.stdout
    assert losses(runs / "two") == unbroken


@pytest.mark.mpi
def test_case_100_a_rank_that_cannot_go_on_ends_all_with_one_message_in_seconds(job):
    words, environment = job
    started = time.monotonic()
    for change, message in (("data.corpus=/no/such/file", "minigpt: cannot prepare data.corpus='/no/such/file'"),
                            ("model.context=5000", "minigpt: the text has 810 tokens"),
                            ("train.max_step=3", "did you mean train.max_steps?")):
        ended = mpirun(2, "-m", "minigpt.cli", *words, change, timeout=40, **environment)
        assert ended.returncode not in (0, -9), ended.stdout
        assert ended.stdout.count(message) == 1 and "Traceback" not in ended.stdout, ended.stdout
    assert time.monotonic() - started < 60


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_case_107_a_storm_of_kills_changes_no_loss(job, tmp_path):
    words, environment = job
    words += ["train.max_steps=300", "model.d_model=64", "train.save_every=1"]
    whole = mpirun(2, "-m", "minigpt.cli", *words, "train.name=whole", **environment)
    assert whole.returncode == 0, whole.stdout
    storm = tmp_path / "runs" / "fox"
    for kill in range(40):                          # enough for a machine on which a start takes most of the time
        resume = ["--resume"] if checkpoint.steps(storm / "checkpoints") else []
        ended = mpirun(2, "-m", "minigpt.cli", *words, *resume, timeout=0.8 + 0.2 * kill, **environment)
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stdout
    assert kill > 0 and ended.returncode == 0
    assert losses(storm) == losses(tmp_path / "runs" / "whole")


@pytest.mark.mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_launch_stops_every_rank_at_the_same_step(job, tmp_path, number):
    words, environment = job
    words += ["train.max_steps=1000000", "train.log_every=100"]
    command = [sys.executable, "-m", "minigpt.cli", "launch", "-n", "2", sys.executable, "-m", "minigpt.cli", *words]
    process = subprocess.Popen(command, cwd=REPOSITORY, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True,
                               env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment})
    try:
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith("step"):
                process.send_signal(number)
                break
        rest = process.communicate(timeout=60)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0 and "Stopped after step" in rest, "".join(seen) + rest
    snapshot = checkpoint.Snapshot(checkpoint.find(tmp_path / "runs" / "fox"))
    assert f"Stopped after step {snapshot.step:,} of" in rest
