"""A space-time diagram as SVG: ranks are lines, time runs downwards, messages are arrows.

Every message leaves from a label on its sender's line that says which chunks it takes. Labels have a place of
their own on the line, so they never cover each other, and they lie above the arrows.
"""

import string
from collections import defaultdict
from html import escape
from typing import NamedTuple

from comm.algorithms import ALGORITHMS
from comm.moves import runs, verbs
from comm.palette import COLOURS, MIXED, colour
from comm.render import headline, letter, states

MARGIN, HEAD, STEP = 24, 96, 130  # px: around everything; above the first rank; left of the first rank
LABEL, LETTER, TEXT = 18, 7.5, 13  # px: height of a label, width of a character, font size
FLIGHT, SPREAD = 46, 10  # px that a message takes downwards, and more for each other one that leaves with it
MOST_LETTERS = 8  # of a label that lists chunks; a longer one counts them
MOST_LABELS = 8  # of one rank in one round; more messages leave from one label that says how many


MOST_RANKS = MOST_CHUNKS = 512
MOST_MESSAGES = 100_000  # of a diagram; 64 ranks of a ring take 8,064


class Departure(NamedTuple):
    """A label on a rank's line and the messages that leave from it."""

    text: str
    colour: str
    messages: list


def space_time(name, size, root=0, **options):
    """The SVG text of one algorithm on `size` ranks.

    Raises KeyError for an unknown algorithm, ValueError for options that its rule refuses and for more messages
    than anybody could look at.
    """
    blocks = ALGORITHMS[name].collective == "all_to_all"
    if size > MOST_RANKS:
        raise ValueError(f"{size} ranks: a diagram has room for {MOST_RANKS}")
    chunks = ALGORITHMS[name].chunks(size, **options)
    if chunks > MOST_CHUNKS:
        raise ValueError(f"{chunks} chunks: a diagram has room for {MOST_CHUNKS}; fewer segments")
    rounds, held, count = [], None, 0
    for _, cells, messages in states(name, size, root, **options):
        count += len(messages)
        if count > MOST_MESSAGES:
            raise ValueError(f"{headline(name, size, root, **options)}: more than {MOST_MESSAGES:,} messages, too many "
                             "for a diagram; draw fewer ranks")
        if held is not None:
            rounds.append((verbs(messages), _departures(messages, held if blocks else None)))
        held = cells.copy()
    drawing = _Drawing(headline(name, size, root, **options), size, rounds, blocks)
    for number, (verb, departures) in enumerate(rounds, 1):
        drawing.round(number, verb, departures)
    return drawing.text()


def _departures(messages, blocks):
    """rank -> [Departure]: one for every different set of chunks that it sends in this round.

    blocks: what the slots hold, if they are named by that and not by their number (all-to-all).
    """
    sets = defaultdict(lambda: defaultdict(list))
    for message in messages:
        sets[message.source][message.sent].append(message)
    found = {}
    for rank, group in sets.items():
        found[rank] = [Departure(*_label(rank, sent, blocks), each) for sent, each in group.items()]
        if len(group) > MOST_LABELS:
            each = [message for group in group.values() for message in group]
            found[rank] = [Departure(f"{len(each)} msgs", MIXED, each)]
    return found


def _label(rank, sent, blocks):
    """(what a message takes, its colour); a block has the colour of the rank that it is for."""
    if blocks is None:
        text, unit = runs(sent), "chunks"
    else:
        names = [blocks[rank, slot] for slot in sent]
        text, unit = " ".join(names), "blocks"
        sent = [int(name.lstrip(string.ascii_letters)) for name in names]
    return text if len(text) <= MOST_LETTERS or len(sent) == 1 else f"{len(sent)} {unit}", colour(sent)


class _Drawing:
    """Elements as they are drawn: arrows below, labels above them."""

    def __init__(self, title, size, rounds, blocks):
        self.title, self.size, self.rounds, self.blocks = title, size, rounds, blocks
        labels = [d.text for _, r in rounds for each in r.values() for d in each]
        widest = max(map(len, labels), default=1) * LETTER + 10
        self.column = max(34, widest + 8, min(150, 600 / size))
        self.width = max(640, STEP + self.column * size + MARGIN, len(title) * 13 + 2 * MARGIN)
        self.y = HEAD + 28
        self.arrows, self.labels, self.back = [], [], []

    def x(self, rank):
        return STEP + self.column * (rank + 0.5)

    def round(self, number, verb, departures):
        """One band: labels at its head, messages fly from there to its foot."""
        rows = max(map(len, departures.values()), default=1)
        most = max((len(d.messages) for each in departures.values() for d in each), default=1)
        top, foot = self.y + 8, self.y + 8 + rows * (LABEL + 4) + FLIGHT + min(SPREAD * (most - 1), 100)
        if number % 2:
            self.back.append(f'<rect class="band" x="0" y="{self.y:g}" width="{self.width:g}" '
                             f'height="{foot + 6 - self.y:g}"/>')
        self.back.append(f'<text class="step" x="{MARGIN}" y="{top + 14:g}">step {number}</text>'
                         f'<text class="verb" x="{MARGIN}" y="{top + 32:g}">{verb}</text>')
        for rank in sorted(departures):
            for row, departure in enumerate(departures[rank]):
                self._departure(rank, top + row * (LABEL + 4), foot, departure)
        self.y = foot + 6

    def _departure(self, rank, top, foot, departure):
        width = len(departure.text) * LETTER + 10
        for message in departure.messages:
            side = 1 if message.to > rank else -1
            x, y = self.x(rank) + side * (width / 2 - 3), top + LABEL
            tip = self.x(message.to) - side * 2
            kind = "add" if message.reduce else "copy"
            said = f"{letter(rank).upper()} to {letter(message.to).upper()}: {runs(message.sent)}, {kind}"
            self.arrows.append(f'<path class="{kind}" stroke="{departure.colour}" d="M{x:g} {y:g}L{tip:g} {foot:g}" '
                               f'marker-end="url(#{kind}{departure.colour[1:]})"><title>{said}</title></path>')
        self.labels.append(f'<rect class="label" x="{self.x(rank) - width / 2:g}" y="{top:g}" width="{width:g}" '
                           f'height="{LABEL}" stroke="{departure.colour}"/>'
                           f'<text class="chunks" x="{self.x(rank):g}" y="{top + 13.5:g}" '
                           f'fill="{departure.colour}">{departure.text}</text>')

    def text(self):
        """The whole document."""
        end = self.y + 12
        lines = [f'<line class="rank" x1="{self.x(r):g}" y1="{HEAD + 22}" x2="{self.x(r):g}" y2="{end:g}"/>'
                 f'<text class="name" x="{self.x(r):g}" y="{HEAD + 10}">{letter(r).upper()}</text>'
                 for r in range(self.size)]
        legend, height = self._legend(), end + MARGIN
        sent = sum(len(d.messages) for _, r in self.rounds for each in r.values() for d in each)
        said = f"{len(self.rounds)} steps, {sent} messages. Time runs downwards; every vertical line is a rank."
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height:g}" '
            f'width="{self.width:g}" height="{height:g}" role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(self.title)}</title>', f'<desc id="description">{said}</desc>', STYLE,
            f"<defs>{''.join(_markers())}</defs>",
            f'<rect width="{self.width:g}" height="{height:g}" fill="#fff"/>', *self.back,
            f'<text class="title" x="{MARGIN}" y="38">{escape(self.title)}</text>', *legend,
            *lines, *self.arrows, *self.labels, "</svg>"]) + "\n"

    def _legend(self):
        """The kinds of arrows that there are, and what labels say."""
        x, parts = MARGIN, []
        for kind, said in (("add", "added to what is there"), ("copy", "copied in its place")):
            if any(kind in verb for verb, _ in self.rounds):
                parts.append(f'<path class="{kind}" stroke="{MIXED}" d="M{x} 62h34" '
                             f'marker-end="url(#{kind}{MIXED[1:]})"/>'
                             f'<text class="legend" x="{x + 44}" y="66">{said}</text>')
                x += 215
        said = "label: the blocks, a2 is A's for rank 2" if self.blocks else "label: the chunks; black: several"
        parts.append(f'<text class="legend" x="{x}" y="66">{said}</text>')
        return parts


def _markers():
    for stroke in (*COLOURS, MIXED):
        for kind, shape in (("add", f'd="M0 0L10 5L0 10z" fill="{stroke}"'),
                            ("copy", f'd="M1 1L9 5L1 9" fill="none" stroke="{stroke}" stroke-width="1.8"')):
            yield (f'<marker id="{kind}{stroke[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
                   f'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path {shape}/></marker>')


STYLE = f"""<style>
svg {{ font-family: "Helvetica Neue", Arial, "Liberation Sans", sans-serif; fill: #1b1f24 }}
.title {{ font-size: 22px; font-weight: 700 }} .legend {{ font-size: {TEXT}px }}
.name {{ font-size: 16px; font-weight: 700; text-anchor: middle }}
.step {{ font-size: 15px; font-weight: 700 }} .verb {{ font-size: {TEXT}px }}
.rank {{ stroke: #9aa3ad; stroke-width: 1.5 }} .band {{ fill: #f2f5f8 }}
.label {{ fill: #fff; stroke-width: 1.5; rx: 5px }}
.chunks {{ font-size: {TEXT}px; font-weight: 600; text-anchor: middle }}
.add, .copy {{ fill: none; stroke-width: 2 }} .copy {{ stroke-dasharray: 6 4 }}
</style>"""
