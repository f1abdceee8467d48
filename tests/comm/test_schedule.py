"""Rounds as data: the article's numbering, and the one rule for cuts."""

import numpy as np
import pytest

import comm
from comm.algorithms.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from comm.schedule import Recv, Send, Step, bounds, even_cuts, rounds, span


@pytest.mark.parametrize("size", [2, 4, 5])
def test_fact_30_in_step_k_rank_i_sends_chunk_i_minus_k_plus_1_and_adds_into_i_minus_k(size):
    for i in range(size):
        steps = list(ring_all_reduce(i, size))
        for k in range(1, size):
            step = steps[k - 1]
            assert step == Step(to=(i + 1) % size, send=(i - k + 1) % size,
                                source=(i - 1) % size, recv=(i - k) % size, reduce=True)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_fact_32_phase_two_copies_first_the_chunk_that_was_owned_then_the_last_received(size):
    for i in range(size):
        steps = list(ring_all_reduce(i, size))[size - 1:]
        assert len(steps) == size - 1
        assert not any(step.reduce for step in steps)
        assert steps[0].send == (i + 1) % size
        for earlier, later in zip(steps, steps[1:]):
            assert later.send == earlier.recv


def test_the_public_halves_leave_and_take_chunk_r_on_rank_r():
    for size in (2, 3, 8):
        for rank in range(size):
            assert list(ring_reduce_scatter(rank, size))[-1].recv == rank
            assert next(iter(ring_all_gather(rank, size))).send == rank


def test_a_step_is_a_round_of_one_send_and_one_receive():
    (first, second), *_ = rounds(ring_all_reduce, 0, 4)
    assert isinstance(first, Send)
    assert isinstance(second, Recv)
    assert (first.to, first.chunks.tolist()) == (1, [0])
    assert (second.source, second.chunks.tolist(), second.reduce) == (3, [3], True)


def test_spans_are_rows_for_many_ranks():
    assert span(2, 3).tolist() == [2, 3, 4]
    assert span(np.array([0, 5]), 2).tolist() == [[0, 1], [5, 6]]


def test_bounds_cut_as_array_split_does():
    assert bounds(10, 4) == [0, 3, 6, 8, 10]
    for count in range(30):
        for size in range(1, 12):
            edges = bounds(count, size)
            pieces = np.array_split(np.arange(count), size)
            assert [b - a for a, b in zip(edges, edges[1:])] == [len(piece) for piece in pieces]


@pytest.mark.parametrize("count, size", [(-1, 2), (3, 0), (3, -1)])
def test_bounds_refuse_what_cannot_be_cut(count, size):
    with pytest.raises(ValueError, match="bounds"):
        comm.bounds(count, size)


def test_long_chunks_begin_on_cache_lines_and_hold_everything():
    for count, size, itemsize in [(250_000, 2, 4), (1_000_003, 7, 4), (99_999, 3, 8), (5000, 8, 2), (300, 4, 16)]:
        cuts = even_cuts(count, size, itemsize)
        assert (cuts[0], cuts[-1], len(cuts)) == (0, count, size + 1)
        assert all(cut * itemsize % 64 == 0 for cut in cuts[:-1])
        lengths = np.diff(cuts)
        assert lengths.min() >= 0
        assert lengths.max() - lengths.min() <= 2 * 64 // itemsize


def test_short_chunks_are_cut_evenly():
    assert even_cuts(100, 3, 4) == bounds(100, 3)
