"""The ledger against what an independent witness sees on the wire."""

import numpy as np
import pytest

from comm.ledger import Entry, Ledger
from comm.threads import Board
from tests.ranks import run


def test_entries_add_up():
    ledger = Ledger()
    ledger.add("all_reduce", messages=2, sent=100, payload=200)
    ledger.add("all_reduce", messages=1, sent=10, payload=20)
    ledger.add("send", messages=1, sent=5, payload=5)
    assert ledger["all_reduce"] == Entry(calls=2, messages=3, sent=110, payload=220)
    assert ledger.total == Entry(calls=3, messages=4, sent=115, payload=225)
    assert "115" in str(ledger).splitlines()[-1]
    ledger.clear()
    assert ledger.total == Entry()


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
