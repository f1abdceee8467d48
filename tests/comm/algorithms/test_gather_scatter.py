"""All-gather and reduce-scatter: rounds, lengths of messages, how far they go, and that one is the other backwards."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import comm
from comm.algorithms import ALGORITHMS
from comm.execute import Plan
from comm.schedule import NONE, Send, everyone
from comm.simulate import prove

PAIRS = {"ring": "ring", "recursive_doubling": "recursive_halving", "bruck": "bruck", "pat": "pat", "direct": "direct"}
GATHERS = [f"{name}_all_gather" for name in PAIRS]
SCATTERS = [f"{name}_reduce_scatter" for name in PAIRS.values()]


def messages(name, size, **options):
    """[(hops to the right or left, chunks, round)] of every message of rank 0."""
    found = []
    for number, items in enumerate(everyone(ALGORITHMS[name].rule, size, **options)):
        for item in items:
            if isinstance(item, Send) and item.to[0] != NONE:
                far = int(item.to[0])
                found.append((min(far, size - far), item.chunks.shape[1], number))
    return found


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.sampled_from(GATHERS + SCATTERS))
def test_any_number_of_ranks(size, name):
    prove(name, size)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 90), st.integers(1, 12), st.sampled_from(["pat_all_gather", "pat_reduce_scatter"]))
def test_pat_with_any_limit_of_aggregation(size, aggregate, name):
    prove(name, size, aggregate=aggregate)
    assert max((chunks for _, chunks, _ in messages(name, size, aggregate=aggregate)), default=0) <= aggregate


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 64, 100])
def test_bruck_and_pat_take_as_many_rounds_as_a_tree_is_deep_for_every_number_of_ranks(size):
    for name in ("bruck_all_gather", "bruck_reduce_scatter", "pat_all_gather", "pat_reduce_scatter"):
        assert prove(name, size).rounds == (size - 1).bit_length()


@pytest.mark.parametrize("name", GATHERS + SCATTERS)
def test_no_more_bytes_than_the_rings_leave_all_ranks_together(name):
    for size in (2, 5, 12, 33):
        assert prove(name, size).sent.sum() == size * (size - 1)


def test_pats_far_messages_are_short_and_its_long_ones_near_while_doublings_long_ones_are_far():
    pat = messages("pat_all_gather", 64)
    assert [(far, chunks) for far, chunks, _ in pat] == [(32, 1), (16, 2), (8, 4), (4, 8), (2, 16), (1, 32)]
    doubling = messages("recursive_doubling_all_gather", 64)
    assert [(far, chunks) for far, chunks, _ in doubling] == [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32)]
    bruck = messages("bruck_all_gather", 64)
    assert [chunks for _, chunks, _ in bruck] == [chunks for _, chunks, _ in doubling]


def test_pat_with_one_chunk_in_a_message_takes_as_many_rounds_as_a_ring():
    assert prove("pat_all_gather", 13, aggregate=1).rounds == 12


@pytest.mark.parametrize("gather, scatter", [(f"{a}_all_gather", f"{b}_reduce_scatter") for a, b in PAIRS.items()
                                             if a not in ("ring", "direct")])
@pytest.mark.parametrize("size", [2, 6, 16])
def test_the_reduce_scatter_is_the_all_gather_backwards(gather, scatter, size):
    forwards = [(r, int(item.to[r]), tuple(item.chunks[r])) for items in everyone(ALGORITHMS[gather].rule, size)
                for item in items if isinstance(item, Send) for r in range(size) if item.to[r] != NONE]
    back = [(int(item.to[r]), r, tuple(item.chunks[r])) for items in everyone(ALGORITHMS[scatter].rule, size)
            for item in items if isinstance(item, Send) for r in range(size) if item.to[r] != NONE]
    assert sorted(forwards) == sorted(back)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_they_run_on_threads(size):
    def body(group):
        whole = np.arange(3 * group.size + 1.0)
        edges = comm.bounds(len(whole), group.size)
        mine = slice(edges[group.rank], edges[group.rank + 1])
        for name in GATHERS:
            np.testing.assert_array_equal(group.all_gather(whole[mine], algorithm=name), whole)
        for name in SCATTERS:
            np.testing.assert_array_equal(group.reduce_scatter(whole, algorithm=name), group.size * whole[mine])

    comm.run(size, body)


@pytest.mark.parametrize("name", ["pat_all_gather", "pat_reduce_scatter"])
@pytest.mark.parametrize("aggregate", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_pat_with_a_limit_runs_on_threads_even_where_some_chunks_are_empty(name, size, aggregate):
    cuts, whole = comm.bounds(5, size), np.arange(5) + 1
    rule = partial(ALGORITHMS[name].rule, aggregate=aggregate)

    def body(group):
        mine = slice(cuts[group.rank], cuts[group.rank + 1])
        x = whole.copy()
        if name == "pat_all_gather":
            x[:] = -99
            x[mine] = whole[mine]
        Plan(group._endpoint, rule, x, cuts).run()
        return x if name == "pat_all_gather" else x[mine]

    ends = comm.run(size, body)
    if name == "pat_reduce_scatter":
        np.testing.assert_array_equal(np.concatenate(ends), size * whole)
    else:
        np.testing.assert_array_equal(ends, np.tile(whole, (size, 1)))


@pytest.mark.parametrize("name", ["pat_all_gather", "pat_reduce_scatter"])
@pytest.mark.parametrize("aggregate", [0, -1])
def test_a_message_of_no_chunks_is_refused(name, aggregate):
    with pytest.raises(ValueError, match=f"aggregate={aggregate}: expected"):
        list(ALGORITHMS[name].rule(0, 4, aggregate=aggregate))
