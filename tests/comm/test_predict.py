"""Predictions, by hand: rounds, messages, bytes and additions of algorithms that one can count."""

import numpy as np
import pytest

from comm.algorithms import ALGORITHMS
from comm.predict import (
    DEFAULT,
    Curve,
    Model,
    best_row,
    candidates,
    crossovers,
    line,
    parameters,
    predict,
    seconds_of,
    table,
)
from comm.profile import MESSAGES, STAGED, WALKED, WINDOW, _by_formula, profile
from comm.schedule import Algorithm, Step

M = 1 << 20
ALPHA, BETA, GAMMA = 1e-5, 1e-9, 2e-10
MODEL = Model.of(ALPHA, BETA, GAMMA)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_ring_all_reduce_costs_what_patarasuk_says(size):
    share = M / size
    want = 2 * (size - 1) * (ALPHA + share * BETA) + (size - 1) * share * GAMMA
    assert predict("ring_all_reduce", size, M, MODEL) == pytest.approx(want)


@pytest.mark.parametrize("size, rounds, adds", [(2, 1, 1), (8, 3, 3), (5, 4, 3)])
def test_recursive_doubling_costs_the_whole_message_in_every_round(size, rounds, adds):
    want = rounds * (ALPHA + M * BETA) + adds * M * GAMMA
    assert predict("recursive_doubling_all_reduce", size, M, MODEL) == pytest.approx(want)


def test_every_further_message_of_a_round_costs_alpha():
    want = 3 * ALPHA + 3 * (M / 4) * BETA
    assert predict("direct_gather", 4, M, MODEL) == pytest.approx(want)


def test_chain_costs_a_segment_in_every_round():
    want = (4 - 1 + 8 - 1) * (ALPHA + M / 8 * BETA)
    assert predict("chain_broadcast", 4, M, MODEL, segments=8) == pytest.approx(want)


def test_the_window_costs_a_meeting_for_every_round_and_one_at_the_end():
    model = DEFAULT._replace(meet=1.0, read=line(0, BETA), add=line(0, GAMMA))
    want = (2 * 3 + 1) * 1.0 + 3 * (M / 4) * BETA + 3 * (M / 4) * GAMMA
    assert predict("ring_all_reduce", 4, M, model, WINDOW) == pytest.approx(want)


def test_staging_copies_what_is_shown():
    model = DEFAULT._replace(meet=0.0, read=line(0, BETA), add=line(0, 0))
    assert predict("ring_all_gather", 4, M, model, WINDOW) == pytest.approx(3 * (M / 4) * BETA)
    assert predict("ring_all_gather", 4, M, model, STAGED) == pytest.approx(2 * 3 * (M / 4) * BETA)


def test_on_few_cores_a_rank_that_works_alone_is_faster():
    """Costs are those of all ranks at work at once; at the root of a star one adds while the others wait."""
    crowded = MODEL._replace(crowd=2.0, alone=line(0, GAMMA / 4))
    moved = 2 * 3 * M * BETA
    assert predict("star_all_reduce", 4, M, MODEL) == pytest.approx(6 * ALPHA + moved + 3 * M * GAMMA)
    assert predict("star_all_reduce", 4, M, crowded) == pytest.approx(4 * ALPHA + moved + 3 * M * GAMMA / 4)
    assert predict("ring_all_reduce", 4, M, crowded) == predict("ring_all_reduce", 4, M, MODEL)


def test_between_nodes_the_window_is_no_way():
    model = DEFAULT._replace(exchange=line(ALPHA, BETA), send=line(ALPHA, BETA), meet=1.0, read=line(0, 0))
    want = ALPHA + M / 2 * BETA
    assert predict("ring_all_gather", 2, M, model, WINDOW, nodes=(0, 1)) == pytest.approx(want)


def test_a_curve_goes_through_its_points_and_on():
    curve = Curve((0, 10, 20), (1.0, 2.0, 4.0))
    assert [curve(n) for n in (0, 5, 10, 15, 20, 30)] == [1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert curve.slope == 0.2
    assert Curve((4,), (1.0,))(100) == 1.0
    assert Curve((4, 8), (1.0, 2.0))(0) == 1.0


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if "nodes" not in parameters(name)])
@pytest.mark.parametrize("size", [2, 7, 64, 65])
def test_formulas_equal_what_is_walked(name, size):
    """What large groups are priced with is, on small ones, what the rounds say."""
    for options in ALGORITHMS[name].variants(size)[:2]:
        walked = profile(name, size, MESSAGES, None, tuple(sorted(options.items())))
        told = _by_formula(name, size, options, walked.chunks)
        assert (told.rounds, told.sent) == (walked.rounds, walked.sent)


@pytest.mark.parametrize("name", ["ring_all_reduce", "recursive_doubling_all_reduce", "binomial_broadcast",
                                  "binomial_reduce", "ring_reduce_scatter", "pairwise_all_to_all",
                                  "direct_all_reduce", "direct_all_to_all", "bruck_all_gather"])
def test_the_formula_prices_like_the_rounds(name):
    walked, told = profile(name, 64), _by_formula(name, 64, {}, ALGORITHMS[name].chunks(64))
    assert seconds_of(told, M, MODEL) == pytest.approx(seconds_of(walked, M, MODEL), rel=0.02)


def test_more_bytes_never_take_less_time():
    for name in ALGORITHMS:
        row = [best_row(name, 6, 4 ** k, DEFAULT, nodes=(0, 0, 0, 1, 1, 1)).seconds for k in range(1, 14)]
        assert row == sorted(row), name


def test_a_table_is_sorted_and_leaves_out_what_does_not_fit():
    rows = table("all_reduce", 4, M, DEFAULT, (MESSAGES, WINDOW, STAGED), (0, 0, 0, 0))
    assert [row.seconds for row in rows] == sorted(row.seconds for row in rows)
    names = {row.algorithm for row in rows}
    assert not any(name.startswith(("naive", "hierarchical")) for name in names)
    assert "ring_all_reduce" in names


def test_what_needs_nodes_is_a_candidate_on_several_nodes_only(monkeypatch):
    ring = ALGORITHMS["ring_all_reduce"]
    rule = lambda rank, size, nodes=(): ring.rule(rank, size)
    monkeypatch.setitem(ALGORITHMS, "told_all_reduce", Algorithm(rule, "all_reduce", *ring[2:5]))
    assert "told_all_reduce" in candidates("all_reduce", 4, (0, 0, 1, 1))
    for nodes in (None, (0, 0, 0, 0), (0, 1, 2, 3)):
        assert "told_all_reduce" not in candidates("all_reduce", 4, nodes)


def test_short_messages_take_few_rounds_and_long_ones_few_bytes():
    found = crossovers("all_reduce", 8, MODEL)
    assert [row.algorithm for _, row in found][0] == "recursive_doubling_all_reduce"
    assert found[-1][1].sent == pytest.approx(2 * 7 / 8 * found[-1][0], rel=0.1)
    starts = [start for start, _ in found]
    assert starts == sorted(set(starts)) and starts[0] == 4


def test_a_crossover_is_where_two_predictions_meet():
    (_, before), (start, after) = crossovers("all_reduce", 2, MODEL)[:2]
    left, right = (predict(row.algorithm, 2, start, MODEL, **row.options) for row in (before, after))
    assert left == pytest.approx(right, rel=0.1)


def test_the_number_of_segments_grows_with_the_message():
    segments = [best_row("chain_broadcast", 8, 4 ** k, MODEL).options["segments"] for k in range(1, 14)]
    assert segments[0] == 1 and segments == sorted(segments) and segments[-1] > 8
    assert best_row("chain_broadcast", 8, 4 ** 13, MODEL).seconds < predict("chain_broadcast", 8, 4 ** 13, MODEL)


def test_large_groups_are_priced_by_formula_and_quickly():
    rows = table("all_reduce", 10_000, M, MODEL)
    direct = next(row for row in rows if row.algorithm == "direct_all_reduce")
    assert direct.seconds == pytest.approx(2 * 9_999 * ALPHA, rel=0.1)  # a message to everybody, twice
    assert rows[0].algorithm != "ring_all_reduce" and rows[0].rounds < 100
    assert WALKED <= 1024


def test_one_rank_needs_no_time():
    for collective in ("all_reduce", "broadcast", "all_to_all", "gather"):
        assert table(collective, 1, M, DEFAULT)[0].seconds == 0


def test_rules_that_overwrite_what_they_show_are_not_for_the_window(monkeypatch):
    def swap(rank, size):
        yield Step(rank ^ 1, 0 * rank, rank ^ 1, 0 * rank, reduce=True)

    monkeypatch.setitem(ALGORITHMS, "swap_all_reduce", Algorithm(
        swap, "all_reduce", lambda n: 1, lambda n: 1, lambda n: 2, chunks=lambda n: 1))
    assert profile("swap_all_reduce", 2, WINDOW) is None
    assert predict("swap_all_reduce", 2, M, DEFAULT, WINDOW) is None
    assert profile("swap_all_reduce", 2, STAGED) is not None


def test_predictions_are_floats_of_python():
    """NumPy may add in another order on another machine, and ranks must agree to the last bit."""
    for row in table("all_reduce", 5, np.int64(M), DEFAULT, (MESSAGES, WINDOW)):
        assert type(row.seconds) is float
        assert type(predict(row.algorithm, 5, M, DEFAULT, row.transport, **row.options)) is float
