"""The ledger against what an independent witness sees on the wire."""

import gc
import itertools
from functools import partial

import numpy as np
import pytest

from comm import ledger
from comm.algorithms import ALGORITHMS
from comm.choose import Chooser
from comm.group import Group
from comm.ledger import Entry, Ledger
from comm.predict import DEFAULT
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


class Witness:
    """An endpoint that counts what is handed to the real one to be sent: {rank in the world: [messages, bytes]}."""

    def __init__(self, endpoint, seen=None):
        vars(self).update(_endpoint=endpoint, seen={} if seen is None else seen)

    def __getattr__(self, name):
        return getattr(self._endpoint, name)

    def __setattr__(self, name, value):
        setattr(self._endpoint, name, value)

    def _note(self, sends):
        for view, peer in sends:
            entry = self.seen.setdefault(self.ranks[peer], [0, 0])
            entry[0] += self.pieces(view)
            entry[1] += view.nbytes

    def exchange(self, sends, receives, tag, kept=False):
        calls = self._endpoint.exchange(sends, receives, tag, kept)
        if calls:
            calls.insert(0, partial(self._note, sends))
        return calls

    def post(self, sends, receives, tag):
        self._note(sends)
        return self._endpoint.post(sends, receives, tag)

    def split(self, color, members):
        endpoint = self._endpoint.split(color, members)
        return endpoint and Witness(endpoint, self.seen)


def everything(group):
    """Every collective by every algorithm, twice, messages, groups of groups and collectives in flight."""
    rank, size = group.rank, group.size
    even, odd, small = np.ones((6 * size, 2)), np.ones((2 * size + 1, 3), "f4"), np.ones(3)
    calls = {
        "all_reduce": lambda x, **how: group.all_reduce(x, **how),
        "reduce": lambda x, **how: group.reduce(x, root=size - 1, **how),
        "broadcast": lambda x, **how: group.broadcast(x, root=size - 1, **how),
        "all_gather": lambda x, **how: group.all_gather(x[:rank + 1], **how),
        "gather": lambda x, **how: group.gather(x[:rank], **how),
        "scatter": lambda x, **how: group.scatter(x if rank == 0 else None, **how),
        "reduce_scatter": lambda x, **how: group.reduce_scatter(x, **how),
        "all_to_all": lambda x, **how: group.all_to_all(x, **how),
    }
    for collective, call in calls.items():
        names = [name for name, one in ALGORITHMS.items() if one.collective == collective]
        for name, x, _ in itertools.product([None, *names], (even, odd, small), range(2)):
            call(x, algorithm=name)
    group.barrier()
    group.all_to_all_v(odd, [rank % 2] * (size - 1) + [len(odd) - (size - 1) * (rank % 2)])
    group.sendrecv(odd, (rank + 1) % size, (rank - 1) % size)
    half = group.split(rank % 2, key=-rank, name="half")
    half._chooser = Chooser(half._endpoint, DEFAULT)
    handles = [half.all_reduce_async(even), group.all_gather_async(odd), half.broadcast_async(even)]
    for handle in handles:
        handle.wait()
    plan = group.plan("all_reduce", np.ones(1000), algorithm="ring")
    for _ in range(3):
        plan.run()


def ledger_and_witness(group):
    """(by peer in the ledger, by peer as the witness saw it, the sum of the rows, excess)."""
    group.barrier()
    witness = Witness(vars(group._endpoint).get("_endpoint", group._endpoint))
    counted = Group(witness, checked=False)
    counted._chooser = Chooser(witness, DEFAULT)
    everything(counted)
    rows, peers = counted.ledger.everything().values(), {}
    for row in rows:
        assert sum(messages for messages, _ in row.peers.values()) == row.messages
        assert sum(sent for _, sent in row.peers.values()) == row.sent
        assert row.excess == 0
        for peer, entry in row.peers.items():
            peers[peer] = [a + b for a, b in zip(peers.get(peer, (0, 0)), entry)]
    return peers, witness.seen


@pytest.mark.parametrize("size, mpi", [
    (1, False), (2, False), (3, False), (5, False), pytest.param(3, True, marks=pytest.mark.mpi)])
def test_every_message_and_byte_that_is_handed_to_the_transport_is_in_the_ledger(size, mpi):
    for peers, seen in run(size, ledger_and_witness, mpi=mpi, nodes=tuple(range(size))):
        assert {peer: tuple(entry) for peer, entry in peers.items()} == \
            {peer: tuple(entry) for peer, entry in seen.items()}
        assert size == 1 or len(seen) >= size - 1


def shared_and_sent(group):
    """{algorithm: bytes by peer} of plans that read each other's memory, and of plans that send."""
    shared, own = group.empty(1003), np.empty(1003, "f4")
    names = [name for name, one in ALGORITHMS.items() if one.collective == "all_reduce"]
    return [{name: {peer: sent for peer, (_, sent) in group.plan("all_reduce", buffer, algorithm=name).peers.items()}
             for name in names} for buffer in (shared, own)]


def test_what_is_read_from_shared_memory_counts_as_what_would_be_sent():
    for shared, sent in run(4, shared_and_sent):
        assert shared == sent


def test_more_than_the_formula_allows_fails_a_test(monkeypatch):
    real = ALGORITHMS["ring_all_reduce"]
    monkeypatch.setitem(ALGORITHMS, "ring_all_reduce", real._replace(sent=lambda size: real.sent(size) - 1))
    with pytest.raises(AssertionError, match="rank . sent more than the formulas allow"):
        run(3, lambda group: group.all_reduce(np.ones(3000), algorithm="ring"))


def test_a_group_has_a_ledger_of_its_own_and_reports_to_its_parent():
    def body(group):
        group.split(0, name="dp").all_reduce(np.ones(3))
        rows = group.ledger.everything()
        return group.ledger["all_reduce"].calls, [row[:2] for row in rows], "dp " in str(group.ledger)

    assert run(2, body) == [(0, [("world", "all_gather"), ("dp", "all_reduce")], True)] * 2
