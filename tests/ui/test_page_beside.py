"""The Machine view of a launch that ran beside a kernel which waits for memory. A Jetson TX2 has
two SMs of 64 KB of shared memory, each of which holds one block of 48 KB (CUDA Programming Guide,
"Compute Capabilities", 6.2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

import warploom as wl
from warploom.ui.page import BUNDLE, export
from warploom.ui.shows import exported_show

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

SOURCE = """
extern "C" __global__ void waits(volatile int *flag) { while (*flag == 0) {} }
extern "C" __global__ void first(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
"""
KB_48 = 48 << 10


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    gpu = wl.Device("jetson-tx2")
    module, stream = gpu.compile(SOURCE), gpu.stream()
    flag, out = gpu.zeros(1, np.int32), gpu.zeros(128, np.int32)
    waiting = module["waits"][1, 96, stream, KB_48](flag)
    while not waiting.kernel.context.turn.has_waiting:
        time.sleep(0.002)
    trace = module["first"][4, 32].trace(out)  # without shared memory: blocks fit on both SMs
    flag.view[0] = 1
    stream.synchronize()
    file = tmp_path_factory.mktemp("beside") / "page.html"
    file.write_text(export(exported_show("first", ("first",)), [trace.to_bytes()]), "utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def opened(chromium: Any, address: str, scheme: str = "light", width: int = 1280) -> Any:
    page = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    ).new_page()
    page.goto(f"{address}#view=machine&step=2")
    page.wait_for_selector(".mp", state="attached")
    return page


def test_each_sm_shows_the_blocks_of_the_kernel_beside_the_launch(
    chromium: Any, address: str
) -> None:
    """The three warps of the block that waits on SM 0 have the first warp slots there. SM 1 has all
    32 block slots free, SM 0 one less: three blocks go to SM 1 and SM 0 in turn, from SM 1 on."""
    page = opened(chromium, address)
    cards = [" ".join(text.split()) for text in page.locator(".cards .sm").all_inner_texts()]
    assert len(cards) == 2
    assert cards[0].startswith("SM 0 1 block of waits, waiting")
    assert "waits" not in cards[1]
    assert "block 0" in cards[1]
    chosen = page.locator(".mp h3").inner_text()
    assert "SM 1 of" in chosen
    assert page.locator(".mp-other").count() == 0
    page.locator(".cards .sm:first-child button").first.click()
    assert "SM 0 of" in page.locator(".mp h3").inner_text()
    assert page.locator(".mp-other").count() == 3
    assert "waits" in page.locator(".mp-other").first.get_attribute("aria-label")


@pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    chromium: Any, address: str, scheme: str, width: int
) -> None:
    page = opened(chromium, address, scheme, width)
    page.locator(".cards .sm:first-child button").first.click()
    page.mouse.move(2, 2)
    page.keyboard.press("Escape")  # no tip
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert not [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
