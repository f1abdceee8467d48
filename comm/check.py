"""MINIGPT_COMM_CHECK=1: a doctor for programs whose ranks do not do the same.

Without it, ranks that call different things hang, or add numbers that do not belong together. With it, each
rank tells the others of its group what it is about to do (operation, dtype, count, root, and the line that
called) and waits until all have: if they differ, every rank raises the same Mismatch. No wait is blind: a rank
that has ended, ranks that wait for each other, and one that has not come after MINIGPT_COMM_TIMEOUT seconds
(60) are told with who waits for whom, in what and where.

It costs a short note to every rank of the group for each collective, which the ledger leaves out. Collectives
that begin without waiting (..._async) wait here until all ranks have begun them, and so must begin in one order
in all groups. When it is off it costs nothing.
"""

import os
import sys
from functools import partial

from comm.desk import CALL, MESSAGE, OTHER, Call, Mismatch, Vigil, desk_of
from comm.threads import Stopped

__all__ = ["Checker", "Mismatch", "Watched", "wanted"]


def wanted():
    """Is MINIGPT_COMM_CHECK set to anything but 0?"""
    return os.environ.get("MINIGPT_COMM_CHECK", "0") not in ("", "0")


class Checker:
    """Compares calls over the ranks of one endpoint. name: of its group, for reports.

    progress(): carries on what is in flight on this rank, which other ranks may wait for.
    Raises ValueError if MINIGPT_COMM_TIMEOUT is no number above 0.
    """

    def __init__(self, endpoint, name="world", progress=None):
        self._endpoint, self._name, self._progress = endpoint, name, progress
        self._desk = desk_of(endpoint.mail)
        self._context, self._number = ".".join(map(str, endpoint.context)), 0

    def __call__(self, call):
        """call: what this rank is about to do, e.g. "all_reduce(sum of 10 float32)".

        Raises Mismatch on every rank if the ranks do not all say the same; and see Vigil.look.
        """
        self._number += 1
        ranks, mine = self._endpoint.ranks, Call(self._context, self._number, self._name, call, _site())
        said = self._desk.announce(mine, ranks)
        expected = _Expected(self._desk.rank, str(mine))
        vigil = Vigil(self._desk, lambda: str(mine), lambda: [rank for rank in ranks if rank not in said], CALL)
        self._desk.read()
        while len(said) < len(ranks):
            if self._progress is not None:
                self._progress()
            waited = vigil.look()
            if len(said) == len(ranks):  # it has read that; there is nothing to wait for
                break
            try:
                self._endpoint.rest([expected], waited)
            except Stopped:  # another rank has failed: if of what can be read here too, of the same
                self._desk.read()
                if len(said) < len(ranks):
                    raise
            self._desk.read()
        vigil.end()
        self._desk.pass_by(mine)
        if any(said[rank].text != call for rank in ranks):
            raise Mismatch(_describe(ranks, said))

    def farewell(self):
        """The program of this rank makes no more calls: who waits for it should not."""
        self._desk.say_goodbye()


class _Expected:
    """What a rank waits for when it waits for others to come, for reports of the transport."""

    done = False

    def __init__(self, owner, text):
        self.owner, self._text = owner, text

    def __str__(self):
        return f"rank {self.owner} waits in {self._text}"


def _describe(ranks, said):
    """One line for each different call, with the ranks (as numbered in the world) that made it, and where."""
    groups = {}
    for rank in ranks:
        groups.setdefault((said[rank].text, said[rank].site), []).append(str(rank))
    lines = [f"rank{'s' * (len(who) > 1)} {', '.join(who)}: {call}" + (f" at {site}" if site else "")
             for (call, site), who in groups.items()]
    return "\n  ".join(["the ranks of a group must make the same calls in one order, but called", *lines])


class Watched:
    """An endpoint whose waits have an end: it says in what it waits, and why that is in vain."""

    def __init__(self, endpoint):
        vars(self).update(_endpoint=endpoint, _desk=desk_of(endpoint.mail), operation="")

    def __getattr__(self, name):
        return getattr(self._endpoint, name)

    def __setattr__(self, name, value):
        if name == "operation":
            vars(self)[name] = value
            value = f"{value} at {_site()}"
        setattr(self._endpoint, name, value)

    def post(self, sends, receives, tag):
        whom = sorted({self.ranks[peer] for _, peer in (*sends, *receives)} - {self.ranks[self.rank]})
        place = self._endpoint.operation

        def text():
            parts = [f"{what} rank {self.ranks[peer]}, tag {tag}, {view.nbytes} bytes"
                     for what, half in (("send to", sends), ("receive from", receives)) for view, peer in half]
            return f"{place}: {'; '.join(parts)}"

        kind = MESSAGE if self.operation in ("send", "recv") else OTHER
        return _Pending(self._endpoint.post(sends, receives, tag), Vigil(self._desk, text, lambda: whom, kind))

    def exchange(self, sends, receives, tag, kept=False):
        return [partial(self._exchange, sends, receives, tag)] if sends or receives else []

    def _exchange(self, sends, receives, tag):
        self.wait(self.post(sends, receives, tag))

    def test(self, pending):
        done = self._done(pending)
        if not done:
            pending.vigil.look()
        return done

    def wait(self, pending):
        while not self._done(pending):
            self._endpoint.rest(pending.requests, pending.vigil.look())

    def _done(self, pending):
        if not pending or pending.done:  # (a turn of a plan may have no messages)
            return True
        pending.done = self._endpoint.test_lengths(pending.requests)
        if pending.done:
            pending.vigil.end()
        return pending.done

    def share(self, nbytes):
        pieces, meeting, free = self._endpoint.share(nbytes)
        mates = [self.ranks[rank] for rank in pieces if rank != self.rank]
        return pieces, lambda i: _WatchedMeeting(self, meeting(i), mates), free

    def watch_over(self, requests, mates):
        """What to wait for when this rank has come to a meeting with its mates."""
        place = self._endpoint.operation
        return _Pending(requests, Vigil(self._desk, lambda: place, lambda: mates, OTHER))


class _WatchedMeeting:
    """A meeting whose waits have an end."""

    def __init__(self, endpoint, meeting, mates):
        self._endpoint, self._meeting, self._mates = endpoint, meeting, mates

    def begin(self):
        return self._endpoint.watch_over(self._meeting.begin(), self._mates)

    def meet(self):
        self._endpoint.wait(self.begin())


class _Pending:
    """Requests of the endpoint, and the vigil over them."""

    def __init__(self, requests, vigil):
        self.requests, self.vigil, self.done = requests, vigil, False


def _site():
    """file:line of the nearest caller outside this package."""
    here = os.path.dirname(__file__)
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename).startswith(here):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
