"""Makes the pictures of docs/view.md: each view of the page, in Chromium.

python tools/screenshots.py
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from playwright.sync_api import Browser, sync_playwright

from warploom.ui.lessons import find_lesson, labels_of, requests_of
from warploom.ui.page import export
from warploom.ui.record import record
from warploom.ui.shows import exported_show

FOLDER = Path(__file__).parent.parent / "docs" / "images"


@dataclass(frozen=True)
class Picture:
    """A lesson, the keys to press, and how the page is looked at; `timed`: with modelled time."""

    name: str
    lesson: str
    keys: str
    size: tuple[int, int] = (1280, 720)
    scheme: str = "light"
    timed: bool = False


PICTURES = (
    Picture("warp", "branch", "n n n"),
    Picture("branch", "branch", "n"),
    Picture("data", "exchange", "n n"),
    Picture("code", "shuffle", "n n x", (1280, 720), "dark"),
    Picture("memory", "structures", "n"),
    Picture("banks", "banks", "n n", (1280, 900)),
    Picture("machine", "occupancy", "n n n"),
    Picture("numbers", "switch", "n n n n n", (1280, 800)),
    Picture("time", "reduction", "n n 5", (1280, 860), timed=True),
    Picture("timeline", "reduction", "n n", (1280, 720), "dark"),
    Picture("compare", "lock", "n n n", (1440, 900)),
    Picture("lesson", "lockstep", ""),
    Picture("task", "banks", "n n n n n", (1280, 860)),
    Picture("phone", "coalescing", "n n", (390, 844)),
    Picture("tablet", "coalescing", "n n", (800, 1000)),
    Picture("large", "banks", "n n", (1920, 1080)),
)


def main() -> None:
    """Take every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, picture)
        browser.close()


def take(browser: Browser, picture: Picture) -> None:
    """Open the lesson, press the keys, keep what is to be seen."""
    lesson = find_lesson(picture.lesson)
    assert lesson is not None
    requests = (replace(request, timed=picture.timed) for request in requests_of(lesson))
    traces = [record(request).to_bytes() for request in requests]
    show = exported_show(lesson.title, labels_of(lesson), lesson=lesson)
    width, height = picture.size
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(export(show, traces))
        page = browser.new_page(viewport={"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if picture.scheme == "dark" else "light")
        page.goto(file.as_uri())
        page.wait_for_selector(".tabs")
        for key in picture.keys.split():
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        page.screenshot(path=FOLDER / f"{picture.name}.png")
        page.close()


if __name__ == "__main__":
    main()
