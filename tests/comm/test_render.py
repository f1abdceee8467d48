"""FACTS F33: what every rank holds after each of the six steps, in the article's letters."""

import re

import numpy as np
import pytest

from comm.algorithms import ALGORITHMS
from comm.moves import runs
from comm.render import contents, headline, letter, table
from comm.schedule import ROOTED
from comm.simulate import after

FACT_33 = """
A = [a0, a1, a2, a3+d3]
B = [b0+a0, b1, b2, b3]
C = [c0, c1+b1, c2, c3]
D = [d0, d1, d2+c2, d3]

A = [a0, a1, a2+d2+c2, a3+d3]
B = [b0+a0, b1, b2, b3+a3+d3]
C = [c0+b0+a0, c1+b1, c2, c3]
D = [d0, d1+c1+b1, d2+c2, d3]

A = [a0, a1+d1+c1+b1, a2+d2+c2, a3+d3]
B = [b0+a0, b1, b2+a2+d2+c2, b3+a3+d3]
C = [c0+b0+a0, c1+b1, c2, c3+b3+a3+d3]
D = [d0+c0+b0+a0, d1+c1+b1, d2+c2, d3]

A = [d0+c0+b0+a0, a1+d1+c1+b1, a2+d2+c2, a3+d3]
B = [b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, b3+a3+d3]
C = [c0+b0+a0, c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
D = [d0+c0+b0+a0, d1+c1+b1, d2+c2, c3+b3+a3+d3]

A = [d0+c0+b0+a0, a1+d1+c1+b1, a2+d2+c2, c3+b3+a3+d3]
B = [d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, b3+a3+d3]
C = [c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
D = [d0+c0+b0+a0, d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]

A = [d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
B = [d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
C = [d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
D = [d0+c0+b0+a0, a1+d1+c1+b1, b2+a2+d2+c2, c3+b3+a3+d3]
"""


def test_fact_33_the_table_of_the_ring_on_four_ranks():
    blocks = [[line.strip() for line in block.splitlines() if "=" in line]
              for block in table("ring_all_reduce", 4).split("\n\n")[2:]]
    assert blocks == [block.splitlines() for block in FACT_33.strip().split("\n\n")]


def test_steps_say_whether_they_add_or_copy():
    titles = [title for title, _ in contents("ring_all_reduce", 4)]
    assert titles == ["at the start", *(f"after step {k} (add)" for k in (1, 2, 3)),
                      *(f"after step {k} (copy)" for k in (4, 5, 6))]


def test_the_markdown_table_has_a_row_for_each_rank_and_a_column_for_each_chunk():
    lines = table("ring_all_gather", 3, markdown=True).splitlines()
    assert lines[0] == "# ring_all_gather, 3 ranks"
    assert "| rank | chunk 0 | chunk 1 | chunk 2 |" in lines
    assert "| B | - | b1 | - |" in lines
    assert lines[-1] == "| C | a0 | b1 | c2 |"


@pytest.mark.parametrize("rank, name", [(0, "a"), (25, "z"), (26, "aa"), (27, "ab"), (702, "aaa")])
def test_letters_go_on_after_z(rank, name):
    assert letter(rank) == name


def test_one_rank_has_nothing_to_do():
    assert [title for title, _ in contents("ring_all_reduce", 1)] == ["at the start"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_table_of_every_algorithm_ends_with_what_it_promises(name, size):
    for options in ALGORITHMS[name].variants(size):
        for root in {0, size - 1} if ALGORITHMS[name].collective in ROOTED else {0}:
            cells = contents(name, size, root=root, **options)[-1][1]
            want, where = after(name, size, root, **options)
            for rank, slot in np.argwhere(where):
                assert meant(cells[rank, slot], slot, ALGORITHMS[name], size, root, options) == want[rank, slot]
            lines = table(name, size, markdown=True, root=root, **options).splitlines()
            assert {line.count("|") for line in lines if line.startswith("|")} == {cells.shape[1] + 2}


def meant(text, slot, algorithm, size, root, options):
    """A label as `simulate` says it: the mask of a sum, or the number of a chunk or block."""
    owners, numbers = zip(*(re.fullmatch(r"([a-z]+)(\d+)", part).groups() for part in text.split("+")))
    ranks = [[letter(r) for r in range(size)].index(owner) for owner in owners]
    if algorithm.collective == "all_to_all":
        return ranks[0] * size + int(numbers[0]) + 1
    assert set(numbers) == {str(slot)}
    if algorithm.collective in ("all_gather", "gather", "broadcast", "scatter"):
        assert ranks == [slot if algorithm.collective.endswith("gather") else root]
        return slot + 1
    assert len(set(ranks)) == len(ranks)
    return sum(1 << rank for rank in ranks)


def test_all_to_all_shows_what_is_for_whom_and_what_came_from_whom():
    lines = table("bruck_all_to_all", 3).splitlines()
    assert lines[3:6] == ["  A = [a0, a1, a2 | a0, -, -]", "  B = [b0, b1, b2 | -, b1, -]",
                          "  C = [c0, c1, c2 | -, -, c2]"]
    assert lines[-3:] == ["  A = [a0, a1, a2 | a0, b0, c0]", "  B = [b0, b1, b2 | a1, b1, c1]",
                          "  C = [c0, c1, c2 | a2, b2, c2]"]
    assert "| rank | for A | for B | from A | from B |" in table("ring_all_to_all", 2, markdown=True)


def test_a_rank_that_hears_of_another_twice_in_a_barrier_knows_it_once():
    assert contents("dissemination_barrier", 3)[-1][1].tolist() == [["a0+c0+b0"], ["b0+a0+c0"], ["c0+b0+a0"]]


def test_a_step_that_adds_here_and_copies_there_says_both():
    assert "after step 4 (add and copy)" in [title for title, _ in contents("chain_all_reduce", 3, segments=3)]


def test_a_broadcast_begins_at_its_root():
    assert contents("chain_broadcast", 3, root=1, segments=2)[0][1].tolist() == [["-", "-"], ["b0", "b1"], ["-", "-"]]


@pytest.mark.parametrize("chunks, said", [((0, 1, 2, 5), "0-2,5"), ((3,), "3"), ((2, 0), "0,2"), ((7, 6), "6-7")])
def test_runs_of_chunks_are_said_briefly(chunks, said):
    assert runs(chunks) == said


def test_titles_say_the_options_and_count_many_nodes():
    assert headline("chain_reduce", 3, root=1, segments=2) == "chain_reduce, 3 ranks, root B, segments 2"
    assert headline("hierarchical_all_reduce", 3, nodes=(0, 0, 1)) == "hierarchical_all_reduce, 3 ranks, nodes 0,0,1"
    nodes = tuple(rank // 8 for rank in range(64))
    assert headline("hierarchical_all_reduce", 64, nodes=nodes) == "hierarchical_all_reduce, 64 ranks, nodes (8)"
    assert headline("ring_all_reduce", 1) == "ring_all_reduce, 1 rank"
