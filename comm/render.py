"""What every rank holds after every round, in the article's letters (FACTS F33): a2+d2 is a sum on its way.

Ranks are letters (A holds a0, a1, ...), digits are chunks; in a sum a rank's own summand comes first. In an
all-to-all a2 is A's block for rank 2 (C), and a rank has two rows of slots: what is for whom, what came from whom.
"""

import string

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.moves import moves, verbs
from comm.simulate import NOTHING, before, play

EMPTY = "-"
"""How a chunk is shown that a rank does not hold."""


def letter(rank):
    """a, b, ..., z, aa, ab, ...: the name of a rank's summands; upper case, of the rank itself."""
    name = ""
    rank += 1
    while rank:
        rank, place = divmod(rank - 1, 26)
        name = string.ascii_lowercase[place] + name
    return name


def states(name, size, root=0, **options):
    """Yields (title, (size, slots) strings, messages of the round) at the start and after every round.

    The array is one and the same, changed in place: copy what is to be kept. Raises ValueError for what the rule
    refuses, KeyError for an unknown algorithm.
    """
    held = before(name, size, root, **options)
    cells = _start(ALGORITHMS[name].collective, held, root)
    yield "at the start", cells, []
    once = ALGORITHMS[name].collective == "barrier"
    for number, items in play(name, size, held, root, **options):
        messages = moves(items)
        sources = cells.copy()
        for message in messages:
            for sent, landed in zip(message.sent, message.landed):
                came = sources[message.source, sent]
                cells[message.to, landed] = _added(cells[message.to, landed], came, once) if message.reduce else came
        yield f"after step {number} ({verbs(messages)})", cells, messages


def _start(collective, held, root):
    """(size, slots) labels of what is there before the first round."""
    size, slots = held.shape
    cells = np.full(held.shape, EMPTY, object)
    for rank, slot in np.argwhere(held != NOTHING):
        owner = root if collective in ("broadcast", "scatter") else rank
        number = rank if collective == "all_to_all" and slot >= size else slot  # its own block is in place
        cells[rank, slot] = f"{letter(owner)}{number}"
    return cells


def _added(mine, came, once):
    """A sum. once: only summands that are new (in a barrier ranks hear of the same rank more than once)."""
    if once:
        known = mine.split("+")
        return "+".join(known + [summand for summand in came.split("+") if summand not in known])
    return f"{mine}+{came}"


def contents(name, size, root=0, **options):
    """What `size` ranks hold: a list of (title, (size, slots) strings), before and after every round."""
    return [(title, cells.copy()) for title, cells, _ in states(name, size, root, **options)]


def table(name, size, markdown=False, root=0, **options):
    """The contents as text, one line for each rank, or as Markdown, one table for each step."""
    return "\n\n".join(pages(name, size, markdown, root, **options)) + "\n"


def pages(name, size, markdown=False, root=0, **options):
    """The parts of the table one by one, so that a long one can be printed while it is made."""
    page = _markdown if markdown else _text
    yield f"{'# ' * markdown}{headline(name, size, root, **options)}"
    heads = slots(name, size, root, **options)
    for title, cells, _ in states(name, size, root, **options):
        yield page(title, cells, heads)


def headline(name, size, root=0, **options):
    """The algorithm, its ranks and options, as a title."""
    chosen = {**({"root": letter(root).upper()} if root else {}), **options}
    if chosen.get("nodes"):
        nodes = chosen.pop("nodes")
        chosen["nodes"] = ",".join(map(str, nodes)) if size <= 16 else f"({len(set(nodes))})"
    said = "".join(f", {key} {value}" for key, value in chosen.items() if value is not None)
    return f"{name}, {size} rank{'s' * (size != 1)}{said}"


def slots(name, size, root=0, **options):
    """A heading for every slot of a rank's buffer."""
    if ALGORITHMS[name].collective == "all_to_all":
        ranks = [letter(r).upper() for r in range(size)]
        return [f"for {rank}" for rank in ranks] + [f"from {rank}" for rank in ranks]
    return [f"chunk {c}" for c in range(ALGORITHMS[name].chunks(size, **options))]


def _text(title, cells, heads):
    half = len(cells) if heads[-1].startswith("from") else len(heads)  # all-to-all: a bar before what came
    return "\n".join([f"{title}:", *(
        f"  {letter(r).upper()} = [{' | '.join(', '.join(part) for part in (row[:half], row[half:]) if len(part))}]"
        for r, row in enumerate(cells))])


def _markdown(title, cells, heads):
    lines = [f"**{title}**", "", f"| rank | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    lines += [f"| {letter(r).upper()} | {' | '.join(row)} |" for r, row in enumerate(cells)]
    return "\n".join(lines)
