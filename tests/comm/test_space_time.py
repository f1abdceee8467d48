"""The space-time diagram, read back as XML: every message is an arrow, no label covers another."""

from collections import Counter
from xml.etree import ElementTree

import pytest

from comm.algorithms import ALGORITHMS
from comm.palette import COLOURS, MIXED, colour
from comm.render import states
from comm.space_time import space_time

SVG = "{http://www.w3.org/2000/svg}"


def read(name, size, **options):
    return ElementTree.fromstring(space_time(name, size, **options))


def arrows(drawing):
    return [path for path in drawing.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]


def boxes(drawing):
    """(x, y, right, bottom) of every label."""
    found = []
    for rect in drawing.iter(f"{SVG}rect"):
        if rect.get("class") == "label":
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def apart(found, width, height):
    """No two boxes meet, and all lie in the picture."""
    rows = {}
    for x, y, right, bottom in found:
        assert 0 <= x < right <= width and 0 <= y < bottom <= height
        rows.setdefault(y, []).append((x, right, bottom))
    for (_, row), below in zip(sorted(rows.items()), [*sorted(rows)[1:], float("inf")]):
        row.sort()
        assert all(right < x for (_, right, _), (x, _, _) in zip(row, row[1:]))
        assert all(bottom <= below for _, _, bottom in row)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_message_of_every_algorithm_is_an_arrow(name, size):
    for options in ALGORITHMS[name].variants(size):
        drawing = read(name, size, **options)
        messages = [message for _, _, group in states(name, size, **options) for message in group]
        kinds = Counter(path.get("class") for path in arrows(drawing))
        assert kinds == Counter("add" if message.reduce else "copy" for message in messages)
        apart(boxes(drawing), float(drawing.get("width")), float(drawing.get("height")))


@pytest.mark.parametrize("name", ["ring_all_reduce", "direct_all_reduce", "halving_doubling_all_reduce",
                                  "bruck_all_to_all", "binomial_gather"])
def test_labels_stay_apart_on_64_ranks(name):
    drawing = read(name, 64)
    assert boxes(drawing)
    apart(boxes(drawing), float(drawing.get("width")), float(drawing.get("height")))


def test_the_first_step_of_the_ring_is_drawn_as_the_article_tells_it():
    titles = [path.find(f"{SVG}title").text for path in arrows(read("ring_all_reduce", 4))]
    assert titles[:4] == ["A to B: 0, add", "B to C: 1, add", "C to D: 2, add", "D to A: 3, add"]
    assert titles[12:16] == ["A to B: 1, copy", "B to C: 2, copy", "C to D: 3, copy", "D to A: 0, copy"]


def test_arrows_go_down_from_the_sender_to_the_receiver():
    drawing = read("binomial_broadcast", 3, root=1)
    x = {text.text: float(text.get("x")) for text in drawing.iter(f"{SVG}text") if text.get("class") == "name"}
    for path in arrows(drawing):
        start, end = path.get("d")[1:].split("L")
        (x0, y0), (x1, y1) = (map(float, point.split()) for point in (start, end))
        said = path.find(f"{SVG}title").text
        assert abs(x0 - x[said[0]]) < 30 and abs(x1 - x[said[5]]) < 5 and y1 > y0 + 20


def test_add_and_copy_differ_in_more_than_colour_and_a_legend_explains_what_there_is():
    text = space_time("ring_all_reduce", 4)
    assert ".copy { stroke-dasharray" in text
    assert "added to what is there" in text and "copied in its place" in text
    assert "added to what is there" not in space_time("ring_all_gather", 4)


def test_a_screen_reader_hears_the_title_and_what_is_drawn():
    drawing = read("ring_all_reduce", 4)
    assert drawing.get("role") == "img"
    assert drawing.find(f"{SVG}title").text == "ring_all_reduce, 4 ranks"
    assert drawing.find(f"{SVG}desc").text.startswith("6 steps, 24 messages.")


def test_blocks_are_named_by_whose_they_are_and_for_whom():
    labels = [text.text for text in read("bruck_all_to_all", 4).iter(f"{SVG}text") if text.get("class") == "chunks"]
    assert labels[:2] == ["a1 a3", "b2 b0"] and labels[4:6] == ["a2 d2", "b3 a3"]


def luminance(code):
    parts = [int(code[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


@pytest.mark.parametrize("code", [*COLOURS, MIXED])
def test_colours_stand_out_from_white_as_letters_must(code):
    assert 1.05 / (luminance(code) + 0.05) >= 4.5  # WCAG 2.2, contrast (minimum)


def test_crowds_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="513 ranks: a diagram has room for 512"):
        space_time("ring_all_reduce", 513)
    with pytest.raises(ValueError, match="513 chunks: a diagram has room for 512; fewer segments"):
        space_time("chain_broadcast", 2, segments=513)
    monkeypatch.setattr("comm.space_time.MOST_MESSAGES", 111)
    with pytest.raises(ValueError, match="more than 111 messages, too many for a diagram; draw fewer ranks"):
        space_time("ring_all_reduce", 8)


def test_a_message_of_several_chunks_has_a_colour_of_its_own():
    assert colour((9,)) == COLOURS[1] and colour((1, 2)) == MIXED
