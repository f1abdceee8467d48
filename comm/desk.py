"""What ranks tell each other about their waiting: the eyes of comm/check.py and of comm/ending.py.

Every rank has one `Desk`, whichever of its groups it works in, and a transport's mail under it: short notes that
are sent without waiting, and arrive from one rank in the order in which they were sent. A `Vigil` is one
wait of this rank. It ends, or it raises and says why it cannot.
"""

import json
import math
import os
import time
from typing import NamedTuple

from comm.threads import Deadlock

TELL = 1.0  # seconds that a rank waits before it tells the others in what and for whom
STABLE = 1.0  # seconds that ranks must wait for each other unchanged before that is a deadlock
LINGER = 2.0  # seconds that a message may still be on its way when its sender's program has ended
CALL, MESSAGE, OTHER = "call", "message", "other"


class Mismatch(RuntimeError):
    """Ranks called different collectives, with different arguments, in another order, or one is no longer there."""


class Call(NamedTuple):
    """A collective that a rank has announced."""

    context: str  # of its group
    number: int  # of the calls of that group
    group: str  # its name
    text: str  # all_reduce(3 float64, sum)
    site: str  # file:line

    def __str__(self):
        return f"{self.text}{self.site and ' at '}{self.site}, call {self.number} of group {self.group}"


class Wait(NamedTuple):
    """What a rank has told of its waiting. kind: CALL (for ranks to come), MESSAGE (one from or to one rank)."""

    serial: int
    text: str
    whom: list
    kind: str


def patience():
    """Seconds that a rank may wait for another one under checks: MINIGPT_COMM_TIMEOUT, 60 if unset."""
    text = os.environ.get("MINIGPT_COMM_TIMEOUT", "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ValueError(f"MINIGPT_COMM_TIMEOUT={text!r}: expected a number of seconds above 0, or inf")
    return seconds


def desk_of(mail):
    """The Desk of the rank whose mail this is."""
    if mail.desk is None:
        mail.desk = Desk(mail)
    return mail.desk


class Desk:
    """What one rank knows of the others. mail: rank, size, put(ranks, note), take() -> [(rank, note)]."""

    def __init__(self, mail):
        self.rank, self.size, self._mail = mail.rank, mail.size, mail
        self.patience = patience()
        self.said = {}  # (context, number): {rank: Call} of collectives that this rank has not passed
        self.open = {}  # rank: the Call among those that it has announced last
        self.last = {}  # rank: its last Call in a group of this rank
        self.waits = {}  # rank: its Wait, if it waits for long
        self.ended = {}  # rank: when it was heard that its program has ended
        self._serial = 0

    def tell(self, ranks, *note):
        self._mail.put([rank for rank in ranks if rank != self.rank], json.dumps(note).encode())

    def read(self):
        """Take in what the others have told."""
        for rank, note in self._mail.take():
            kind, *rest = json.loads(note)
            getattr(self, f"_hear_{kind}")(rank, *rest)

    def _hear_call(self, rank, *fields):
        call = Call(*fields)
        self.said.setdefault(call[:2], {})[rank] = call
        self.open[rank] = self.last[rank] = call

    def _hear_wait(self, rank, *fields):
        self.waits[rank] = Wait(*fields)

    def _hear_on(self, rank):
        self.waits.pop(rank, None)

    def _hear_goodbye(self, rank):
        self.ended[rank] = time.monotonic()
        self.waits.pop(rank, None)

    def announce(self, call, ranks):
        """Begin a collective; returns {rank: Call} of those that have, which grows by reading."""
        said = self.said.setdefault(call[:2], {})
        said[self.rank] = self.last[self.rank] = call
        self.tell(ranks, CALL, *call)
        return said

    def pass_by(self, call):
        """All ranks have begun it."""
        for rank in self.said.pop(call[:2]):
            if rank in self.open and self.open[rank][:2] == call[:2]:
                del self.open[rank]

    def say_goodbye(self):
        """The program of this rank makes no more calls."""
        self.tell(range(self.size), "goodbye")

    def say_wait(self, text, whom, kind):
        self._serial += 1
        self.tell(range(self.size), "wait", self._serial, text, whom, kind)

    def say_on(self):
        self.tell(range(self.size), "on")

    def claims(self, since):
        """A line for every rank that still waits for this one, whose program has ended `since` seconds ago."""
        if since < 1.25 * LINGER:  # those who wait are the first to tell: they know more
            return []
        lines = {rank: f"rank {rank} waits for it in {call}" for rank, call in self.open.items()}
        lines |= {rank: f"rank {rank} waits for it in {wait.text}" for rank, wait in self.waits.items()
                  if self.rank in wait.whom}
        return [line for _, line in sorted(lines.items())]

    def circle(self, whom, kind):
        """Waits of ranks each of which waits for the next, and the last one for this rank; None if there is none.

        Only waits that nothing but the next rank's program can end count: not those for several messages, nor
        a message between two ranks that both wait for it, as it may just be long.
        """
        paths, seen = [(rank,) for rank in whom if kind != OTHER], set()
        for path in paths:
            wait = self.waits.get(path[-1])
            if path[-1] in seen or wait is None or wait.kind == OTHER:
                continue
            seen.add(path[-1])
            if self.rank in wait.whom and (len(path) > 1 or CALL in (kind, wait.kind)):
                return [(rank, self.waits[rank]) for rank in path]
            paths += [(*path, rank) for rank in wait.whom if rank != self.rank]
        return None

    def news(self, whom):
        """A line for every rank but this one: what it waits in, or where it was last."""
        for rank in range(self.size):
            if rank in self.ended:
                yield f"the program of rank {rank} has ended"
            elif rank in self.waits:
                yield f"rank {rank} waits in {self.waits[rank].text} for {names(self.waits[rank].whom)}"
            elif rank in self.open and rank not in whom:
                yield f"rank {rank} has come to {self.open[rank]}"
            elif rank in self.last and rank != self.rank:
                yield f"rank {rank} was last heard of in {self.last[rank]}, and does not wait"
            elif rank in whom:
                yield f"rank {rank} has not been heard of yet"


class Vigil:
    """A wait of this rank. text(): what it waits in; whom(): ranks of the world that it waits for."""

    def __init__(self, desk, text, whom, kind):
        self._desk, self._text, self._whom, self._kind = desk, text, whom, kind
        self._start = self._seen = time.monotonic()
        self._told = False
        self._circle, self._circle_since = None, 0.0

    def look(self):
        """Read the mail; returns the seconds waited, or raises if nobody will end this wait.

        Raises Mismatch if a rank that is waited for has ended or is in another call that needs this rank,
        Deadlock if ranks wait for each other in a circle, TimeoutError after MINIGPT_COMM_TIMEOUT seconds.
        """
        desk, now = self._desk, time.monotonic()
        if now - self._seen > TELL:
            self._start = now  # this rank did something else meanwhile
        self._seen = now
        desk.read()
        waited, whom = now - self._start, self._whom()
        self._look_for_ended(now, whom)
        if self._kind == CALL:
            self._look_for_other_calls(whom)
        if waited > TELL and not self._told:
            desk.say_wait(self._text(), whom, self._kind)
            self._told = True
        if self._told:
            self._look_for_circle(now, whom)
        if waited > desk.patience and whom:
            raise TimeoutError(self._report(
                f"rank {desk.rank} has waited {desk.patience:g} s for {names(whom)} (MINIGPT_COMM_TIMEOUT):", whom))
        return waited

    def end(self):
        if self._told:
            self._desk.say_on()
            self._told = False

    def _look_for_ended(self, now, whom):
        desk = self._desk
        linger = 0 if self._kind == CALL else LINGER
        gone = [rank for rank in whom if rank in desk.ended and now - max(self._start, desk.ended[rank]) >= linger]
        if gone:
            title = f"rank {desk.rank} waits for {names(gone)}, which make{'s' * (len(gone) == 1)} no more calls:"
            raise Mismatch(self._report(title, whom))

    def _look_for_other_calls(self, whom):
        """A rank that has announced what this one has not come to, and waits there, will not come here."""
        others = {rank: self._desk.open[rank] for rank in whom if rank in self._desk.open}
        if others:
            lines = [f"rank {rank}: {call}" for rank, call in sorted(others.items())]
            raise Mismatch("\n  ".join([
                "the ranks must begin the collectives of all their groups in one order, but called",
                f"rank {self._desk.rank}: {self._text()}", *lines]))

    def _look_for_circle(self, now, whom):
        found = self._desk.circle(whom, self._kind)
        if found != self._circle:
            self._circle, self._circle_since = found, now
        elif found and now - self._circle_since > STABLE:
            raise Deadlock(self._report("no rank of these can go on:", whom))

    def _report(self, title, whom):
        mine = f"rank {self._desk.rank} waits in {self._text()} for {names(whom)}"
        return "\n  ".join([title, mine, *self._desk.news(whom)])


def names(ranks):
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, sorted(ranks)))}"
