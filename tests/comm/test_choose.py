"""Which algorithm Group takes: the fastest by the model, and the same on all ranks."""

import json
import os
import pickle
import time

import numpy as np
import pytest

import comm
from comm import costs
from comm.algorithms import ALGORITHMS
from comm.choose import Chooser
from comm.measure import SIZES, measure, rising, sane
from comm.predict import DEFAULT, Curve, Model, line
from comm.threads import Board, Threads
from tests.ranks import mpirun, run

COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
SIZES_TRIED = [0, 1, 4, 1000, 65_536, 1 << 20, 100_000_001, 1 << 34]
MEASURED = Model(Curve((4.0, 1024.0), (1e-6, 2e-6)), line(1e-6, 1e-9), 1e-6, line(0.0, 1e-10), 3e-6,
                 line(0.0, 1e-10), line(0.0, 2e-10), source="measured")


def on_paper(size, nodes=None, model=None):
    return Chooser(Threads(Board(size), range(size), 0, nodes), model)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
def test_something_is_chosen_for_every_collective_and_size(size):
    chooser = on_paper(size)
    for collective in COLLECTIVES:
        for nbytes in SIZES_TRIED:
            for window, placed in ((False, False), (True, False), (True, True)):
                choice = chooser.pick(collective, nbytes, window, placed)
                assert ALGORITHMS[choice.algorithm].collective == collective
                assert not choice.window or window and size > 1


def test_short_all_reduces_take_few_rounds_long_ones_few_bytes():
    chooser = on_paper(8)
    chosen = [chooser.pick("all_reduce", 4 ** k) for k in range(1, 15)]
    sent = [ALGORITHMS[c.algorithm].sent(8, **c.options) / ALGORITHMS[c.algorithm].chunks(8, **c.options)
            for c in chosen]
    assert chosen[0].algorithm == "recursive_doubling_all_reduce"
    assert sent == sorted(sent, reverse=True) and sent[-1] == pytest.approx(2 * 7 / 8)


def test_a_choice_is_looked_up_the_second_time():
    chooser = on_paper(8)
    assert chooser.pick("all_reduce", 12345) is chooser.pick("all_reduce", 12345)
    start = time.perf_counter()
    for _ in range(1000):
        chooser.pick("all_reduce", 12345)
    assert time.perf_counter() - start < 0.05  # a thousandth of what a choice costs, and ten times the lookup


def test_sizes_around_a_power_of_two_share_a_choice_and_memory_stays_bounded():
    chooser = on_paper(4)
    assert chooser.pick("broadcast", 1_000_000) is chooser.pick("broadcast", 1 << 20)
    for nbytes in range(10_000):
        chooser.pick("all_reduce", nbytes)
    assert len(chooser._picked) <= 4096 and len(chooser._by_class) < 40


def test_a_hierarchy_is_for_several_nodes():
    """Nothing that needs to know nodes is chosen on one; what is named gets the group's."""
    slow = Model.of(1e-6, 1e-10)
    assert all("nodes" not in on_paper(8, model=slow).pick(c, 1 << k).options for c in COLLECTIVES for k in (2, 20))
    named = [name for name, a in ALGORITHMS.items() if name.startswith("hierarchical")]
    for name in named:
        assert on_paper(4, (0, 0, 1, 1)).named(name, 100).options == {"nodes": (0, 0, 1, 1)}


def test_nobody_meets_in_shared_memory_who_has_no_company():
    chooser = on_paper(2, (0, 1), DEFAULT._replace(meet=1e-9, read=line(0.0, 1e-15), add=line(0.0, 1e-15)))
    assert not chooser.pick("all_reduce", 1 << 24, True, True).window


def test_shared_memory_is_taken_where_it_is_faster_and_not_for_what_is_huge_and_elsewhere():
    chooser = on_paper(4, model=DEFAULT._replace(meet=1e-9, read=line(0.0, 1e-15), add=line(0.0, 1e-15)))
    assert chooser.pick("all_gather", 1 << 24, True, True).window
    assert chooser.pick("all_gather", 1 << 24, True).window
    assert not chooser.pick("all_gather", 1 << 24).window
    assert not chooser.pick("all_gather", 1 << 30, True).window
    assert chooser.pick("all_gather", 1 << 30, True, True).window


def picks(group):
    return [tuple(map(str, group._chooser.pick(c, n, w, p))) for c in COLLECTIVES for n in SIZES_TRIED
            for w, p in ((False, False), (True, False), (True, True))]


@pytest.mark.parametrize("size", [2, 5])
def test_all_threads_choose_alike_and_measure_nothing(size):
    first, *others = run(size, picks)
    assert all(other == first for other in others)
    assert comm.run(2, lambda group: group._chooser.model.source) == ["default", "default"]


def picks_and_source(group):
    return picks(group), group._chooser.model


def unchecked(size, function, cache, folder):
    """[function(group)] of processes that are not checked, as users run them, with this cache."""
    folder.mkdir()
    ended = mpirun(size, "-m", "tests.ranks", f"{__name__}:{function.__name__}", folder, MINIGPT_CACHE=cache,
                   MINIGPT_COMM_CHECK="0")
    assert ended.returncode == 0, ended.stdout
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(size)]


@pytest.mark.mpi
def test_all_processes_choose_alike_by_what_was_measured_once(tmp_path):
    """The first job measures and keeps it; the second finds it; a file that is broken is measured again."""
    found = []
    for job, ruined in enumerate((False, False, True)):
        for file in tmp_path.glob("comm/*.json") if ruined else ():
            file.write_text(file.read_text()[:50])
        results = unchecked(2, picks_and_source, tmp_path, tmp_path / str(job))
        assert results[0] == results[1]
        found.append(results[0][1])
    measured, cached, again = found
    assert (measured.source, cached.source, again.source) == ("measured", "cached", "measured")
    assert cached == measured._replace(source="cached")
    files = os.listdir(tmp_path / "comm")
    assert len(files) == 1 and files[0].endswith(".json")
    assert 0 < measured.alpha < 0.1 and 0 < 1 / measured.beta < 1e13


def split_and_pick(group):
    part = group.split(group.rank % 2)
    return picks(part), float(part.all_reduce(np.ones(1000))[0])


@pytest.mark.mpi
def test_split_groups_measure_for_themselves_and_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    results = unchecked(3, split_and_pick, tmp_path / "file", tmp_path / "results")
    assert results[0] == results[2] and [total for _, total in results] == [2, 1, 2]


@pytest.mark.mpi
def test_checked_runs_measure_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path))
    assert [model for _, model in run(2, picks_and_source, mpi=True)] == [DEFAULT, DEFAULT]
    assert not list(tmp_path.iterdir())


def test_costs_come_back_from_a_file_as_they_were(tmp_path):
    path = tmp_path / "new" / "costs.json"
    costs.write(path, MEASURED)
    assert costs.read(path) == MEASURED._replace(source="cached")
    assert os.listdir(path.parent) == ["costs.json"]


@pytest.mark.parametrize("spoil", [
    lambda kept: "", lambda kept: "{", lambda kept: "[1, 2]", lambda kept: json.dumps({**kept, "version": 99}),
    lambda kept: json.dumps({"version": 1}), lambda kept: json.dumps({**kept, "costs": {}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "post": -1.0}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "post": float("nan")}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "post": "soon"}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "read": [[4, 4], [1e-6, 1e-6]]}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "read": [[4, 8], [1e-6]]}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "read": [[], []]}}),
    lambda kept: json.dumps({**kept, "costs": {**kept["costs"], "read": [list(range(99)), [1e-6] * 99]}}),
])
def test_a_file_that_is_not_ours_or_not_whole_counts_as_none(tmp_path, spoil):
    path = tmp_path / "costs.json"
    costs.write(path, MEASURED)
    path.write_text(spoil(json.loads(path.read_text())))
    assert costs.read(path) is None


def test_no_file_is_no_costs(tmp_path):
    assert costs.read(tmp_path / "missing.json") is None
    (tmp_path / "folder.json").mkdir()
    assert costs.read(tmp_path / "folder.json") is None
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert costs.read(tmp_path / "bytes.json") is None


def test_costs_survive_the_way_as_numbers():
    there = costs._from_numbers(costs._to_numbers(MEASURED), "measured")
    assert there == MEASURED
    assert costs._from_numbers(costs._to_numbers(None), "measured") is None


def test_nonsense_is_replaced_by_the_default():
    wrong = MEASURED._replace(post=-1e-6, meet=float("nan"), read=Curve((4.0, 8.0), (2e-6, 1e-6)))
    assert sane(wrong) == MEASURED._replace(post=DEFAULT.post, meet=DEFAULT.meet, read=DEFAULT.read)


def test_a_curve_of_measured_times_rises():
    assert rising((1, 2, 3, 4), [5.0, 9.0, 6.0]) == Curve((1, 2, 3), (5.0, 6.0, 6.0))


def test_ranks_measure_the_same_numbers():
    """On threads nobody does by default, but the measurement runs there too."""
    models = comm.run(3, lambda group: measure(group._endpoint))
    assert models[0] == models[1] == models[2] and models[0].source == "measured"
    assert len(models[0].exchange.sizes) <= len(SIZES)


def test_where_shared_memory_is_short_messages_alone_are_measured():
    def few(group):
        group._endpoint.shareable = lambda: 1 << 20
        return measure(group._endpoint)

    model = comm.run(2, few)[0]
    assert (model.meet, model.read, model.add) == (DEFAULT.meet, DEFAULT.read, DEFAULT.add)
    assert model.exchange != DEFAULT.exchange


@pytest.mark.mpi
def test_the_cache_knows_hosts_and_their_number_of_ranks(tmp_path):
    program = "import comm; g = comm.world(); g._chooser.pick('all_reduce', 4)"
    for nodes in ("0,0", "0,1"):
        ended = mpirun(2, "-c", program, MINIGPT_CACHE=tmp_path, MINIGPT_COMM_CHECK="0", MINIGPT_NODES=nodes)
        assert ended.returncode == 0, ended.stdout
    assert len(list(tmp_path.glob("comm/costs-2-*.json"))) == 2
