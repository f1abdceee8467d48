"""python -m comm bench under a real mpirun, at sizes that take no time: every result is checked."""

import csv
import sys

import numpy as np
import pytest

from comm.__main__ import main
from comm.bench.contenders import COLLECTIVES
from comm.bench.data import Data
from comm.bench.report import plot, row
from comm.bench.sweep import Result, _even
from comm.commands.bench import sizes
from tests.ranks import mpirun

BROKEN = """
import sys
from comm.__main__ import main
from comm.algorithms import ALGORITHMS
ring = ALGORITHMS["ring_{0}"]
def lazy(rank, size, **root):
    yield from list(ring.rule(rank, size, **root))[:-1]
ALGORITHMS["lazy_{0}"] = ring._replace(rule=lazy)
sys.exit(main(["bench", "{0}", "--sizes", "4KiB", "--algorithms", "{1}", "--without-gloo"]))
"""


@pytest.mark.mpi
@pytest.mark.parametrize("size", [2, 3])
def test_every_collective_is_right_beside_mpi(size, tmp_path):
    table, picture = tmp_path / "times.csv", tmp_path / "times.png"
    ended = mpirun(size, "-m", "comm", "bench", "--sizes", "4" if size == 2 else "3000", "--csv", table, "--plot",
                   picture, "--without-gloo", MINIGPT_CACHE=tmp_path, MINIGPT_COMM_CHECK="0")
    assert ended.returncode == 0, ended.stdout
    assert "WRONG" not in ended.stdout
    rows = list(csv.DictReader(table.open()))
    assert {one["collective"] for one in rows} == set(COLLECTIVES)
    for kind in COLLECTIVES:
        mine = [one for one in rows if one["collective"] == kind]
        assert mine[0]["algorithm"] == "MPI" and float(mine[0]["ratio"]) == 1
        assert all(float(one["seconds"]) > 0 and int(one["wrong"]) == 0 for one in mine)
    chosen = [one for one in rows if one["collective"] == "all_reduce" and one["chosen"]]
    assert len(chosen) >= 2
    ring = next(one for one in rows if one["algorithm"] == "ring_reduce_scatter")
    assert float(ring["sent"]) == int(ring["nbytes"]) * (size - 1) / size
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.mpi
@pytest.mark.slow
def test_gloo_is_right_too(tmp_path):
    """PyTorch takes seconds to start."""
    pytest.importorskip("torch")
    ended = mpirun(3, "-m", "comm", "bench", "all_reduce", "all_gather", "broadcast", "reduce", "barrier", "--sizes",
                   "3000", "--algorithms", "ring,binomial", MINIGPT_CACHE=tmp_path, MINIGPT_COMM_CHECK="0")
    assert ended.returncode == 0 and "WRONG" not in ended.stdout, ended.stdout
    assert sum(" gloo " in line for line in ended.stdout.splitlines()) == 5


@pytest.mark.mpi
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "gather"])
def test_an_algorithm_that_is_wrong_is_found(kind, tmp_path):
    """The lazy ring leaves out its last step."""
    if kind == "gather":
        program = BROKEN.replace("ring_{0}", "direct_{0}").format(kind, "lazy")
    else:
        program = BROKEN.format(kind, "lazy,ring")
    ended = mpirun(2, "-c", program, MINIGPT_CACHE=tmp_path, MINIGPT_COMM_CHECK="0")
    assert ended.returncode == 1, ended.stdout
    lines = [line for line in ended.stdout.splitlines() if line.lstrip().startswith("4,096")]
    assert any(f"lazy_{kind}" in line for line in lines)
    for line in lines:  # a plain call may be lazy too: it is the fastest
        assert "plain" in line or ("WRONG" in line) == (f"lazy_{kind}" in line)


@pytest.mark.mpi
def test_one_rank_is_told_how_to_start():
    ended = mpirun(1, "-m", "comm", "bench")
    assert ended.returncode == 2 and "mpirun -n 2 python -m comm bench" in ended.stdout


@pytest.mark.mpi
@pytest.mark.parametrize("arguments, words", [
    (["--csv", "/nowhere/times.csv"], "cannot write /nowhere/times.csv"),
    (["--sizes", "1P"], "choose smaller --sizes"),
])
def test_what_cannot_work_is_told_before_the_work(arguments, words, tmp_path):
    ended = mpirun(2, "-m", "comm", "bench", *arguments, MINIGPT_CACHE=tmp_path)
    assert ended.returncode == 2 and words in ended.stdout


def test_without_mpirun_it_says_how_to_start(capsys):
    assert main(["bench"]) == 2
    assert "mpirun -n 2 python -m comm bench" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, words", [
    (["alreduce"], "did you mean all_reduce?"),
    (["--algorithms", "rign"], "did you mean ring?"),
    (["--sizes", "big"], "expected bytes"),
    (["--sizes", "0"], "from 1"),
])
def test_what_it_does_not_know_is_told(capsys, arguments, words):
    with pytest.raises(SystemExit):
        main(["bench", *arguments])
    assert words in capsys.readouterr().err


def test_sizes_go_by_fours_or_are_listed():
    assert sizes("4,1KiB") == [4, 1024]
    assert sizes("4-256MiB") == [4 ** k for k in range(1, 15)]
    assert sizes("1K-20K,7") == [1000, 4000, 16_000, 7]


def test_sizes_are_cut_evenly_where_ranks_have_parts():
    assert _even([4, 1000], "all_reduce", 3) == [4, 1000]
    assert _even([4, 1000], "all_gather", 3) == [12, 1008]
    assert _even([4, 5, 12], "all_to_all", 3) == [12]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_data_of_all_ranks_fits_together(size):
    """What each collective promises, from the ranks' inputs by NumPy."""
    n = 1000 * size
    before = np.full((size, n), np.nan, np.float32)
    for kind in COLLECTIVES[:-1]:
        data = [Data(kind, rank, size, n) for rank in range(size)]
        for one, buffer in zip(data, before):
            one.fill(buffer)
        blocks = before.reshape(size, size, -1)
        after = {
            "all_reduce": [before.sum(0)] * size, "reduce": [before.sum(0)] + [None] * (size - 1),
            "broadcast": [before[0]] * size, "reduce_scatter": list(before.sum(0).reshape(size, -1)),
            "all_gather": [np.concatenate([blocks[r, r] for r in range(size)])] * size,
            "gather": [np.concatenate([blocks[r, r] for r in range(size)])] + [None] * (size - 1),
            "scatter": list(blocks[0]), "all_to_all": list(blocks.transpose(1, 0, 2).reshape(size, -1)),
        }[kind]
        assert [one.wrong(result) for one, result in zip(data, after)] == [0] * size
        spoilt = after[0].copy()
        spoilt[-1] += 1
        assert data[0].wrong(spoilt) == 1
        assert data[0].wrong(spoilt[1:]) >= spoilt.size - 1
        if size > 1 and kind not in ("scatter", "reduce_scatter"):
            assert data[0].wrong(np.roll(after[0], n // size)) > n / 2  # a chunk in another's place


def test_case_106_bandwidth_says_what_it_means():
    """CASES 106: algbw is M over time, busbw what any algorithm must move; beside them the bytes really sent."""
    line = row(Result("all_reduce", 1 << 20, "ring_all_reduce", "messages", 1e-3, 9e-4, 1.048576e9, 1.572864e9,
                      1572864.0, 0.5, "window", 0))
    for words in ("1,048,576", "1,000.0", "1.049", "1.573", "1,572,864", "0.50", "window"):
        assert words in line
    assert "WRONG: 7 elements" in row(Result("barrier", 0, "x", "", 1e-3, 1e-3, 0, 0, None, 1, "", 7))


def test_a_plot_has_a_panel_for_each_collective(tmp_path):
    results = [Result(kind, n, name, "messages", n * 1e-9, 0, 0, 0, 0, 1, "window", 0)
               for kind in ("all_reduce", "all_gather", "broadcast") for n in (4, 4000) for name in ("MPI", "ring")]
    plot(tmp_path / "a.png", results, "2 ranks")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_without_matplotlib_there_is_a_line_instead(tmp_path, monkeypatch, capsys):
    from types import SimpleNamespace

    from comm.commands.bench import _keep
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _keep(SimpleNamespace(csv=None, plot=str(tmp_path / "a.png")), [], SimpleNamespace(size=2))
    assert "matplotlib is not installed" in capsys.readouterr().out
