"""python -m comm simulate: what a newcomer types."""

import pytest

from comm.__main__ import main
from comm.algorithms import ALGORITHMS
from comm.commands.simulate import Progress


def told(capsys, *arguments):
    assert main(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def row(table, name):
    return next(line for line in table.splitlines() if line.split()[:1] == [name])


def test_fact_35_the_articles_sum_is_printed(capsys):
    table = told(capsys, "all_reduce", "--bytes", "350G", "--ranks", "64")
    assert "1,411,200 GB" in row(table, "naive_all_reduce")
    assert "44,100 GB" in row(table, "ring_all_reduce")
    assert "689.0625 GB" in row(table, "ring_all_reduce")
    assert "13.78 s" in row(table, "ring_all_reduce")
    assert "882 s" in row(table, "star_all_reduce") and "44,100 GB" in row(table, "star_all_reduce")
    whole = next(line for line in table.splitlines() if line.startswith("chain_all_reduce segments=1 "))
    assert "882 s" in whole and "44,100 GB" in whole


def test_all_algorithms_of_a_collective_stand_in_one_table_the_fastest_first(capsys):
    table = told(capsys, "all_reduce", "--bytes", "1M", "--ranks", "12", "--cluster", "dgx-h100")
    for name in ALGORITHMS:
        assert (f"\n{name} " in table) == (ALGORITHMS[name].collective == "all_reduce"), name
    assert "busiest link" in table and "algbw" in table and "leaves a rank" in table
    by_tier = table[table.index("bytes by tier of links"):]
    assert by_tier.splitlines()[0].split()[-3:] == ["NVLink", "PCIe", "NIC"]
    # 22 MB in all; of 12 hops 2 lie between the servers, and the others take two links each
    assert row(by_tier, "ring_all_reduce").split()[1:] == ["36.6667", "MB", "7.3333", "MB", "7.3333", "MB"]


def test_one_algorithm_is_told_in_detail(capsys):
    question = ["all_reduce", "--bytes", "350G", "--ranks", "64", "--cluster", "dgx-h100", "--algorithm"]
    text = told(capsys, *question, "ring")
    assert "ring_all_reduce: 13.78 s in 126 rounds" in text
    assert "really sent: at most 689.0625 GB and 126 messages from a rank, 44,100 GB" in text
    assert "1-63" in text and "64-126" in text
    assert ALGORITHMS["ring_all_reduce"].rule.__doc__.splitlines()[0] in text
    assert "NVLink" in text and "leaf-spine" in text
    assert text == told(capsys, *question, "ring_all_reduce")


def test_the_orders_of_the_ranks_are_shown_before_and_after(capsys):
    text = told(capsys, "all_reduce", "--bytes", "1G", "--cluster", "torus,sides=4x4", "--algorithm", "ring")
    assert "fitted" in row(text, "walk")
    assert "fitted" not in row(text, "shuffled")
    fitted = told(capsys, "all_reduce", "--bytes", "1G", "--cluster", "torus,sides=4x4", "--order", "fitted")
    assert "ring_all_reduce (walk)" in fitted


def test_pipelined_algorithms_are_shown_whole_and_in_their_best_number_of_segments(capsys):
    table = told(capsys, "broadcast", "--bytes", "100M", "--ranks", "8")
    lines = [line for line in table[:table.index("bytes by tier")].splitlines() if line.startswith("chain_broadcast")]
    assert ["segments=1" in line for line in lines] == [False, True]
    assert "segments=3" in told(capsys, "broadcast", "--bytes", "100M", "--ranks", "8", "--segments", "3")


def test_what_is_too_large_to_price_is_named_with_its_formula(capsys):
    table = told(capsys, "all_to_all", "--bytes", "1G", "--ranks", "2000", "--cluster", "article")
    line = next(line for line in table.splitlines() if line.startswith("not priced: pairwise_all_to_all"))
    assert "1,999 rounds, 1,999 GB in all" in line
    assert "bruck_all_to_all" in table


def test_the_loss_of_the_master_stops_the_star(capsys):
    table = told(capsys, "all_reduce", "--ranks", "8", "--lost", "0")
    assert "0 of 7" in row(table, "star_all_reduce")
    text = told(capsys, "all_reduce", "--ranks", "8", "--lost", "0", "--algorithm", "star")
    assert "completes: nobody" in text
    assert "ranks 1-7 wait for rank 0 (lost)" in text
    assert "nobody else has that of ranks 1-7" in text


def test_the_loss_of_a_leaf_leaves_a_broadcast_alone(capsys):
    text = told(capsys, "broadcast", "--ranks", "8", "--lost", "7", "--algorithm", "binomial")
    assert "completes: ranks 0-6" in text
    assert "every block lives on" in text


def test_fact_46_links_are_printed_in_both_conventions(capsys):
    text = told(capsys, "--links")
    assert "900 GB/s" in text and "450 GB/s" in text and "9 : 1" in text


def test_every_collective_can_be_priced_and_a_barrier_needs_no_bytes(capsys):
    for collective in {algorithm.collective for algorithm in ALGORITHMS.values()}:
        size = [] if collective == "barrier" else ["--bytes", "1000"]
        assert "us" in told(capsys, collective, *size, "--ranks", "5", "--gamma", "1e-12")
        assert "rank 3 of 5 is lost" in told(capsys, collective, "--ranks", "5", "--lost", "3")


@pytest.mark.parametrize("arguments, words", [
    ([], "expected a collective: all_reduce"),
    (["all_reduce"], "expected --bytes, as in --bytes 350G"),
    (["all_redcue", "--bytes", "4"], "did you mean all_reduce?"),
    (["all_reduce", "--bytes", "4 potatoes"], "expected bytes, as in 4, 1K, 350G"),
    (["all_reduce", "--bytes", "4", "--ranks", "0"], "expected a number of ranks, from 1"),
    (["all_reduce", "--bytes", "4", "--ranks", "99", "--cluster", "dgx-h100,nodes=2"], "99 ranks on 16 GPUs"),
    (["all_reduce", "--bytes", "4", "--cluster", "dragon"], "did you mean dragonfly?"),
    (["all_reduce", "--bytes", "4", "--algorithm", "rnig"], "did you mean ring?"),
    (["broadcast", "--bytes", "4", "--algorithm", "ring_all_reduce"], "no such broadcast"),
    (["all_reduce", "--bytes", "4", "--gamma", "-1"], "expected seconds per byte, from 0"),
    (["all_reduce", "--bytes", "4", "--gamma", "nan"], "expected seconds per byte, from 0"),
    (["all_reduce", "--bytes", "4", "--segments", "0"], "expected a number of segments, from 1"),
    (["broadcast", "--bytes", "4", "--algorithm", "chain", "--segments", "999999999"], "1,000,000,061 rounds"),
    (["all_reduce", "--ranks", "4", "--lost", "4"], "expected 0 to 3"),
    (["all_reduce", "--ranks", "4", "--bytes", "4", "--algorithm", "ring", "--segments", "2"], "takes no segments"),
])
def test_mistakes_are_answered_with_what_was_expected(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_help_shows_clusters_and_keys(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    text = capsys.readouterr().out
    assert "dragonfly" in text and "oversubscription" in text and "--bytes 350G --ranks 64" in text


def test_progress_appears_when_something_takes_long(capsys):
    Progress()("too early")
    report = Progress(seconds=0)
    report("pricing ring_all_reduce")
    report("too soon after")
    report.clear()
    assert capsys.readouterr().err == "pricing ring_all_reduce ...\n"


def test_progress_on_a_terminal_is_wiped_before_the_answer(capsys):
    report = Progress(seconds=0)
    report.in_place = True
    report("pricing")
    report.clear()
    report.clear()
    assert capsys.readouterr().err == "\rpricing\r       \r"
