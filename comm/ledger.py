"""What really left this rank: calls, messages and bytes, by collective."""

from dataclasses import dataclass, field


@dataclass
class Entry:
    """What one kind of operation has cost this rank so far."""

    calls: int = 0
    messages: int = 0  # that left this rank
    sent: int = 0  # bytes that left this rank
    payload: int = 0  # bytes of the arrays that were passed in: the M of the formulas


@dataclass
class Ledger:
    """`ledger.entries["all_reduce"].sent`: one Entry for each operation that was used."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, operation, messages, sent, payload):
        entry = self.entries.get(operation)
        if entry is None:
            entry = self.entries[operation] = Entry()
        entry.calls += 1
        entry.messages += messages
        entry.sent += sent
        entry.payload += payload

    def __getitem__(self, operation):
        """The Entry of an operation; all zero if it was never used."""
        return self.entries.get(operation, Entry())

    @property
    def total(self):
        """One Entry that sums all operations."""
        values = self.entries.values()
        return Entry(*(sum(getattr(e, name) for e in values) for name in Entry.__dataclass_fields__))

    def clear(self):
        self.entries.clear()

    def __str__(self):
        lines = [f"{'operation':<16}{'calls':>9}{'messages':>10}{'bytes sent':>18}{'bytes passed in':>18}"]
        for name, e in [*sorted(self.entries.items()), ("total", self.total)]:
            lines.append(f"{name:<16}{e.calls:>9,}{e.messages:>10,}{e.sent:>18,}{e.payload:>18,}")
        return "\n".join(lines)
