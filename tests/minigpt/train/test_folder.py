"""The folder of a run: one run at a time, nothing moved that is no run, no line of metrics twice."""

import json

import pytest

import comm
from minigpt import checkpoint
from minigpt.errors import UserError
from minigpt.train.folder import claim, set_aside
from minigpt.train.metrics import Metrics, read
from minigpt.train.run import Run
from tests.minigpt import tiny
from tests.ranks import run


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "fox.txt").write_text(tiny.TEXT)

    def go(*words, resume=False):
        settings = tiny.config(f"data.corpus={tmp_path / 'fox.txt'}", f"train.folder={tmp_path / 'runs'}", *words)
        Run(settings, comm.world(), ["tiny.toml"], resume).go()
    return go


def test_two_runs_do_not_write_in_the_same_folder(start, tmp_path):
    lock = claim(tmp_path / "runs" / "tiny")
    with pytest.raises(UserError, match="another run is writing"):
        start()
    assert not (tmp_path / "runs" / "tiny").exists()
    lock.release()
    start()
    with pytest.raises(UserError):
        start("optim.name=sgd", resume=True)
    start(resume=True)                                  # neither an end nor a mistake keeps the folder


def test_a_finished_run_that_is_resumed_repeats_no_line(start, tmp_path):
    start()
    before = (tmp_path / "runs" / "tiny" / "metrics.jsonl").read_text()
    start(resume=True)
    assert (tmp_path / "runs" / "tiny" / "metrics.jsonl").read_text() == before


def test_a_folder_that_is_no_run_is_not_moved(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for place in (tmp_path / "thesis", tmp_path / "thesis" / "chapter.txt"):
        with pytest.raises(UserError, match="is not the folder of a run"):
            set_aside(place, print)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_lines_that_are_no_metrics_lose_none_of_the_others(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "loss": 1.0}).encode() for step in (1, 2, 3)]
    path.write_bytes(b"\n".join([lines[0], b"junk", b"{}", b"[3]", b"\xff\xfe", *lines[1:], b'{"step": 4, "lo']))
    Metrics(path, step=2)
    assert [line["step"] for line in read(path)] == [1, 2]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write in .*file.*train\.folder"):
        claim(tmp_path / "file" / "run")


def test_every_rank_goes_on_from_the_checkpoint_that_rank_0_found(start, tmp_path, monkeypatch):
    """Ranks of a run that was killed may have saved once more between two looks."""
    start("train.save_every=3", "train.keep=0")
    find, looks = checkpoint.find, []

    def find_once(place):
        looks.append(place)
        return find(place)
    monkeypatch.setattr(checkpoint, "find", find_once)
    settings = tiny.config(f"data.corpus={tmp_path / 'fox.txt'}", f"train.folder={tmp_path / 'runs'}")
    run(3, lambda group: Run(settings, group, resume=True).leave())
    assert len(looks) == 1
