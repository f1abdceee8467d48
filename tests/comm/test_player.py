"""The page that plays an algorithm, clicked through in a real browser: it shows what `render.contents` says."""

import json
import re

import pytest

from comm.algorithms import ALGORITHMS
from comm.player import LIMIT, player, script
from comm.render import contents
from tests.comm.browser import chromium, opened

CASES = [("ring_all_reduce", 4, {}), ("recursive_doubling_all_reduce", 6, {}), ("binomial_broadcast", 5, {"root": 2}),
         ("bruck_all_to_all", 4, {}), ("chain_all_reduce", 3, {"segments": 2}), ("dissemination_barrier", 5, {})]
READ_TABLE = """() => [...document.querySelectorAll('#table tr')].slice(1)
    .map(row => [...row.querySelectorAll('td')].map(
        cell => cell.textContent.includes('...') ? cell.title : cell.textContent))"""
READ_PICTURE = """() => [...document.querySelectorAll('.rank')].map(rank =>
    [...rank.querySelectorAll('g')].map(cell => [cell.querySelector('title').textContent.split(': ')[1],
        +cell.dataset.held, cell.querySelector('path').getAttribute('d') !== '']))"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def play(browser, tmp_path):
    """play(name, size, **options): the open page, with its table unfolded; what moves is still by default."""
    pages = []

    def begin(name, size, reduced_motion="reduce", **options):
        (tmp_path / f"{name}.html").write_text(player(name, size, **options), encoding="utf-8")
        pages.append(opened(browser, tmp_path, reduced_motion=reduced_motion))
        page = pages[-1].__enter__()
        page.show(name)
        page.click("summary")
        return page
    yield begin
    for page in pages:
        page.__exit__(None, None, None)


def shows(page, step, expected):
    """Both the table and the picture show state `step` of contents; a cell is filled by all its summands."""
    page.wait_for_selector(f"body[data-step='{step}'][data-still='true']")
    cells = expected[step][1].tolist()
    assert page.evaluate(READ_TABLE) == cells
    picture = page.evaluate(READ_PICTURE)
    assert [[text for text, _, _ in rank] for rank in picture] == [
        ["nothing" if text == "-" else text for text in rank] for rank in cells]
    assert [[held for _, held, _ in rank] for rank in picture] == [
        [0 if text == "-" else text.count("+") + 1 for text in rank] for rank in cells]
    assert [[filled for _, _, filled in rank] for rank in picture] == [[text != "-" for text in rank] for rank in cells]


@pytest.mark.parametrize("name, size, options", CASES)
def test_clicking_forward_and_back_shows_what_every_rank_holds(name, size, options, play):
    page, expected = play(name, size, **options), contents(name, size, **options)
    shows(page, 0, expected)
    assert page.is_disabled("#back") and page.is_disabled("#first")
    for step in range(1, len(expected)):
        page.click("#forward")
        shows(page, step, expected)
        assert page.inner_text("#number") == f"Step {step} of {len(expected) - 1}"
        assert f"({page.inner_text('#verb')})" in expected[step][0]
    assert page.is_disabled("#forward") and page.is_disabled("#last")
    for step in reversed(range(len(expected) - 1)):
        page.click("#back")
        shows(page, step, expected)


def test_messages_fly_forwards_and_back_and_land(play):
    page, expected = play("ring_all_reduce", 4, reduced_motion="no-preference"), contents("ring_all_reduce", 4)
    page.select_option("#speed", "4")
    for button, step in (("#forward", 1), ("#forward", 2), ("#back", 1)):
        page.click(button)
        assert page.locator(".token").count() == 4
        shows(page, step, expected)
        assert page.locator(".token").count() == 0


def test_a_click_while_messages_fly_lands_them_first(play):
    page, expected = play("ring_all_reduce", 4, reduced_motion="no-preference"), contents("ring_all_reduce", 4)
    page.evaluate("for (const id of ['forward', 'forward', 'forward', 'back', 'forward']) $(id).click()")
    shows(page, 3, expected)


def test_playing_goes_to_the_end_and_begins_again_from_there(play):
    page, expected = play("ring_all_reduce", 3, reduced_motion="no-preference"), contents("ring_all_reduce", 3)
    page.select_option("#speed", "4")
    page.click("#play")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    shows(page, 4, expected)
    page.wait_for_selector("#play[aria-label=Play]")
    page.click("#play")
    page.wait_for_selector("body[data-step='1']")
    page.click("#play")
    shows(page, 1, expected)


def test_the_slider_first_last_and_keys_move_too(play):
    page, expected = play("halving_doubling_all_reduce", 8), contents("halving_doubling_all_reduce", 8)
    box = page.locator("#slider").bounding_box()
    middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 9, y)
    page.mouse.down()
    page.mouse.move(middle, y, steps=4)
    page.mouse.up()
    shows(page, 3, expected)
    page.click("#last")
    shows(page, 6, expected)
    page.click("#first")
    shows(page, 0, expected)
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6), ("ArrowRight", 6),
                      ("Home", 0)):
        page.keyboard.press(key)
        shows(page, step, expected)
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Play"


def test_sixty_four_ranks_step_by_step_and_from_far(play):
    page = play("recursive_doubling_all_gather", LIMIT)
    expected = contents("recursive_doubling_all_gather", LIMIT)
    for step in range(1, 7):
        page.click("#forward")
        shows(page, step, expected)
    page, expected = play("ring_all_reduce", LIMIT), contents("ring_all_reduce", LIMIT)
    page.evaluate("go(64)")
    shows(page, 64, expected)
    page.click("#last")
    shows(page, 126, expected)
    page.click("[data-rank='5']")
    assert page.inner_text("#panel h2") == "Rank F: sent 63/32 M"
    assert page.locator("#panel li").count() == 64


def test_every_algorithm_ends_in_the_browser_as_on_paper(browser, tmp_path):
    with opened(browser, tmp_path, reduced_motion="reduce") as page:
        for name, algorithm in ALGORITHMS.items():
            options = algorithm.variants(5)[-1]
            (tmp_path / f"{name}.html").write_text(player(name, 5, **options), encoding="utf-8")
            page.show(name)
            page.evaluate("$('details').open = true; $('last').click()")
            expected = contents(name, 5, **options)
            shows(page, len(expected) - 1, expected)


@pytest.mark.parametrize("size", [1, 2, 7, 12, 13])
def test_cards_lie_inside_the_picture_and_apart(size, play):
    page = play("ring_all_reduce", size)
    boxes = page.evaluate("[...document.querySelectorAll('.card')].map(c => { const b = c.getBoundingClientRect();"
                          " return [b.left, b.top, b.right, b.bottom]; })")
    stage = page.locator("#stage").bounding_box()
    assert len(boxes) == size
    for left, top, right, bottom in boxes:
        assert stage["x"] <= left < right <= stage["x"] + stage["width"]
        assert stage["y"] <= top < bottom <= stage["y"] + stage["height"] + 1
    for i, (left, top, right, bottom) in enumerate(boxes if size < 13 else []):
        for other in boxes[:i]:
            assert left > other[2] or right < other[0] or top > other[3] or bottom < other[1]


def test_amounts_are_parts_of_a_message_or_bytes(play):
    page = play("ring_all_reduce", 4)
    page.click("#forward")
    assert page.inner_text("#sent") == "4 messages, 1/4 M from a rank; so far 1/4 M"
    page = play("ring_all_reduce", 64, bytes=350_000_000_000)
    page.click("#last")
    assert page.inner_text("#sent").endswith("so far 689.1 GB")  # FACTS F35


def test_space_presses_the_button_that_has_the_focus_and_plays_otherwise(play):
    page = play("ring_all_reduce", 4)
    page.focus("#forward")
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-step='1']")
    assert page.get_attribute("#play", "aria-label") == "Play"
    page.click("#forward")                             # a mouse leaves no focus behind
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Pause"


def test_one_rank_has_nothing_to_play(play):
    page = play("ring_all_reduce", 1)
    assert page.inner_text("#number") == "Nothing to do"
    assert all(page.is_disabled(f"#{name}") for name in ("first", "back", "play", "forward", "last", "slider"))
    shows(page, 0, contents("ring_all_reduce", 1))


def test_a_chosen_rank_stands_out_with_its_messages(play):
    page = play("ring_all_reduce", 4)
    page.click("#forward")
    page.click("[data-rank='2'] .name")
    assert page.locator(".route.faded").count() == 2 and page.locator(".route:not(.faded)").count() == 2
    page.click("[data-rank='2'] .name")
    assert page.locator(".route.faded").count() == 0


def test_everything_can_be_reached_and_read_without_a_mouse(play):
    page = play("ring_all_reduce", 3)
    for role, name in (("button", "First"), ("button", "Step back"), ("button", "Play"), ("button", "Step forward"),
                       ("button", "Last"), ("slider", "Step"), ("combobox", "Speed"), ("status", None)):
        assert page.get_by_role(role, name=name, exact=name is not None).count() >= 1
    assert page.get_attribute("[data-rank='1']", "aria-label") == "Rank B holds b0, b1, b2"
    page.focus("[data-rank='1']")
    page.keyboard.press("Enter")
    assert "chosen" in page.get_attribute("[data-rank='1']", "class")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_page_holds_every_message_of_every_algorithm(name, size):
    for options in ALGORITHMS[name].variants(size):
        played, expected = script(name, size, **options), contents(name, size, **options)
        assert json.loads(json.dumps(played))["start"] == expected[0][1].tolist()
        assert len(played["steps"]) == len(expected) - 1
        cells = expected[0][1].copy()
        for step, (_, after) in zip(played["steps"], expected[1:]):
            then = cells.copy()
            for source, to, sent, landed, reduce in step["moves"]:
                for slot, place in zip(sent, landed or sent):
                    came = then[source, slot]
                    cells[to, place] = f"{cells[to, place]}+{came}" if reduce else came
            same = cells == after
            assert same.all() or played["once"]


def test_the_page_is_one_file_that_names_nothing_outside():
    page = player("ring_all_reduce", 4)
    found = set(re.findall(r"[a-z]+://[^\"' )]+", page))
    assert found == {"http://www.w3.org/2000/svg"}  # a name of XML, never fetched
    assert not re.search(r"<link[^>]*href=\"(?!data:,)|<script[^>]*src|@import|url\((?!#)", page)


def test_more_ranks_than_a_circle_shows_are_refused():
    with pytest.raises(ValueError, match="65 ranks: a page plays at most 64"):
        player("ring_all_reduce", 65)
    with pytest.raises(ValueError, match="129 chunks: a page shows at most 128; fewer segments"):
        player("chain_broadcast", 2, segments=129)
