"""The ledger against what an independent witness sees on the wire."""

import gc

import numpy as np
import pytest

from comm import ledger
from comm.ledger import Entry, Ledger
from comm.threads import Board
from tests.ranks import run


def filled():
    """Three all-reduces by the ring of two sizes and a message, to ranks 1 and 3."""
    book = Ledger("world")
    book.tally("all_reduce", "ring_all_reduce", 200, 100, {1: (2, 100)}).calls += 2
    book.tally("all_reduce", "ring_all_reduce", 20, 10, {1: (2, 10)}).calls += 1
    book.message("send", 3, messages=1, sent=5)
    book.message("recv", None, 0, 0)
    return book


def test_entries_add_up_by_operation_and_peer():
    book = filled()
    assert book["all_reduce"] == Entry(3, messages=6, sent=210, payload=420, formula=210, peers={1: (6, 210)})
    assert book["send"] == Entry(1, 1, 5, 5, 5, peers={3: (1, 5)})
    assert book["recv"] == Entry(calls=1)
    assert book.total == Entry(5, 7, 215, 425, 215, peers={1: (6, 210), 3: (1, 5)})
    assert book["never"] == Entry()
    book.clear()
    assert book.total == Entry()


def test_one_key_gives_one_tally_and_any_other_key_another_one():
    book = Ledger()
    key = ["all_gather", "ring_all_gather", 8, 8, {0: (1, 8), 2: (1, 4)}]
    tally = book.tally(*key)
    assert book.tally(*key[:4], {2: (1, 4), 0: (1, 8)}) is tally
    for place, other in enumerate(["reduce", "bruck_all_gather", 9, 9, {0: (1, 8)}]):
        assert book.tally(*key[:place], other, *key[place + 1:]) is not tally


def test_an_excess_is_not_hidden_by_a_call_that_sent_less_than_its_formula():
    book = Ledger()
    book.tally("all_reduce", "ring_all_reduce", 8, 10, {1: (1, 12)}).calls += 3
    book.tally("all_reduce", "ring_all_reduce", 8, 100, {1: (1, 12)}).calls += 1
    assert book["all_reduce"].excess == 6
    assert [line for line in str(book).splitlines() if "6 BYTES ABOVE THE FORMULA" in line and "ring_" in line]
    assert "ABOVE" not in str(filled())


def test_tallies_out_of_use_become_sums_and_those_in_use_go_on_counting(monkeypatch):
    monkeypatch.setattr(ledger, "LIMIT", 10)
    book = Ledger()
    kept = book.tally("all_reduce", "ring_all_reduce", 1, 1, {1: (1, 1)})
    for size in range(2, 2000):
        book.tally("all_reduce", "ring_all_reduce", size, size, {1: (1, size)}).calls += 1
        kept.calls += 1
    assert len(book._tallies) <= 20
    assert book["all_reduce"].calls == 2 * 1998
    assert book["all_reduce"].sent == sum(range(2, 2000)) + 1998
    assert book.tally("all_reduce", "ring_all_reduce", 1, 1, {1: (1, 1)}) is kept


def test_many_tallies_that_are_all_in_use_are_not_searched_again_and_again(monkeypatch):
    monkeypatch.setattr(ledger, "LIMIT", 10)
    book, searches = Ledger(), []
    real = Ledger._sum_what_ended
    monkeypatch.setattr(Ledger, "_sum_what_ended", lambda self: (searches.append(1), real(self)))
    used = [book.tally("all_reduce", "", size, size, {1: (1, size)}) for size in range(1000)]
    assert len(searches) <= 8 and len(used) == len(book._tallies) == 1000


def test_ledgers_of_split_groups_are_part_of_the_report_and_stay_in_it_when_the_group_is_gone(monkeypatch):
    monkeypatch.setattr(ledger, "LIMIT", 4)
    world = Ledger("world")
    alive = None
    for _ in range(100):
        group = Ledger("dp", world)
        group.message("send", 1, 1, 10)
        inner = Ledger("tp", group)
        inner.message("send", 2, 1, 1)
        alive = alive or inner
        del group, inner
    gc.collect()
    assert len(world.children) <= 10
    alive.message("send", 2, 1, 1)
    assert world.everything()["dp", "send", ""] == Entry(100, 100, 1000, 1000, 1000, peers={1: (100, 1000)})
    assert world.everything()["tp", "send", ""].sent == 101
    assert world.total == Entry()
    world.clear()
    assert not world.everything()


def test_the_report_names_group_collective_peer_and_sum():
    book = filled()
    inner = Ledger("dp", book)
    inner.tally("barrier", "dissemination_barrier", 1, 2, {2: (1, 1)}).calls += 1000
    inner.tally("all_gather", "odd_name", 1, 2, {2: (1, 1)})
    lines = [line.split() for line in str(book).splitlines()]
    assert lines == [
        ["group", "collective", "calls", "messages", "bytes", "sent", "formula"],
        ["world", "send", "1", "1", "5", "5"], ["to", "rank", "3", "1", "5"],
        ["world", "recv", "1", "0", "0", "0"],
        ["world", "ring_all_reduce", "3", "6", "210", "210"], ["to", "rank", "1", "6", "210"],
        ["dp", "dissemination_barrier", "1,000", "1,000", "1,000", "2,000"], ["to", "rank", "2", "1,000", "1,000"],
        ["all", "1,005", "1,007", "1,215", "2,215"]]
    assert "to rank" not in book.report(peers=False)
    assert max(map(len, str(book).splitlines())) <= 120


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_message_and_byte_that_leaves_a_rank_is_in_the_ledger(size, monkeypatch):
    seen = np.zeros((size, 2), int)
    post = Board.post

    def witness(self, context, half):
        if half.sends:
            seen[half.owner] += 1, half.view.nbytes
        post(self, context, half)

    def body(group):
        x = np.ones(100)
        group.all_reduce(x)
        group.all_reduce(np.ones(5000))
        group.all_gather(x[:group.rank])
        group.reduce_scatter(x)
        group.broadcast(x, root=group.size - 1)
        group.barrier()
        group.sendrecv(x, (group.rank + 1) % group.size, (group.rank - 1) % group.size)
        return group.ledger.total.messages, group.ledger.total.sent

    monkeypatch.setattr(Board, "post", witness)
    monkeypatch.setattr("comm.check.Checker.__call__", lambda self, call: None)
    told = run(size, body)
    assert told == [tuple(row) for row in seen.tolist()]


def test_a_group_has_a_ledger_of_its_own():
    def body(group):
        group.split(0).all_reduce(np.ones(3))
        return group.ledger["all_reduce"].calls

    assert run(2, body) == [0, 0]
