"""What every rank holds after every round, in the article's letters (FACTS F33): a2+d2 is a sum on its way.

Ranks are letters (A holds a0, a1, ...), digits are chunks; in a sum a rank's own summand comes first.
"""

import string

import numpy as np

from comm.schedule import NONE, Recv
from comm.simulate import NOTHING, before, play


def letter(rank):
    """a, b, ..., z, aa, ab, ...: the name of a rank's summands; upper case, of the rank itself."""
    name = ""
    rank += 1
    while rank:
        rank, place = divmod(rank - 1, 26)
        name = string.ascii_lowercase[place] + name
    return name


def contents(name, size):
    """What `size` ranks hold: a list of (title, (size, size) strings), before and after every round."""
    held = before(name, size)
    cells = np.empty(held.shape, object)
    for rank, chunk in np.ndindex(held.shape):
        cells[rank, chunk] = f"{letter(rank)}{chunk}" if held[rank, chunk] != NOTHING else "-"
    states = [("at the start", cells.copy())]
    for number, items in play(name, size, held):
        sources = cells.copy()
        receives = [item for item in items if isinstance(item, Recv)]
        for item in receives:
            for rank in np.flatnonzero(item.source != NONE):
                for chunk in item.chunks[rank]:
                    came = sources[item.source[rank], chunk]
                    cells[rank, chunk] = f"{cells[rank, chunk]}+{came}" if item.reduce else came
        verb = "add" if any(item.reduce for item in receives) else "copy"
        states.append((f"after step {number} ({verb})", cells.copy()))
    return states


def table(name, size, markdown=False):
    """The contents as text, one line for each rank, or as Markdown, one table for each step."""
    page = _markdown if markdown else _text
    return "\n\n".join([f"{'# ' * markdown}{name}, {size} ranks",
                        *(page(title, cells) for title, cells in contents(name, size))]) + "\n"


def _text(title, cells):
    lines = [f"  {letter(r).upper()} = [{', '.join(row)}]" for r, row in enumerate(cells)]
    return "\n".join([f"{title}:", *lines])


def _markdown(title, cells):
    size = len(cells[0])
    lines = [f"**{title}**", "", f"| rank | {' | '.join(f'chunk {c}' for c in range(size))} |",
             f"|---|{'---|' * size}"]
    lines += [f"| {letter(r).upper()} | {' | '.join(row)} |" for r, row in enumerate(cells)]
    return "\n".join(lines)
