"""A page that plays an algorithm: ranks on a circle, what each holds, messages in flight, step by step.

One HTML file with no outside resources. The page replays the messages itself, so that it stays small; that it
shows what `render.contents` says is tested in a browser.
"""

import json
from html import escape
from importlib.resources import files

from comm.algorithms import ALGORITHMS
from comm.moves import verbs
from comm.palette import COLOURS, MIXED
from comm.render import EMPTY, headline, letter, slots, states

LIMIT = 64
"""More ranks than this cannot be told apart on a circle."""

MOST_CHUNKS = 128
"""More rows than this cannot be told apart, whatever the ranks."""

PARTS = ("replay", "layout", "ranks", "messages", "time")
"""The scripts of the page, in comm/page, in the order in which they run."""

SUMS = ("all_reduce", "reduce_scatter", "reduce", "barrier")


def player(name, size, root=0, bytes=None, **options):
    """The text of the page. bytes: of one whole message; None: amounts are shown as parts of M.

    Raises ValueError for more than LIMIT ranks or MOST_CHUNKS chunks, and for options that the rule refuses.
    """
    played = json.dumps(script(name, size, root, bytes, **options), separators=(",", ":"))
    text = _shipped("player.html").replace("[[title]]", escape(headline(name, size, root, **options)))
    code = "\n".join(['"use strict";', *(_shipped(f"page/{part}.js") for part in PARTS)])
    text = text.replace("[[style]]", _shipped("page/style.css")).replace("[[script]]", code)
    return text.replace("[[data]]", played.replace("<", "\\u003c"))


def _shipped(name):
    """The text of a file of this package."""
    return files("comm").joinpath(*name.split("/")).read_text(encoding="utf-8")


def script(name, size, root=0, bytes=None, **options):
    """What the page plays, as JSON has it: what everyone holds at the start, then the messages of every step."""
    if size > LIMIT:
        raise ValueError(f"{size} ranks: a page plays at most {LIMIT}; draw an .svg, or fewer ranks")
    algorithm = ALGORITHMS[name]
    chunks = algorithm.chunks(size, **options)
    if chunks > MOST_CHUNKS:
        raise ValueError(f"{chunks} chunks: a page shows at most {MOST_CHUNKS}; fewer segments")
    start, steps = None, []
    for _, cells, messages in states(name, size, root, **options):
        if start is None:
            start = cells.tolist()
        else:
            steps.append({"verb": verbs(messages), "moves": [_packed(message) for message in messages]})
    kind = "sum" if algorithm.collective in SUMS else "blocks" if algorithm.collective == "all_to_all" else "copy"
    return {"size": size, "slots": len(start[0]), "chunks": chunks, "kind": kind,
            "once": algorithm.collective == "barrier", "carries": algorithm.collective != "barrier", "bytes": bytes,
            "letters": [letter(rank) for rank in range(size)], "heads": slots(name, size, root, **options),
            "empty": EMPTY, "start": start, "steps": steps, "colours": COLOURS, "mixed": MIXED, "legend": _legend(kind)}


def _packed(message):
    """[source, to, chunks, where they land (0: under the same numbers), reduce]"""
    landed = 0 if message.landed == message.sent else list(message.landed)
    return [message.source, message.to, list(message.sent), landed, int(message.reduce)]


def _legend(kind):
    """How to read the page."""
    holds = {"sum": "Each row of a rank is a chunk; letters say whose summands are in it, or a bar how many.",
             "copy": "Each row of a rank is a chunk; the letter says whose it was.",
             "blocks": "Each rank has a block for everyone, and gets one from everyone: a2 is A's for rank 2 (C). "
                       "Colours say whom a block is for."}[kind]
    return (f"{holds} Thick frames: changed in this step. Solid arrows add, dashed ones copy. "
            "M: one whole message. Keys: arrows step, space plays, Home and End jump.")
