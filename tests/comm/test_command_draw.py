"""python -m comm draw and table: what a newcomer types, and mistypes."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from comm.__main__ import main
from comm.player import PARTS

ROOT = Path(__file__).resolve().parent.parent.parent


def test_draw_names_the_file_after_the_algorithm(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "ring_all_reduce", "--ranks", "3"]) == 0
    assert Path("ring_all_reduce.svg").read_text(encoding="utf-8").startswith("<svg")
    assert capsys.readouterr().out == "ring_all_reduce.svg: ring_all_reduce on 3 ranks\n"


def test_draw_chooses_the_format_by_the_suffix(tmp_path):
    path = tmp_path / "ring.HTML"
    assert main(["draw", "ring_all_reduce", "-o", str(path), "--bytes", "350G"]) == 0
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert '"bytes":350000000000' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments, title", [
    (["chain_broadcast", "--root", "2", "--segments", "3"], "chain_broadcast, 4 ranks, root C, segments 3"),
    (["hierarchical_all_reduce", "--nodes", "0,0,0,1"], "hierarchical_all_reduce, 4 ranks, nodes 0,0,0,1"),
    (["pat_all_gather", "--aggregate", "1"], "pat_all_gather, 4 ranks, aggregate 1"),
])
def test_table_and_draw_take_the_options_of_the_rule(arguments, title, tmp_path, capsys):
    assert main(["table", *arguments]) == 0
    assert capsys.readouterr().out.startswith(f"{title}\n\nat the start:\n")
    for name in ("drawn.svg", "drawn.html"):
        assert main(["draw", *arguments, "-o", str(tmp_path / name)]) == 0
        assert f">{title}<" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments, words", [
    (["draw", "rnig_all_reduce"], "did you mean ring_all_reduce?"),
    (["draw", "ring_all_reduce", "--ranks", "0"], "expected a number of ranks, from 1"),
    (["draw", "ring_all_reduce", "--ranks", "65", "-o", "x.html"], "65 ranks: a page plays at most 64"),
    (["draw", "ring_all_reduce", "-o", "ring.png"], "expected a name that ends in .svg or .html"),
    (["draw", "ring_all_reduce", "-o", "ring"], "expected a name that ends in .svg or .html"),
    (["draw", "ring_all_reduce", "-o", "no/such/folder/ring.svg"], "cannot write no/such/folder/ring.svg"),
    (["draw", "ring_all_reduce", "--bytes", "1G"], "--bytes is shown by a page: expected -o FILE.html"),
    (["draw", "ring_all_reduce", "-o", "x.html", "--bytes", "much"], "expected bytes, as in"),
    (["table", "ring_all_reduce", "--root", "1"], "ring_all_reduce takes no --root; these do: binomial_broadcast"),
    (["table", "ring_all_reduce", "--segments", "2"], "takes no --segments; these do: double_tree_all_reduce"),
    (["table", "chain_broadcast", "--segments", "0"], "expected a whole number, from 1"),
    (["table", "chain_broadcast", "--root", "4"], "--root 4: expected one of the 4 ranks, 0 to 3"),
    (["table", "hierarchical_all_reduce", "--nodes", "0,1"], "--nodes names the node of 2 ranks: expected 4"),
    (["table", "hierarchical_all_reduce", "--nodes", "0,x"], "expected the node number of every rank"),
])
def test_mistakes_are_answered_with_what_was_expected(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_table_ends_quietly_when_nobody_reads_on():
    shown = subprocess.run(f"{sys.executable} -m comm table ring_all_reduce --ranks 64 | head -n 1", shell=True,
                           cwd=ROOT, capture_output=True, text=True)
    assert (shown.stdout, shown.stderr) == ("ring_all_reduce, 64 ranks\n", "")


def test_a_wheel_brings_the_page_along(tmp_path):
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    if sys.platform == "win32":
        pytest.skip("paths are those of other systems")
    wheel = next(builder.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    parts = {"comm/player.html", "comm/page/style.css", *(f"comm/page/{part}.js" for part in PARTS)}
    assert parts <= set(zipfile.ZipFile(wheel).namelist())
