"""What the README shows runs, and what it names exists."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from minigpt import cli
from tests.examples.running import EXAMPLES, REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SHOWN = re.sub(r"<!--.*?-->", "", README, flags=re.DOTALL)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
SHELL = [line.partition("  #")[0] for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
NAMED = sorted(set(re.findall(r"(?<![\w/.-])(?:autograd|comm|data|minigpt|examples|tests|docs)/[\w./-]+\w", SHOWN)))
ROOMS = next(text for language, text in BLOCKS if text.startswith("autograd/ "))


def targets():
    """The targets of the Makefile that say what they do."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))


def test_all_python_of_the_readme_runs_in_order(tmp_path):
    script = tmp_path / "readme.py"
    script.write_text("\n".join(PYTHON), encoding="utf-8")
    ended = subprocess.run([sys.executable, str(script)], cwd=tmp_path, text=True, capture_output=True, timeout=100,
                           env={**os.environ, "MINIGPT_DEVICE": "cpu", "PYTHONPATH": str(REPOSITORY)}, check=False)
    assert ended.returncode == 0, ended.stderr
    for said in ("rank 0 of 1: [1 2 3]", "0.8807", "the gradient of input 0 (5, 3) is wrong", "log produced NaN"):
        assert said in ended.stdout
    assert len(PYTHON) >= 7


@pytest.mark.parametrize("name", NAMED)
def test_files_that_the_readme_names_exist(name):
    assert (REPOSITORY / name).exists()


def test_files_of_the_map_exist():
    room = ""
    for line in ROOMS.splitlines():
        names = re.split(r"\s{2,}", line.strip())[0]
        if not line.startswith(" "):
            room = names
            assert (REPOSITORY / room).is_dir()
            continue
        for name in names.split(", "):
            path = REPOSITORY / room / name
            assert path.exists() or path.with_suffix(".py").exists(), f"{room}{name}"


def test_every_example_stands_in_the_readme():
    assert {f"examples/{path.name}" for path in EXAMPLES.glob("*.py")} <= set(NAMED)


def test_the_readmes_make_targets_exist():
    named = {line.split()[1] for line in SHELL if line.startswith("make ")}
    named |= set(re.findall(r"`make ([\w-]+)`", README))
    assert named and named <= targets()


@pytest.mark.parametrize("line", [line for line in SHELL if "minigpt " in line])
def test_the_readmes_minigpt_commands_can_be_parsed(line):
    words = shlex.split(line)
    arguments = words[words.index("minigpt") + 1:]
    assert callable(cli.parser().parse_args(arguments).run)


def test_the_readme_cites_figures_only_where_there_are_some():
    published = (REPOSITORY / "docs" / "bench.json").exists()
    assert published != ("No figures are published here yet." in README)
