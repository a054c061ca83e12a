"""Makes the pictures of the documentation: each view of the page, in Chromium. The picture `simt`
is the explainer as a moving picture, which also needs ffmpeg.

python tools/screenshots.py [NAME ...]
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, sync_playwright

from warploom.observe.trace import Trace
from warploom.ui.explainer import explainer_show, recorded_explainer
from warploom.ui.film import write_gif
from warploom.ui.lessons import find_lesson, labels_of, requests_of
from warploom.ui.page import export
from warploom.ui.record import record
from warploom.ui.schema import CUT, LaunchRequest, Show
from warploom.ui.shows import exported_show

FOLDER = Path(__file__).parent.parent / "docs" / "images"


@dataclass(frozen=True)
class Picture:
    """A lesson, the keys to press, and how the page is looked at. `timed`: with modelled time;
    `checked`: with the findings of the sanitizer, and without the lesson. Without a lesson, a
    launch of LAUNCHES, at the step that is the `nth` with PTX that begins with `step`."""

    name: str
    lesson: str
    keys: str
    size: tuple[int, int] = (1280, 720)
    scheme: str = "light"
    timed: bool = False
    checked: bool = False
    launch: str = ""
    step: str = ""
    nth: int = 0


COPY = "cp.async.bulk"

PICTURES = (
    Picture("warp", "branch", "n n n"),
    Picture("branch", "branch", "n"),
    Picture("data", "exchange", "n n"),
    Picture("code", "shuffle", "n n x", (1280, 720), "dark"),
    Picture("memory", "structures", "n"),
    Picture("banks", "banks", "n n", (1280, 900)),
    Picture("machine", "occupancy", "n n n", (1280, 900), timed=True),
    Picture("numbers", "switch", "n n n n n", (1280, 800)),
    Picture("time", "reduction", "n n 5", (1280, 860), timed=True),
    Picture("timeline", "reduction", "n n", (1280, 720), "dark"),
    Picture("compare", "lock", "n n n", (1440, 900)),
    Picture("finding", "exchange", "", (1280, 860), checked=True),
    Picture("in-flight", "", "3", (1280, 900), launch="pipeline", step=COPY, nth=3),
    Picture("copies", "", "5", (1280, 1040), launch="pipeline", step=COPY, nth=3),
    Picture("saxpy", "", "6", (1280, 720), launch="saxpy", step="@%p1 bra", nth=-1),
    Picture("lesson", "lockstep", ""),
    Picture("task", "banks", "n n n n n", (1280, 860)),
    Picture("home-memory", "structures", "n 1", (600, 520)),
    Picture("home-race", "exchange", "2", (600, 520), checked=True),
    Picture("home-time", "reduction", "5", (600, 520), timed=True, checked=True),
    Picture("phone", "coalescing", "n n", (390, 844)),
    Picture("tablet", "coalescing", "n n", (800, 1000)),
    Picture("large", "banks", "n n", (1920, 1080)),
)

SAXPY = """\
__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
"""The first kernel of docs/tutorial.md."""

LAUNCHES = {
    "saxpy": LaunchRequest(
        name="saxpy.cu",
        source=SAXPY,
        grid="4",
        block="256",
        args=("1000", "2.0", "x:f32[1000]=arange", "y:f32[1000]=ones"),
    ),
    "pipeline": LaunchRequest(
        name="pipeline.cu",
        source=(FOLDER.parents[1] / "tests" / "timing" / "pipeline.cu").read_text("utf-8"),
        block="160",
        args=("f32[8192]=ones", "f32[128]=zeros", "16"),
        options=("-DSTAGES=4", "-DBYTES=2048", "-DSKIP=1"),
        timed=True,
    ),
}
"""Launches that are no lessons; the pipeline is one of copies."""

SHEETS = ((390, 844), (800, 1000), (1280, 800), (1920, 1080))
"""Sizes at which all views are shown beside each other."""

VIEWS = {"Memory": "1", "Data": "2", "Machine": "3", "Numbers": "4", "Time": "5", "Warp": "6"}
"""Views and their keys; the last one, the code, is beside each of them from 800 pixels on."""

SHEET_STYLE = """<style>
body { display: grid; grid-template-columns: repeat(%d, 1fr); gap: 10px; margin: 10px;
  font: 13px sans-serif }
figure { margin: 0 }
img { width: 100%%; border: 1px solid #888 }
</style>"""

THUMB = 640
"""Pixels by which a view is wide on a sheet."""


def main() -> None:
    """Take every picture, or those that are named."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    named = set(sys.argv[1:])
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for picture in PICTURES:
            if not named or picture.name in named:
                take(browser, picture)
        for size in SHEETS:
            if not named or "sheets" in named:
                take_sheet(browser, size)
        browser.close()
    if not named or "simt" in named:
        explained, traces = recorded_explainer()
        write_gif(FOLDER / "simt.gif", explainer_show(explained, watch=CUT), traces)


def take(browser: Browser, picture: Picture) -> None:
    """Open the lesson or the launch, press the keys, keep what is to be seen."""
    page = opened(browser, picture) if picture.lesson else opened_launch(browser, picture)
    press(page, picture.keys)
    page.screenshot(path=FOLDER / f"{picture.name}.png")
    page.close()


def take_sheet(browser: Browser, size: tuple[int, int]) -> None:
    """Keep every view at one size, beside each other."""
    views = {**VIEWS, "Code": "7"} if size[0] < 800 else VIEWS
    page = opened(browser, Picture("", "latency", "n n n", size, timed=True, checked=True))
    press(page, "Home " + "ArrowRight " * 24)
    parts: list[str] = []
    for name, key in views.items():
        press(page, key)
        taken = base64.b64encode(page.screenshot()).decode()
        parts.append(f"<figure>{name}<br><img src='data:image/png;base64,{taken}'></figure>")
    page.close()
    columns, wide = (len(views), THUMB // 2) if size[0] < 800 else (3, THUMB)
    sheet = browser.new_page(viewport={"width": columns * wide + 40, "height": 100})
    sheet.set_content(f"{SHEET_STYLE % columns}{''.join(parts)}")
    sheet.screenshot(path=FOLDER / f"views-{size[0]}.png", full_page=True)
    sheet.close()


def opened(browser: Browser, picture: Picture) -> Page:
    """Return a page with the launches of a picture's lesson."""
    lesson = find_lesson(picture.lesson)
    assert lesson is not None
    tools = ("race",) if picture.checked else ()
    requests = [
        replace(request, timed=picture.timed or request.timed, sanitize=tools)
        for request in requests_of(lesson)
    ]
    traces = [record(request) for request in requests]
    taught = None if picture.checked else lesson
    show = exported_show(lesson.title, labels_of(lesson), lesson=taught)
    return shown_page(browser, picture, show, traces)


def shown_page(browser: Browser, picture: Picture, show: Show, traces: Sequence[Trace]) -> Page:
    """Return a page that shows these traces."""
    width, height = picture.size
    page = browser.new_page(viewport={"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if picture.scheme == "dark" else "light")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(export(show, [trace.to_bytes() for trace in traces]), "utf-8")
        page.goto(file.as_uri())
        page.wait_for_selector(".tabs")
    return page


def opened_launch(browser: Browser, picture: Picture) -> Page:
    """Return a page with a picture's launch, at its step."""
    request = LAUNCHES[picture.launch]
    trace = record(request)
    instruction = next(n for n, c in enumerate(trace.code) if c.text.startswith(picture.step))
    steps = np.flatnonzero(trace.columns["instruction"] == instruction)
    step = int(steps[picture.nth])
    page = shown_page(browser, picture, exported_show(request.name, (request.name,)), [trace])
    warp = int(trace.columns["warp"][step])
    page.evaluate(f"location.hash = 'step={step}&warp={warp}&view=machine'")
    return page


def press(page: Page, keys: str) -> None:
    """Press keys, and wait until the page has been drawn."""
    for key in keys.split():
        page.keyboard.press(key)
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
