"""Trees, chains, what is made of them, and the barrier: every root, costs, and what each round does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comm
from comm.algorithms import ALGORITHMS
from comm.algorithms.tree import binomial_broadcast
from comm.schedule import ROOTED, Recv, Send, rounds
from comm.simulate import Broken, before, play, prove

LOGARITHMIC = ["binomial_broadcast", "binomial_reduce", "binomial_gather", "binomial_scatter"]
SEGMENTED = ["chain_broadcast", "chain_reduce"]
WHOLE = [*LOGARITHMIC, "direct_gather", "direct_scatter", "scatter_all_gather_broadcast", "scatter_gather_reduce"]


@st.composite
def sizes_and_roots(draw, largest=200):
    size = draw(st.integers(1, largest))
    return size, draw(st.integers(0, size - 1))


@pytest.mark.parametrize("name", WHOLE)
@given(where=sizes_and_roots())
def test_the_promise_holds_on_any_number_of_ranks_from_any_root(name, where):
    size, root = where
    prove(name, size, root)


@pytest.mark.parametrize("name", SEGMENTED)
@given(where=sizes_and_roots(largest=40), segments=st.integers(1, 9))
def test_chains_keep_it_in_any_number_of_segments(name, where, segments):
    size, root = where
    cost = prove(name, size, root, segments=segments)
    assert cost.rounds == (size - 1 + segments - 1 if size > 1 else 0)


@pytest.mark.parametrize("name", [*WHOLE, *SEGMENTED])
@pytest.mark.parametrize("size", [3, 5, 6, 7])
def test_case_86_every_root_of_sizes_that_are_no_power_of_two(name, size):
    for root in range(size):
        prove(name, size, root)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if ALGORITHMS[name].collective == "broadcast"])
def test_case_90_what_all_have_in_the_end_is_what_the_root_had(name):
    size = 5
    for root in range(size):
        held = before(name, size, root)
        assert (held[root] != 0).all() and (np.delete(held, root, axis=0) == 0).all()
        said = held[root].copy()
        for _ in play(name, size, held, root):
            pass
        assert (held == said).all()


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if ALGORITHMS[name].collective in ROOTED])
def test_case_90_a_rule_that_ignores_its_root_is_found_out(name, monkeypatch):
    honest = ALGORITHMS[name]
    deaf = honest._replace(rule=lambda rank, size, root=0, **options: honest.rule(rank, size, root=0, **options))
    monkeypatch.setitem(ALGORITHMS, "deaf", deaf)
    prove("deaf", 4, 0)
    with pytest.raises(Broken):
        prove("deaf", 4, 1)


@pytest.mark.parametrize("name", LOGARITHMIC)
@pytest.mark.parametrize("size, turns", [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (1024, 10)])
def test_a_binomial_tree_is_as_deep_as_the_logarithm(name, size, turns):
    assert len(list(ALGORITHMS[name].rule(0, size))) == turns


def test_in_a_broadcast_those_who_know_double():
    size = 13
    held = before("binomial_broadcast", size, root=6)
    knew = [1]
    for _ in play("binomial_broadcast", size, held, root=6):
        knew.append(int((held != 0).sum()))
    assert knew == [1, 2, 4, 8, 13]


def test_a_reduce_is_a_broadcast_backwards():
    for rank in range(11):
        there = list(rounds(binomial_broadcast, rank, 11, root=3))
        back = list(rounds(ALGORITHMS["binomial_reduce"].rule, rank, 11, root=3))
        for told, asked in zip(there, reversed(back), strict=True):
            assert [(type(item), int(item[0])) for item in told] == [
                (Send if isinstance(item, Recv) else Recv, int(item[0])) for item in asked]
            assert [item.reduce for item in asked if isinstance(item, Recv)] == [True]


@pytest.mark.parametrize("size", [2, 3, 6, 8, 31, 100])
def test_no_message_of_a_gather_is_longer_than_half_and_all_but_the_roots_chunk_leave_once_or_more(size):
    cost = prove("binomial_gather", size)
    assert cost.sent.max() <= size / 2
    assert cost.sent[0] == 0 and (cost.messages[1:] == 1).all()
    assert prove("direct_gather", size).sent.sum() == size - 1


@pytest.mark.parametrize("size", [2, 3, 6, 8, 31, 100])
def test_the_root_of_a_scatter_sends_each_chunk_once_and_few_messages_by_the_tree(size):
    for name, messages in (("binomial_scatter", (size - 1).bit_length()), ("direct_scatter", size - 1)):
        cost = prove(name, size, root=size // 2)
        assert cost.sent[size // 2] == cost.sent.max() == size - 1
        assert cost.messages[size // 2] == messages


def test_fact_36_a_chain_takes_n_minus_1_times_the_message_but_segments_overlap():
    size = 64
    assert prove("chain_broadcast", size).rounds == size - 1
    rounds_of_segments = prove("chain_broadcast", size, segments=100).rounds
    assert rounds_of_segments / 100 == pytest.approx(1.62)  # T for a message, against 63 T


def test_long_messages_leave_the_root_twice_at_most_not_once_for_each_link():
    size = 64
    for name, most in (("scatter_all_gather_broadcast", 2), ("scatter_gather_reduce", 1.5)):
        assert prove(name, size).sent.max() / size <= most
    assert prove("binomial_broadcast", size).sent.max() == 6


@pytest.mark.parametrize("size", [1, 2, 3, 8, 11, 33])
def test_in_a_barrier_those_that_a_rank_has_heard_of_double(size):
    held = before("dissemination_barrier", size)
    for number, _ in play("dissemination_barrier", size, held):
        assert all(int(mask).bit_count() == min(1 << number, size) for mask in held[:, 0])
    assert (held == (1 << size) - 1).all()


def test_one_rank_of_very_many_need_not_think_of_all():
    for name in [*LOGARITHMIC, "dissemination_barrier"]:
        assert len(list(ALGORITHMS[name].rule(77_777, 100_000))) == 17


def rooted(collective):
    """Names of this collective, at sizes and roots that show a fault."""
    names = [name for name in [*WHOLE, *SEGMENTED] if ALGORITHMS[name].collective == collective]
    return pytest.mark.parametrize("name, size, root", [
        (name, size, root) for name in names for size, root in ((1, 0), (2, 1), (3, 0), (5, 3), (8, 7))])


@rooted("broadcast")
def test_case_90_all_ranks_hear_the_array_of_the_root(name, size, root):
    tell = lambda group: group.broadcast(np.arange(11) + 100 * group.rank, root, algorithm=name)
    for heard in comm.run(size, tell):
        assert np.array_equal(heard, np.arange(11) + 100 * root)


@rooted("reduce")
def test_the_root_gets_the_sum_and_the_others_none(name, size, root):
    for numbers in (0, 1, size - 1, size + 1, 11):  # case 84: fewer numbers than ranks, and remainders
        ask = lambda group, n=numbers: group.reduce(np.arange(n) + 100 * group.rank, root, algorithm=name)
        for rank, told in enumerate(comm.run(size, ask)):
            if rank == root:
                assert np.array_equal(told, size * np.arange(numbers) + 50 * size * (size - 1))
            else:
                assert told is None


@rooted("gather")
def test_the_root_gets_parts_of_any_length_and_the_others_none(name, size, root):
    part = lambda rank: 100 * rank + np.arange(2 * (rank % 3)).reshape(-1, 2)
    gathered = comm.run(size, lambda group: group.gather(part(group.rank), root, algorithm=name))
    assert [rank for rank in range(size) if gathered[rank] is not None] == [root]
    assert np.array_equal(gathered[root], np.concatenate([part(rank) for rank in range(size)]))


@rooted("scatter")
def test_every_rank_gets_its_rows_of_the_roots_array(name, size, root):
    for rows in (0, 1, 11):
        whole = np.arange(3 * rows).reshape(rows, 3)
        give = lambda group, x=whole: group.scatter(x if group.rank == root else None, root, algorithm=name)
        cuts = comm.bounds(rows, size)
        for rank, came in enumerate(comm.run(size, give)):
            assert np.array_equal(came, whole[cuts[rank]:cuts[rank + 1]])
