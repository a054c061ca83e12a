"""A browser for the tests of the page, and what they read from the screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import pytest

REQUIRED = os.environ.get("WARPLOOM_BROWSER") == "required"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
NO_BROWSER = "there is no Chromium here: `apt-get install chromium`"
ARGUMENTS = ["--no-sandbox", "--disable-background-networking"]


@contextmanager
def launched() -> Generator[Any]:
    """Launches Chromium, and ends it."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Node.js, in which Playwright runs, does not start without a home folder.
            patch.setenv("HOME", os.environ.get("HOME", folder))
            playwright = stack.enter_context(sync_playwright())
        options = {"executable_path": BROWSER, "args": ARGUMENTS}
        yield stack.enter_context(playwright.chromium.launch(**options))


@contextmanager
def page_in(browser: Any, **options: Any) -> Generator[Any]:
    """Opens a page, and closes it; fails if an error was thrown in it meanwhile. `options` are
    those of Playwright's pages."""
    page = browser.new_page(**{"viewport": {"width": 1280, "height": 800}} | options)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


def lanes_in(page: Any, state: str, side: int = 0) -> int:
    """Returns the lanes that the page shows in a state, as a mask; of a comparison, those of a
    side."""
    shown = page.locator("section.warp").nth(side).locator(".lane")
    names = shown.evaluate_all("found => found.map(one => one.className)")
    assert len(names) == 32
    return sum(1 << lane for lane, name in enumerate(names) if f"is-{state}" in name.split())
