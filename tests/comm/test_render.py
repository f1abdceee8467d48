"""FACTS F33: what every rank holds after each of the six steps, in the article's letters."""

import pytest

from comm.render import contents, letter, table

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
