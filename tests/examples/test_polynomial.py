import sys

import numpy as np
import pytest

from examples import polynomial as example
from tests.examples.running import run

VALUES = (6.1, -0.22, 4581.8207, 617_502.85), (0, -1.2, 3, 0.5188), (8, -0.8, 14282.04, 5_999_985.84)


@pytest.mark.parametrize("x, target, y, loss", VALUES)
def test_fact_3_values_of_the_polynomial(x, target, y, loss):
    assert example.polynomial(x) == pytest.approx(y, abs=5e-5)


@pytest.mark.parametrize("x, target, y, loss", VALUES)
def test_fact_4_squared_errors_over_34(x, target, y, loss):
    assert example.share_of_loss(example.polynomial(x), target) == pytest.approx(loss, abs=5e-3)


def test_fact_4_the_article_squares_a_rounded_value():
    assert example.share_of_loss(round(example.polynomial(6.1), 2), -0.22) == pytest.approx(617_502.66, abs=5e-3)


def test_fact_5_the_loss_falls_nearly_to_the_least_possible():
    x, y = example.noisy_points()
    table = example.powers(x)
    losses, places = example.descend(table, y, np.zeros(6), 0.9 * example.largest_step(table), 1500)
    least = np.mean((table @ np.linalg.lstsq(table, y, rcond=None)[0] - y) ** 2)
    assert len(x) == 34 and places.shape == (1501, 6)
    assert np.all(np.diff(losses) < 0)
    assert least < losses[-1] < 1.2 * least < losses[0] / 50


def test_fact_5_a_step_just_too_long_diverges_and_one_just_short_enough_does_not():
    x, y = example.noisy_points()
    table = example.powers(x)
    limit = example.largest_step(table)
    losses = {share: example.descend(table, y, np.zeros(6), share * limit, 400)[0] for share in (0.98, 1.02)}
    assert losses[0.98][-1] < losses[0.98][0] / 10
    assert losses[1.02][-1] > losses[1.02][0] * 10


def test_facts_3_to_5_are_printed_and_drawn(tmp_path):
    said = run("polynomial.py", "--out", tmp_path / "new" / "folder")
    for number in "4,581.8207", "14,282.0400", "617,502.8502", "0.5188", "5,999,985.8372", "617,502.6636":
        assert number in said
    assert "diverges" in said and "falls" in said
    pictures = sorted((tmp_path / "new" / "folder").glob("*.png"))
    assert [p.name for p in pictures] == ["polynomial-fit.png", "polynomial-loss-surface.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") and p.stat().st_size > 10_000 for p in pictures)


def test_without_matplotlib_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    example.main(["--out", str(tmp_path)])
    assert "pip install matplotlib" in capsys.readouterr().out
