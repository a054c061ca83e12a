"""All lessons watched from a server: where a lesson's film ends, the next one's begins."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched
from run_here import run_here

from warploom.ui import server
from warploom.ui.lessons import ORDER, find_lesson, requests_of
from warploom.ui.page import BUNDLE
from warploom.ui.progress import read_progress
from warploom.ui.record import record
from warploom.ui.schema import ALL
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import live_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]


def served(monkeypatch: pytest.MonkeyPatch, watch: str) -> str:
    """Return the URL of a server that shows the first lesson."""
    monkeypatch.setattr(server, "run", run_here)
    lesson = find_lesson(ORDER[0])
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    show = live_show("lessons", 1, request=lesson.request, lesson=lesson, watch=watch)
    urls: list[str] = []
    ready = threading.Event()

    def opened(url: str) -> None:
        urls.append(url)
        ready.set()

    threading.Thread(target=serve, args=(Viewer(show, traces), opened), daemon=True).start()
    assert ready.wait(10)
    return urls[0]


def to_the_end(page: Any) -> None:
    """Put the film of the lesson into its last second."""
    slider = page.get_by_role("slider", name="Time of the film")
    slider.fill(str(float(slider.get_attribute("max") or 0) - 0.3))
    if page.get_by_role("button", name="Watch").count():
        page.get_by_role("button", name="Watch").click()


def title_of(name: str) -> str:
    lesson = find_lesson(name)
    assert lesson is not None
    return lesson.title


@pytest.mark.parametrize("watch", [ALL, "whole"])
def test_the_next_lesson_begins_where_one_ends(
    watch: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path))
    with launched() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(served(monkeypatch, watch))
        heading = page.locator(".lesson h2")
        page.get_by_role("button", name="Pause").first.wait_for()
        assert heading.inner_text() == title_of(ORDER[0])
        page.locator(".question fieldset button").first.click()
        to_the_end(page)
        if watch == ALL:
            page.locator(".lesson h2", has_text=title_of(ORDER[1])).wait_for()
            page.get_by_role("button", name="Pause").first.wait_for()
        else:
            page.locator(".recap").wait_for()
            page.wait_for_timeout(800)
            assert heading.inner_text() == title_of(ORDER[0])
        assert read_progress()[ORDER[0]] == "read"
