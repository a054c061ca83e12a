"""What the page shows of a pipeline: copies in flight and mbarriers at a step, and copies over
modelled cycles. The kernel brings four tiles of 512 bytes into two places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in

from warploom.observe.trace import Trace
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.shows import exported_show

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PIPELINE = Path(__file__).parents[1] / "timing" / "pipeline.cu"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return record(
        LaunchRequest(
            name="pipeline.cu",
            source=PIPELINE.read_text("utf-8"),
            block="160",
            args=("f32[512]=ones", "f32[128]=zeros", "4"),
            options=("-DSTAGES=2", "-DBYTES=512", "-DSKIP=1"),
            timed=True,
        )
    )


@pytest.fixture(scope="module")
def page(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page, without modules of its own; an error that it writes fails the tests."""
    file = tmp_path_factory.mktemp("pages") / "pipeline.html"
    file.write_text(export(exported_show("pipeline", ("pipeline",)), [trace.to_bytes()]), "utf-8")
    tall = {"width": 1280, "height": 900}
    with launched() as browser, page_in(browser, viewport=tall) as made:
        made.goto(file.as_uri())
        made.wait_for_selector(".lanes")
        yield made


def at_step(page: Any, step: int) -> None:
    """Show a step and the machine view."""
    page.evaluate(f"location.hash = 'step={step}&warp=0&view=machine'")
    page.wait_for_timeout(200)


def table(page: Any, number: int) -> list[list[str]]:
    """Returns the rows of a table of what is in flight."""
    shown = page.locator(".in-flight > div").nth(number).locator("tbody tr")
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in shown.all()]


def column(trace: Trace, name: str) -> list[int]:
    assert trace.asynchronous is not None
    return np.frombuffer(getattr(trace.asynchronous.flights, name), "<u4").tolist()


def test_copies_and_mbarriers_at_a_step(page: Any, trace: Trace) -> None:
    """Behind the second copy, both places are being filled; here they come at once, so the phase of
    each has ended. When a warp has waited for the first one, the second is left."""
    issued, awaited = column(trace, "step"), column(trace, "until")
    at_step(page, issued[1])
    line = 1 + next(
        n
        for n, text in enumerate(PIPELINE.read_text("utf-8").splitlines())
        if "cp.async.bulk" in text
    )
    rows = table(page, 0)
    assert [row[0] for row in rows] == ["bulk copy"] * 2
    assert {row[1] for row in rows} <= {f"line {near}" for near in range(line - 3, line + 6)}
    assert [row[2:] for row in rows] == [["512", "full[0]"], ["512", "full[1]"]]
    assert table(page, 1) == [
        ["full[0]", "1", "1 of 1", "0"],
        ["full[1]", "1", "1 of 1", "0"],
        ["empty[0]", "0", "128 of 128", "0"],
        ["empty[1]", "0", "128 of 128", "0"],
    ]
    at_step(page, awaited[0])
    assert [row[3] for row in table(page, 0)] == ["full[1]"]
    at_step(page, awaited[-1])
    assert page.locator(".in-flight .empty").inner_text() == "Nothing is in flight."


def test_bytes_and_arrivals_that_are_pending(page: Any, trace: Trace) -> None:
    """Between the arrival that expects 512 bytes and the copy, these are pending; then the first of
    four warps has come to the empty one."""
    at_step(page, column(trace, "step")[0] - 1)
    assert table(page, 1)[0] == ["full[0]", "0", "0 of 1", "512"]
    arrivals = [
        n for n, code in enumerate(trace.code) if code.text.startswith("mbarrier.arrive.sh")
    ]
    steps = np.flatnonzero(np.isin(trace.columns["instruction"], arrivals))
    at_step(page, int(steps[0]))
    assert table(page, 1)[2] == ["empty[0]", "0", "96 of 128", "0"]


def test_a_step_leads_to_the_copy(page: Any, trace: Trace) -> None:
    at_step(page, column(trace, "step")[1] + 3)
    page.locator(".in-flight .link").first.click()
    page.wait_for_timeout(500)
    assert f"step={column(trace, 'step')[0]}&" in page.evaluate("location.hash")


def test_copies_over_modelled_cycles(page: Any, trace: Trace) -> None:
    assert trace.modelled is not None
    made = trace.modelled.copies
    assert made is not None
    assert made.count == 4
    since, until = (np.frombuffer(getattr(made, name), "<u8") for name in ("since", "until"))
    assert (until > since).all()
    page.keyboard.press("5")
    label = page.locator(".copies canvas").get_attribute("aria-label")
    assert "4 copies were in flight, at most 2 at the same time" in label
    assert f"for up to {int((until - since).max()):,} cycles each" in label


@pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("key", ["3", "5"])
def test_axe_finds_nothing(page: Any, trace: Trace, key: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    at_step(page, column(trace, "step")[1])
    page.keyboard.press(key)
    page.wait_for_timeout(200)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], one["nodes"][0]["target"]) for one in found["violations"]] == []
    page.set_viewport_size({"width": 390, "height": 844})
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert wide <= 390
