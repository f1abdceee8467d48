"""Checkpoints: the same bits come back, and what is damaged is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import comm
from autograd.backend import to_host
from minigpt import checkpoint
from minigpt.checkpoint import CheckpointError, Snapshot
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny
from tests.ranks import REPOSITORY, run


def trainer(*words, group=None, steps=2):
    made = Trainer(tiny.config(*words), tiny.corpus(), group or comm.world())
    for _ in range(steps):
        made.train_step()
    return made


def state(made):
    return [to_host(each).copy() for each in (made.optimizer.flat.data, *made.optimizer.moments.values())]


@pytest.mark.parametrize("words", [(), ("optim.name=sgd",), ("train.dtype=float64",)], ids=str)
def test_case_113_weights_and_moments_come_back_to_the_last_bit(tmp_path, words):
    first = trainer(*words)
    first.save(tmp_path)
    second = trainer(*words, "model.seed=5", steps=0)
    second.resume(checkpoint.find(tmp_path))
    for before, after in zip(state(first), state(second), strict=True):
        assert before.dtype == after.dtype and (before.view("u1") == after.view("u1")).all()
    assert second.step == 2 and second.optimizer.steps == 2


def test_case_114_a_tied_table_is_stored_once(tmp_path):
    snapshot = Snapshot(trainer(steps=0).save(tmp_path))
    assert "embedding.weight" in snapshot.index["parameters"]
    assert not any(name.startswith("head") for name in snapshot.index["parameters"])


def test_case_116_the_file_is_data_that_other_programs_read(tmp_path):
    import h5py
    made = trainer()
    path = made.save(tmp_path)
    with h5py.File(path / "shard-0000.h5") as file:
        weight = file["parameters/blocks.1.attention.output.weight"][()]
    np.testing.assert_array_equal(weight, to_host(made.model.blocks[1].attention.output.weight.data))
    index = json.loads((path / "index.json").read_text())
    assert index["step"] == 2 and index["config"].startswith("[model]") and "characters" in index["tokenizer"]


@pytest.mark.parametrize("name", ["index.json", "shard-0000.h5"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_named(tmp_path, name, damage):
    made = trainer()
    made.save(tmp_path)
    made.train_step()
    path = made.save(tmp_path)
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 4
    if damage == "gone":
        (path / name).unlink()
    else:
        (path / name).write_bytes({"flip": content, "cut": content[:-9], "empty": b""}[damage])
    with pytest.raises(CheckpointError, match="step-00000003 is damaged .*the one before it is .*step-00000002"):
        Snapshot(path)


def test_another_model_precision_optimizer_or_tokenizer_is_refused_before_anything_changes(tmp_path):
    path = trainer().save(tmp_path)
    for words, message in [
        (("model.n_layers=1",), r"it has blocks.1.norm1.gain as float32 \(16,\), this model not at all"),
        (("model.d_ff=8",), r"feed_forward.up.weight as float32 \(16, 64\), this model as float32 \(16, 8\)"),
        (("train.dtype=float64",), "this model as float64"),
        (("optim.name=sgd",), r"trained with AdamW \(first_moment, second_moment\), this run has SGD"),
    ]:
        other = trainer(*words, steps=0)
        before = state(other)
        with pytest.raises(CheckpointError, match=message):
            other.resume(path)
        for one, two in zip(before, state(other), strict=True):
            np.testing.assert_array_equal(one, two)
    other = Trainer(tiny.config(), tiny.corpus(), comm.world())
    object.__setattr__(other.corpus, "tokenizer", type(other.corpus.tokenizer)("abc"))
    with pytest.raises(CheckpointError, match="another tokenizer or corpus"):
        other.resume(path)


def test_a_checkpoint_of_a_later_format_names_both(tmp_path):
    path = trainer().save(tmp_path)
    index = json.loads((path / "index.json").read_text())
    (path / "index.json").write_text(json.dumps(index | {"format": 99}))
    with pytest.raises(CheckpointError, match="has format 99, this minigpt reads format 1"):
        Snapshot(path)


def test_nan_is_never_saved_and_the_last_checkpoint_stays(tmp_path):
    made = trainer()
    made.save(tmp_path)
    made.step += 1
    made.optimizer.flat.parameters["norm.gain"].data[3] = float("nan")
    with pytest.raises(CheckpointError, match="step 3: norm.gain is not finite, so nothing was saved"):
        made.save(tmp_path)
    assert list(checkpoint.steps(tmp_path)) == [2]


def test_only_the_newest_are_kept(tmp_path):
    made = trainer("train.keep=2", steps=0)
    for _ in range(4):
        made.train_step()
        made.save(tmp_path)
    assert list(checkpoint.steps(tmp_path)) == [3, 4]
    made.config.train.__dict__["keep"] = 0
    made.train_step()
    made.save(tmp_path)
    assert list(checkpoint.steps(tmp_path)) == [3, 4, 5]


def test_a_checkpoint_is_found_by_run_folder_or_itself_and_a_draft_never(tmp_path):
    path = trainer().save(tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / "step-00000009.draft").mkdir()
    for place in (tmp_path, tmp_path / "checkpoints", path):
        assert checkpoint.find(place) == path
    with pytest.raises(CheckpointError, match="there is no checkpoint in .*nowhere: expected the folder of a run"):
        checkpoint.find(tmp_path / "nowhere")


def test_the_same_step_can_be_saved_again(tmp_path):
    made = trainer()
    made.save(tmp_path)
    assert Snapshot(made.save(tmp_path)).step == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-00000002"]


def test_cases_108_and_110_one_rank_writes_and_nothing_is_compressed(tmp_path):
    import h5py

    def save(group):
        return trainer(group=group).save(tmp_path)

    paths = run(3, save)
    assert paths[1:] == [None, None]
    assert Snapshot(paths[0]).step == 2
    with h5py.File(paths[0] / "shard-0000.h5") as file:
        assert file["parameters/embedding.weight"].compression is None


SAVE_FOR_EVER = """
import sys
from tests.minigpt.test_checkpoint import trainer
made = trainer("model.d_model=64", "train.keep=2")
while True:
    made.step += 1
    made.save(sys.argv[1])
    print(made.step, flush=True)
"""


def test_case_107_a_kill_at_any_time_leaves_whole_checkpoints_only(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for kill in range(3):
        folder = tmp_path / str(kill)
        process = subprocess.Popen([sys.executable, "-c", SAVE_FOR_EVER, str(folder)], stdout=subprocess.PIPE,
                                   env=environment, cwd=REPOSITORY)
        for _ in range(3):
            process.stdout.readline()
        time.sleep(0.004 * kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = checkpoint.steps(folder)
        assert len(found) >= 2
        assert [Snapshot(path).step for path in found.values()] == list(found)


@pytest.mark.parametrize("call", ["mkdir", "write_text", "rename"])
def test_a_failure_anywhere_in_a_save_leaves_the_one_before(tmp_path, monkeypatch, call):
    made = trainer()
    made.save(tmp_path)
    made.train_step()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, call, full)
        with pytest.raises(CheckpointError, match="step 3 could not be saved in .*No space"):
            made.save(tmp_path)
    assert [Snapshot(path).step for path in checkpoint.steps(tmp_path).values()] == [2]
    assert Snapshot(made.save(tmp_path)).step == 3


def test_a_disk_that_fills_up_is_told_and_leaves_no_draft(tmp_path):
    """A limit on the size of files stands for the disk; HDF5 ends the process by a signal when it cannot write."""
    code = """if True:
        import resource, sys
        from tests.minigpt.test_checkpoint import trainer, CheckpointError
        made = trainer()
        made.save(sys.argv[1])
        made.train_step()
        for size in 40_000, 4_000:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            try:
                made.save(sys.argv[1])
            except CheckpointError as error:
                print(error)
    """
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=REPOSITORY, text=True, timeout=60,
                           capture_output=True)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    assert ended.stdout.count("could not be saved in") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]
