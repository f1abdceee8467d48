"""The bench races what it says it races."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from minigpt import bench
from minigpt.bench import cases, duel, worker


def test_a_race_alone_reports_our_speed_and_memory(capsys, tmp_path):
    assert bench.main(["mlp-16-16", "--rounds", "1", "--json", str(tmp_path / "bench.json")]) == 0
    (row,) = json.loads((tmp_path / "bench.json").read_text())
    assert row["case"] == "mlp-16-16" and row["ours"] > 0 and row["ours_peak_mb"] > 20
    assert "mlp-16-16" in capsys.readouterr().out
    assert row["losses"][0] > row["losses"][-1]


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", ["toy", "mlp-128"])
def test_the_peer_computes_the_same_losses(name):
    row = duel.race(cases.BY_NAME[name], rounds=1)
    assert row["ratio"] > 0 and row["peer_peak_mb"] > 0


@pytest.mark.mpi
def test_two_ranks_compute_the_losses_of_one_with_twice_the_batch():
    two = duel.race(cases.BY_NAME["char-2-ranks"], rounds=1, peer=False)
    assert np.isfinite(two["losses"]).all() and two["losses"][0] > two["losses"][-1]


def test_different_losses_end_the_race():
    with pytest.raises(RuntimeError, match="at step 1 our loss is 2.0"):
        duel.agree(cases.BY_NAME["toy"], [1.0, 2.0], [1.0, 2.1])


def test_the_data_of_the_ranks_are_the_parts_of_the_whole():
    case = cases.BY_NAME["char-2-ranks"]
    whole, _ = worker.data(case)
    parts = [worker.data(case, rank)[0] for rank in range(case.ranks)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_an_unknown_case_is_refused(capsys):
    with pytest.raises(SystemExit) as end:
        bench.main(["chra"])
    assert end.value.code == 2 and "char" in capsys.readouterr().err
