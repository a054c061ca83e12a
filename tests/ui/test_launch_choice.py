"""The choice among a program's launches in the page: each has its own trace, which is read when it
is chosen; the choice is in the URL, fits a phone, and axe finds nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.core.errors import WarploomError
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show, live_show

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

SOURCES = {
    "scale": "__global__ void scale(int *x) { x[threadIdx.x] *= 2; }",
    "turn": "__global__ void turn(int *x) { int v = x[63 - threadIdx.x]; x[threadIdx.x] = v; }",
}
NAMES = ("2: turn<<<1, 64>>>", "1: scale<<<1, 64>>>", "3: broken<<<1, 1>>>")
LABEL = "Launch of the program"


class RecordedWhenRead:
    """Traces that count how often each was read; the third cannot be recorded."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(NAMES)

    def __getitem__(self, number: int) -> bytes:
        self.read.append(number)
        if number == 2:
            raise WarploomError("the launch cannot be recorded here")
        name = ("turn", "scale")[number]
        args = ("x:i32[64]=arange",)
        asked = LaunchRequest(name=f"{name}.cu", source=SOURCES[name], block="64", args=args)
        return record(asked).to_bytes()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def opened(chromium: Any, address: str, scheme: str = "light", width: int = 1280) -> Any:
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".lanes", state="attached")
    return page


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pages") / "app.html"
    traces = RecordedWhenRead()
    show = exported_show("app", ("app",), launches=NAMES[:2])
    file.write_text(export(show, [traces[0], traces[1]]), "utf-8")
    return file.as_uri()


@pytest.fixture
def served() -> tuple[str, RecordedWhenRead]:
    """Returns where a server stands, and its traces."""
    addresses: list[str] = []
    ready, traces = threading.Event(), RecordedWhenRead()

    def listening(address: str) -> None:
        addresses.append(address)
        ready.set()

    viewer = Viewer(live_show("app", 1, launches=NAMES), traces)
    threading.Thread(target=serve, args=(viewer, listening), daemon=True).start()
    assert ready.wait(10)
    return addresses[0], traces


def heading(page: Any) -> str:
    return page.locator("h1").first.text_content().split("⟨")[0].strip()


def test_a_launch_is_recorded_when_it_is_chosen(
    chromium: Any, served: tuple[str, RecordedWhenRead]
) -> None:
    address, traces = served
    page = opened(chromium, address)
    choice = page.get_by_label(LABEL)
    assert choice.locator("option").all_text_contents() == list(NAMES)
    assert (heading(page), traces.read) == ("turn", [0])
    choice.select_option("1")
    page.wait_for_function("() => document.querySelector('h1').textContent.includes('scale')")
    assert traces.read == [0, 1]
    page.locator(".cm-content", has_text="x[threadIdx.x] *= 2").first.wait_for()
    page.wait_for_function("() => location.hash.includes('launch=1')")
    page.context.close()


def test_a_launch_that_cannot_be_recorded_leaves_the_one_that_is_shown(
    chromium: Any, served: tuple[str, RecordedWhenRead]
) -> None:
    page = opened(chromium, served[0])
    page.get_by_label(LABEL).select_option("2")
    page.wait_for_selector("[role=alert]")
    assert "the launch cannot be recorded here" in page.locator("[role=alert]").text_content()
    assert heading(page) == "turn"
    assert page.get_by_label(LABEL).input_value() == "0"
    page.context.close()


def test_a_link_opens_its_launch(chromium: Any, exported: str) -> None:
    page = opened(chromium, f"{exported}#launch=1&step=2&warp=0&view=data")
    assert heading(page) == "scale"
    assert page.get_by_label(LABEL).input_value() == "1"
    assert page.locator("[data-testid=position] b").inner_text() == "3"
    page.context.close()


@pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_choice_is_accessible_and_fits(
    chromium: Any, exported: str, width: int, scheme: str
) -> None:
    page = opened(chromium, exported, scheme, width)
    box = page.get_by_label(LABEL).bounding_box()
    assert 120 <= box["width"] <= width
    assert box["x"] + box["width"] <= width
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.get_by_label(LABEL).select_option("1")
    page.wait_for_function("() => document.querySelector('h1').textContent.includes('scale')")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert [one["id"] for one in found["violations"]] == []
    page.context.close()
