"""The lessons that ask for a part of a multiprocessor, for everybody: with the keyboard, at the
width of a phone and of a screen, light and dark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import msgspec
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.host.programs.confinement import Confinement
from warploom.ui import server
from warploom.ui.child import Requested
from warploom.ui.lessons import find_lesson, lessons, requests_of
from warploom.ui.page import BUNDLE
from warploom.ui.record import record
from warploom.ui.runner import Limits
from warploom.ui.schema import Judged, Ranking, Score, Verdict
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import live_show

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
NAMES = [one.id for one in lessons() if one.task and one.task.design]

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed"),
    pytest.mark.xdist_group("browser"),
]

KERNELS = ("matmul_tiled", "blur_loads", "transpose_naive", "mandelbrot", "reduce")


def verdict(passed: bool) -> Verdict:
    """Returns a verdict, as grading gives it in some seconds."""
    scores = [Score("known", (10_857, 4_226, 11_735, 12_047, 3_094), 1.0)]
    scores.append(Score("yours", (10_759, 3_871, 10_456, 11_505, 2_933), 0.94))
    checks = (Judged("better than known", passed, "0.940; known: 1.000"),)
    ranking = Ranking(KERNELS, "modelled cycles", tuple(reversed(scores)), 0)
    return Verdict(lesson="", passed=passed, checks=checks, ranking=ranking)


async def graded(asked: Requested, limits: Limits, confinement: Confinement) -> bytes:
    """Answers in the place of the process that grades."""
    return msgspec.json.encode(verdict(passed=False))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def served(name: str) -> str:
    lesson = find_lesson(name)
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    viewer = Viewer(live_show(name, 1, request=lesson.request, lesson=lesson), traces)
    urls: Queue[str] = Queue()
    threading.Thread(target=serve, args=(viewer, urls.put), daemon=True).start()
    return urls.get(timeout=20)


def findings(page: Any) -> list[str]:
    """Returns what axe finds on a page as it is now, and whether it is wider than the screen."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    shown = [f"{one['id']}: {one['nodes'][0]['target']}" for one in found]
    over = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return [*shown, *(["wider than the screen"] if over > 0 else [])]


@pytest.mark.parametrize("name", NAMES)
def test_a_design_is_written_and_graded_by_everybody(
    chromium: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "run", graded)
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path))
    url = served(name)
    lesson = find_lesson(name)
    assert lesson is not None
    for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
        context = chromium.new_context(
            viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True
        )
        page = context.new_page()
        page.goto(url)
        page.locator(".question").wait_for()
        assert findings(page) == [], (width, scheme, "question")
        for _ in range(len(lesson.captions) + 1):
            page.keyboard.press("n")
        write = page.get_by_role("button", name="Write the")
        write.focus()
        page.keyboard.press("Enter")
        page.locator(".policy .cm-content[contenteditable=true]").wait_for()
        assert findings(page) == [], (width, scheme, "task")
        page.keyboard.press("Control+Enter")
        page.locator(".checks[data-passed=no]").wait_for()
        page.get_by_role("cell", name="10,759").wait_for(state="attached")
        assert findings(page) == [], (width, scheme, "ranking")
        context.close()
