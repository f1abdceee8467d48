"""Is an algorithm cheap enough to be gone through at this size? Told before anything large is made."""

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, Send, Step

LIMITS = {
    "messages to route": 1_500_000,
    "kinds of rounds": 15_000,
    "numbers for its rounds": 2_000_000_000,
}
"""Each is a matter of some ten seconds on one core."""

MOST_ROUNDS = 200_000

SMALL = 16, 32


class TooMuch(ValueError):
    """To go through all its messages would take minutes, or memory that is not there."""


def check_effort(name, ranks, **options):
    """Raises TooMuch where going through the algorithm `name` on so many ranks goes beyond LIMITS.

    All that is counted grows like a power of the number of ranks, so two small sizes tell of a large one.
    """
    formula = {key: value for key, value in options.items() if key != "root"}
    rounds = ALGORITHMS[name].rounds(ranks, **formula)
    if rounds > MOST_ROUNDS:
        raise TooMuch(f"{name} on {ranks:,} ranks takes {rounds:,} rounds (at most {MOST_ROUNDS:,})")
    if ranks <= 2 * SMALL[1]:
        return
    few, more = (np.array(_effort(name, size, options)) for size in SMALL)
    power = np.log2(np.maximum(more, 1) / np.maximum(few, 1))
    for count, (what, most) in zip(more * (ranks / SMALL[1]) ** power, LIMITS.items()):
        if count > most:
            raise TooMuch(f"{name} on {ranks:,} ranks takes about {count:.1g} {what} (at most "
                          f"{most:.2g})")


def _effort(name, size, options):
    """(messages in rounds that differ, rounds that differ, numbers that the rule makes) at a small size."""
    fitting = {"root": 0, "nodes": options.get("nodes", ())[:size]}
    options = {key: fitting.get(key, value) for key, value in options.items()}
    seen, messages, numbers = set(), 0, 0
    for items in ALGORITHMS[name].rule(np.arange(size), size, **options):
        items = [items] if isinstance(items, Step) else items
        peers = [np.broadcast_to(item.to, size) for item in items if isinstance(item, (Step, Send))]
        numbers += sum(2 * size if isinstance(item, Step) else size + np.size(item.chunks) for item in items)
        key = tuple(peer.tobytes() for peer in peers)
        if key not in seen:
            seen.add(key)
            messages += sum(int((peer != NONE).sum()) for peer in peers)
    return messages, len(seen), numbers
