import math
import re

import pytest

from tests.examples.running import run
from tests.ranks import mpirun

TEXT = "the cat sat down and began to purr\n" * 200


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "cat.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def losses(said):
    return [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+)$", said, re.MULTILINE)]


def test_it_learns_a_text_and_writes_it(text, tmp_path):
    said = run("train_gpt.py", "--corpus", text, "--steps", 60, "--prompt", "the cat", MINIGPT_CACHE=str(tmp_path))
    first, *_, last = losses(said)
    assert abs(first - math.log(len(set(TEXT)))) < 0.2 and last < first / 2
    assert "\nthe cat" in said


def test_without_a_prompt_any_text_will_do(tmp_path):
    path = tmp_path / "no-line-ends.txt"
    path.write_text("abcd" * 300, encoding="utf-8")
    assert run("train_gpt.py", "--corpus", path, "--steps", 1, MINIGPT_CACHE=str(tmp_path)).count("loss") == 2


@pytest.mark.mpi
def test_two_ranks_print_once(text, tmp_path):
    ended = mpirun(2, "examples/train_gpt.py", "--corpus", text, "--steps", 26, MINIGPT_CACHE=str(tmp_path))
    assert ended.returncode == 0, ended.stdout
    assert len(losses(ended.stdout)) == 2 and "2 rank(s)" in ended.stdout
    assert ended.stdout.count("validation loss") == 1
