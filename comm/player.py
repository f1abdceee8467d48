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

SUMS = ("all_reduce", "reduce_scatter", "reduce", "barrier")


def player(name, size, root=0, bytes=None, **options):
    """The text of the page. bytes: of one whole message; None: amounts are shown as parts of M.

    Raises ValueError for more than LIMIT ranks, and for options that the rule refuses.
    """
    page = {part: files("comm").joinpath(f"player.{part}").read_text(encoding="utf-8") for part in ("html", "css", "js")}
    filled = json.dumps(script(name, size, root, bytes, **options), separators=(",", ":")).replace("<", "\\u003c")
    text = page["html"].replace("[[title]]", escape(headline(name, size, root, **options)))
    return text.replace("[[style]]", page["css"]).replace("[[script]]", page["js"]).replace("[[data]]", filled)


def script(name, size, root=0, bytes=None, **options):
    """What the page plays, as JSON has it: what everyone holds at the start, then the messages of every step."""
    if size > LIMIT:
        raise ValueError(f"{size} ranks: a page plays at most {LIMIT}; draw an .svg, or fewer ranks")
    algorithm = ALGORITHMS[name]
    start, steps = None, []
    for _, cells, messages in states(name, size, root, **options):
        if start is None:
            start = cells.tolist()
        else:
            steps.append({"verb": verbs(messages), "moves": [_packed(message) for message in messages]})
    kind = "sum" if algorithm.collective in SUMS else "blocks" if algorithm.collective == "all_to_all" else "copy"
    return {"size": size, "slots": len(start[0]), "chunks": algorithm.chunks(size, **options), "kind": kind,
            "once": algorithm.collective == "barrier", "moves": algorithm.collective != "barrier", "bytes": bytes,
            "letters": [letter(rank) for rank in range(size)], "heads": slots(name, size, root, **options),
            "empty": EMPTY, "start": start, "steps": steps, "colours": COLOURS, "mixed": MIXED, "legend": _legend(kind)}


def _packed(message):
    """[source, to, chunks, where they land (0: under the same numbers), reduce]"""
    landed = 0 if message.landed == message.sent else list(message.landed)
    return [message.source, message.to, list(message.sent), landed, int(message.reduce)]


def _legend(kind):
    """How to read the page."""
    holds = {"sum": "a row is a chunk; its letters are the ranks whose summands are in it. A framed row is complete",
             "copy": "a row is a chunk; the letter says whose it was",
             "blocks": "on the left a rank's blocks, on the right what has come: a2 is A's block for rank 2, C. "
                       "Colour: whom it is for"}[kind]
    return (f"Cards: {holds}. A thick frame changed in this step. Solid arrows add, dashed ones copy. "
            "M is one whole message. Keys: arrows step, space plays, Home and End jump.")
