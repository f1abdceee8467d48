"""What an algorithm makes its ranks do, counted once: the messages, chunks and additions of every round.

Rounds that are alike count together, so a ring of hundreds of ranks is a line. Above `WALKED` ranks walking through
all rounds takes seconds, and the registry's formulas speak instead.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.schedule import NONE, Send, everyone
from comm.shared import fits

MESSAGES, WINDOW, STAGED = "messages", "window", "staged"
"""How chunks travel: as messages; read from arrays that lie in shared memory; copied there first."""

WALKED = 512  # ranks
SAMPLE = 64  # ranks: where the share of what is added is looked up for the formulas


class Load(NamedTuple):
    """What one rank does in one round: how many messages, and how many chunks in all of them."""

    sends: int = 0
    receives: int = 0
    out: float = 0
    into: float = 0
    combines: int = 0  # messages that are added to what is here
    combined: float = 0
    meets: int = 0
    reads: int = 0  # copies out of, or to, shared memory
    read: float = 0
    adds: int = 0  # additions from shared memory
    added: float = 0
    busy: float = 1  # how many of the other ranks copy, add or have several messages as well: 0 none, 1 all


SENDS, RECEIVES, OUT, INTO, COMBINES, COMBINED, MEETS, READS, READ, ADDS, ADDED, _ = range(12)


class Profile(NamedTuple):
    """An algorithm at one size: [(how many such rounds, the different Loads of its ranks)]."""

    rounds: int
    sent: float  # chunks that leave the busiest rank
    phases: tuple
    chunks: int  # C: a chunk is M/C bytes


@lru_cache(4096)
def profile(name, size, transport=MESSAGES, nodes=None, options=()):
    """The Profile of an algorithm, or None if it cannot run on this transport. options: sorted pairs."""
    algorithm, options = ALGORITHMS[name], dict(options)
    chunks = algorithm.chunks(size, **options)
    if size >= WALKED:
        return _by_formula(name, size, options, chunks) if transport == MESSAGES else None
    all_rounds = everyone(algorithm.rule, size, **options)
    if transport != MESSAGES:
        all_rounds = list(all_rounds)
        if not fits(all_rounds, staged=transport == STAGED):
            return None
    nodes, phases, sent, count = np.array(nodes or (0,) * size), {}, np.zeros(size, int), 0
    for items in all_rounds:
        table = _loads(items, size, transport, nodes)
        sent += sum((item.to != NONE) * item.chunks.shape[1] for item in items if isinstance(item, Send))
        several = table[:, [SENDS, RECEIVES]].max(axis=1) > 1
        at_work = int(np.count_nonzero(several | table[:, [COMBINES, READS, ADDS]].any(axis=1)))
        busy = max(0, at_work - 1) / max(1, size - 1)
        loads = tuple(Load(*row, busy) for row in sorted(set(map(tuple, table.tolist()))))
        phases[loads] = phases.get(loads, 0) + 1
        count += 1
    return Profile(count, int(sent.max(initial=0)), tuple((times, loads) for loads, times in phases.items()), chunks)


def _loads(items, size, transport, nodes):
    """(size, 11) the Load of every rank in one round, without `busy`."""
    table, shown = np.zeros((size, len(Load._fields) - 1), int), []
    for item in items:
        there, count, sends = item[0] != NONE, item.chunks.shape[1], isinstance(item, Send)
        near = there & (nodes == nodes[item[0]]) if transport != MESSAGES else np.zeros(size, bool)
        far = there & ~near
        _count(table, far, count, *((SENDS, OUT) if sends else (RECEIVES, INTO)))
        if sends:
            table[np.isin(nodes, nodes[near]), MEETS] = 1
            shown.append(np.where(near[:, None], item.chunks, NONE))
            continue
        _count(table, near, count, *((ADDS, ADDED) if item.reduce else (READS, READ)))
        if item.reduce:
            _count(table, far, count, COMBINES, COMBINED)
    if transport == STAGED and shown:
        copied = np.array([len(set(row) - {NONE}) for row in np.hstack(shown).tolist()])
        table[:, READS] += copied > 0
        table[:, READ] += copied
    return table


def _count(table, ranks, chunks, messages, total):
    table[:, messages] += ranks
    table[:, total] += ranks * chunks


def _by_formula(name, size, options, chunks):
    """The Profile that the registry's formulas give, as if every round were the average one.

    Somebody waits for a whole chunk in every round of whole messages; the root of a gather for everyone's.
    """
    algorithm = ALGORITHMS[name]
    rounds, sent = algorithm.rounds(size, **options), algorithm.sent(size, **options)
    path = max(sent, rounds if chunks != size else 0, size - 1 if algorithm.collective == "gather" else 0)
    small = {**options, "nodes": options["nodes"][:SAMPLE]} if "nodes" in options else options
    sample = profile(name, SAMPLE, MESSAGES, None, tuple(sorted(small.items())))
    combined, moved, sends, receives = (
        sum(times * max(load[field] for load in loads) for times, loads in sample.phases)
        for field in (COMBINED, INTO, SENDS, RECEIVES))
    messages = max(sends, receives) / max(1, sample.rounds)
    messages *= size / SAMPLE if messages > SAMPLE / 2 else 1  # one to everybody, or as few as in small groups
    each, share = path / rounds, combined / moved if moved else 0
    load = Load(messages, messages, each, each, messages * (share > 0), share * each)
    return Profile(rounds, sent, ((rounds, (load,)),), chunks)
