"""The page of a timeline in a browser: which kernels have blocks on which SM at a chosen moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.report.timeline_page import timeline_page
from warploom.sanitize.stream_order import StreamOrder
from warploom.timing.timeline.schedule import DeviceLimits, schedule
from warploom.timing.timeline.work import Demand, Engine, TimelineWork

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four SMs that hold four blocks of a or two of b, which has what a leaves until that ends, at
    4 of 6 seconds."""
    order = StreamOrder()
    works = [
        TimelineWork(name, order.issue(name), Engine.SMS, Demand(4, (share,), block))
        for name, share, block in (("a<int>(int *)", 0.5, 1 / 16), ("b", 1.0, 1 / 8))
    ]
    shown = timeline_page("H100", schedule(works, DeviceLimits(128, 2, one_queue=False)), 4)
    file = tmp_path_factory.mktemp("timeline") / "page.html"
    file.write_text(shown, "utf-8")
    return file.as_uri()


def opened(chromium: Any, address: str, scheme: str = "light", width: int = 1280) -> Any:
    page = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    ).new_page()
    page.goto(address)
    return page


def cells(page: Any) -> list[str]:
    return [" ".join(text.split()) for text in page.locator("#sms li").all_inner_texts()]


def test_each_sm_shows_the_blocks_of_each_kernel_at_the_chosen_moment(
    chromium: Any, address: str
) -> None:
    page = opened(chromium, address)
    both = "2 blocks, stream 1 1 block, stream 2"
    assert cells(page) == [f"SM {sm} {both}" for sm in range(4)]
    assert "a<int>(int *), stream 1: 8 blocks resident" in page.locator("#kernels").inner_text()
    page.locator("#moment").focus()
    page.keyboard.press("ArrowRight")
    assert cells(page) == [f"SM {sm} 2 blocks, stream 2" for sm in range(4)]
    assert page.locator("#said").inner_text() == "4,000,000.0 to 6,000,000.0 us"
    # Pointing at the first bar chooses a moment within it.
    page.locator("svg g").first.hover()
    assert cells(page) == [f"SM {sm} {both}" for sm in range(4)]


@pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    chromium: Any, address: str, scheme: str, width: int
) -> None:
    page = opened(chromium, address, scheme, width)
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert not [one["id"] for one in found["violations"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
