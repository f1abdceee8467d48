"""What really left this rank: calls, messages and bytes, by group, collective, algorithm and peer.

A plan asks once for its `Tally` and adds one to its `calls` for every run: that is all that counting costs.
The rest is arithmetic when someone asks. Beside the bytes stands what the algorithm's formula allows. A tally
knows both for one run, so a call above its formula is not hidden by another one below. What a rank of the same
node reads from this one's memory counts as sent to it. Left out: the notes of checks (comm/check.py), the trials
of costs (comm/choose.py), and what MPI itself sends to make groups and to end.
"""

import weakref
from dataclasses import dataclass, field

LIMIT = 256  # tallies, and ledgers of split groups, that are kept apart before those out of use are summed


@dataclass
class Entry:
    """What one kind of operation has cost this rank so far."""

    calls: int = 0
    messages: int = 0  # that left this rank
    sent: int = 0  # bytes that left this rank
    payload: int = 0  # bytes of the arrays that were passed in: the M of the formulas
    formula: int = 0  # most bytes that the algorithms' formulas let leave this rank
    excess: int = 0  # bytes above the formula, summed over the calls that were above it
    peers: dict = field(default_factory=dict)  # {rank in the world: (messages, bytes)}

    def add(self, run, calls):
        """Add `calls` runs that are as `run`, a Tally, says."""
        self.calls += calls
        self.messages += calls * run.messages
        self.sent += calls * run.sent
        self.payload += calls * run.payload
        self.formula += calls * run.formula
        self.excess += calls * run.excess
        for peer, (messages, sent) in run.peers.items():
            before = self.peers.get(peer, (0, 0))
            self.peers[peer] = before[0] + calls * messages, before[1] + calls * sent

    def merge(self, other):
        """Add another Entry."""
        self.add(other, 1)
        self.calls += other.calls - 1


class Tally:
    """One way to run one operation. `calls` is for its user to count; the other numbers are those of one run."""

    __slots__ = ("calls", "messages", "sent", "payload", "formula", "excess", "peers", "__weakref__")

    def __init__(self, payload, formula, peers):
        self.calls, self.payload, self.formula, self.peers = 0, payload, formula, dict(peers)
        self.messages = sum(messages for messages, _ in self.peers.values())
        self.sent = sum(sent for _, sent in self.peers.values())
        self.excess = max(0, self.sent - formula)


class Ledger:
    """What this rank has sent in one group. `str(ledger)` reports it with the groups that were split off it.

    name: of the group ("world", "dp", ...). parent: the ledger of the group that this one was split from.
    """

    def __init__(self, name="world", parent=None):
        self.name, self.children = name, []
        self._tallies = {}  # (operation, algorithm, payload, formula, peers): Tally
        self._sums = {}  # (operation, algorithm): Entry, for what has no tally (any more)
        self._gone = {}  # (name, operation, algorithm): Entry, for split groups that are no more
        self._room = self._room_below = LIMIT
        if parent is not None:
            parent._adopt(self)

    def tally(self, operation, algorithm, payload, formula, peers):
        """The Tally to count one kind of run with; the same arguments give the same one while it is in use.

        operation: "all_reduce"; algorithm: "ring_all_reduce", or ""; payload: bytes of the array passed in;
        formula: most bytes that the algorithm's formula lets leave this rank in one run;
        peers: {rank in the world: (messages, bytes)} of what leaves in one run.
        """
        key = operation, algorithm, payload, formula, tuple(sorted(peers.items()))
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= self._room:
                self._sum_what_ended()
            tally = self._tallies[key] = Tally(payload, formula, peers)
        return tally

    def message(self, operation, peer, messages, sent):
        """Count what one call sent to rank `peer` of the world (None: nothing); its formula is what it sends."""
        entry = self._sums.get((operation, ""))
        if entry is None:
            entry = self._sums[operation, ""] = Entry()
        entry.calls += 1
        if peer is not None:
            entry.messages += messages
            entry.sent += sent
            entry.payload += sent
            entry.formula += sent
            before = entry.peers.get(peer, (0, 0))
            entry.peers[peer] = before[0] + messages, before[1] + sent

    def rows(self):
        """{(operation, algorithm): Entry} of this group alone."""
        rows = {}
        for key, entry in self._sums.items():
            rows.setdefault(key, Entry()).merge(entry)
        for key, tally in self._tallies.items():
            if tally.calls:
                rows.setdefault(key[:2], Entry()).add(tally, tally.calls)
        return rows

    def everything(self):
        """{(name of the group, operation, algorithm): Entry} of this group and all that were split off it."""
        rows = {}
        below = [child.everything() for child in self.children]
        own = {(self.name, *key): entry for key, entry in self.rows().items()}
        for part in (own, self._gone, *below):
            for key, entry in part.items():
                rows.setdefault(key, Entry()).merge(entry)
        return rows

    @property
    def entries(self):
        """{operation: Entry} of this group alone."""
        entries = {}
        for (operation, _), entry in self.rows().items():
            entries.setdefault(operation, Entry()).merge(entry)
        return entries

    def __getitem__(self, operation):
        """The Entry of an operation in this group; all zero if it was never used."""
        return self.entries.get(operation, Entry())

    @property
    def total(self):
        """One Entry that sums all operations of this group."""
        return _sum(self.rows().values())

    def clear(self):
        """Count from zero again, in the groups split off it too."""
        self._sums.clear()
        self._gone.clear()
        for tally in self._tallies.values():
            tally.calls = 0
        for child in self.children:
            child.clear()

    def report(self, peers=True):
        """A table of all that left this rank; what is above its formula is marked. peers: rows for them too."""
        rows = self.everything()
        lines = [f"{'group':<10}{'collective':<32}{'calls':>9}{'messages':>11}{'bytes sent':>19}{'formula':>19}"]
        for (name, operation, algorithm), entry in rows.items():
            lines.append(_line(name, _title(operation, algorithm), entry))
            if peers:
                lines += [f"{'':<12}{f'to rank {peer}':<39}{messages:>11,}{sent:>19,}"
                          for peer, (messages, sent) in sorted(entry.peers.items())]
        return "\n".join([*lines, _line("all", "", _sum(rows.values()))])

    def __str__(self):
        return self.report()

    def _sum_what_ended(self):
        """Tallies that nobody will add to any more become part of a sum, so that memory is bounded."""
        for key in list(self._tallies):
            tally = self._tallies.pop(key)
            calls, alive = tally.calls, weakref.ref(tally)
            del tally
            if alive() is not None:
                self._tallies[key] = alive()
            elif calls:
                self._sums.setdefault(key[:2], Entry()).add(Tally(key[2], key[3], key[4]), calls)
        self._room = max(LIMIT, 2 * len(self._tallies))

    def _adopt(self, child):
        if len(self.children) >= self._room_below:
            self._sum_groups_that_ended()
        self.children.append(child)

    def _sum_groups_that_ended(self):
        kept = []
        while self.children:
            ledger = self.children.pop(0)
            name, rows, gone, below = ledger.name, ledger.rows(), ledger._gone, ledger.children
            alive = weakref.ref(ledger)
            del ledger
            if alive() is not None:
                kept.append(alive())
                continue
            self.children += below  # groups that were split off it may live on
            del below
            for key, entry in [*(((name, *key), entry) for key, entry in rows.items()), *gone.items()]:
                self._gone.setdefault(key, Entry()).merge(entry)
        self.children = kept
        self._room_below = max(LIMIT, 2 * len(kept))


def _sum(entries):
    total = Entry()
    for entry in entries:
        total.merge(entry)
    return total


def _title(operation, algorithm):
    """The algorithm's name, which mostly ends with the operation's."""
    return algorithm if algorithm.endswith(operation) else f"{operation} {algorithm}".strip()


def _line(name, title, entry):
    line = f"{name:<10}{title:<32}{entry.calls:>9,}{entry.messages:>11,}{entry.sent:>19,}{entry.formula:>19,}"
    return line + f"  {entry.excess:,} BYTES ABOVE THE FORMULA" * (entry.excess > 0)
