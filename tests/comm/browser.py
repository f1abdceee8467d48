"""A real browser without a screen for tests of pages: the system's Chromium, driven by playwright.

Both are optional: where one is missing the tests skip and say which. playwright's own download of a browser is
never used.
"""

import re
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium():
    """A running browser; skips the test that asks for it where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on the path (Debian: apt install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, folder, **settings):
    """A page for the .html files of `folder`: page.show(name) goes to one.

    Raises AssertionError at the end if one asked for anything else, or complained on its console.
    """
    own = re.compile(re.escape(folder.as_uri()) + r"/[^/]*\.html")
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **settings)
    page, faults = context.new_page(), []
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: None if own.fullmatch(request.url) else faults.append(request.url))
    page.show = lambda name: page.goto((folder / f"{name}.html").as_uri())
    yield page
    context.close()
    assert faults == []
