"""Is an algorithm cheap enough to price at this size? Told from small sizes, before anything large is made."""

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, Step

MOST_MESSAGES, MOST_NUMBERS = 3_000_000, 2_000_000_000
ROUND = 200  # messages that take as long as beginning a round of another pattern


class TooMuch(ValueError):
    """The pricing itself would take minutes, or memory that is not there."""


def check_effort(name, ranks, **options):
    """Raises TooMuch where `price` would look at too many messages, or the rule make too many numbers.

    Told from small sizes: both grow like powers of the number of ranks.
    """
    small = 16, 32
    if ranks <= 2 * small[1]:
        return
    few, more = (np.array(_effort(name, size, options)) for size in small)
    power = np.log2(np.maximum(more, 1) / np.maximum(few, 1))
    messages, numbers = more * (ranks / small[1]) ** power
    for count, most, what in ((messages, MOST_MESSAGES, "messages to route"),
                              (numbers, MOST_NUMBERS, "numbers for its rounds")):
        if count > most:
            raise TooMuch(f"{name} on {ranks} ranks makes about {count:.1g} {what}, too many to price "
                          f"(at most {most:.0e})")


def _effort(name, size, options):
    """(messages in rounds that differ, numbers that the rule makes) at a small size."""
    fitting = {"root": 0, "nodes": options.get("nodes", ())[:size]}
    options = {key: fitting.get(key, value) for key, value in options.items()}
    seen, messages, numbers = set(), 0, 0
    for items in ALGORITHMS[name].rule(np.arange(size), size, **options):
        items = [items] if isinstance(items, Step) else items
        peers = [item.to for item in items if not hasattr(item, "source") or isinstance(item, Step)]
        numbers += sum(np.size(getattr(item, "chunks", size * [0])) + size for item in items)
        key = tuple(np.broadcast_to(peer, size).tobytes() for peer in peers)
        if key not in seen:
            seen.add(key)
            messages += ROUND + sum(int((np.broadcast_to(peer, size) != NONE).sum()) for peer in peers)
    return messages, numbers
