"""What it costs to add up M bytes over N ranks, by the article's arithmetic (FACTS F34-F36).

M: bytes (or any unit) of one rank's message; N: ranks; T: the time to send M once. Results in the same unit.
"""


def copies_to_everyone(message, ranks):
    """Bytes on the whole network when every rank sends its message to every other one: M N (N-1)."""
    return message * ranks * (ranks - 1)


def ring(message, ranks):
    """Bytes on the whole network of a ring all-reduce: 2 M (N-1)."""
    return 2 * message * (ranks - 1)


def ring_per_rank(message, ranks):
    """Bytes that leave each rank in a ring all-reduce: 2 M (N-1) / N, always less than 2 M."""
    return 2 * message * (ranks - 1) / ranks


def chain(message, ranks):
    """Bytes of a chain, which ends with the sum on the last rank: M (N-1). Sending it back doubles it."""
    return message * (ranks - 1)


def star(message, ranks):
    """Bytes into the master, and as many again out of it, over one link: M (N-1) each way."""
    return message * (ranks - 1)


def ring_time(once, ranks):
    """2 (T/N) (N-1): every link carries one N-th of the message at a time, so it stays below 2 T."""
    return 2 * once / ranks * (ranks - 1)


def chain_time(once, ranks, there_and_back=True):
    """(N-1) T one way, twice that with the way back: one link works while all others wait."""
    return (1 + there_and_back) * (ranks - 1) * once


def star_time(once, ranks):
    """2 (N-1) T: everything goes in over the master's one link, then out over it."""
    return 2 * (ranks - 1) * once
