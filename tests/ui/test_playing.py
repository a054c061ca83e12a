"""A launch of more than 10,000 steps plays at the screen's own rate."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.shows import exported_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

SOURCE = """
__global__ void laps(const int *in, int *out)
{
    int i = threadIdx.x, value = in[i];
#pragma unroll 1
    for (int lap = 0; lap < 300; lap++)
        if ((value + lap) % 3 == 0)
            value += out[(value & 63)];
        else
            value = value * 3 + lap;
    out[i] = value;
}
"""

FRAMES = """async (count) => {
  const times = [];
  await new Promise((done) => {
    const next = (now) => { times.push(now); times.length > count ? done() : requestAnimationFrame(next); };
    requestAnimationFrame(next);
  });
  return times.slice(1).map((time, index) => time - times[index]);
}"""  # noqa: E501

SIXTIETH = 17
"""Milliseconds of a frame at 60 a second, rounded up."""


def test_ten_thousand_steps_play_at_60_frames_a_second(tmp_path: Path) -> None:
    args = ("in:i32[64]=arange", "out:i32[64]=zeros")
    trace = record(LaunchRequest(name="laps.cu", source=SOURCE, block="64", args=args))
    assert trace.steps.count > 10_000
    file = tmp_path / "laps.html"
    file.write_text(export(exported_show("laps", ("laps",)), [trace.to_bytes()]), "utf-8")
    with launched() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_selector(".lanes")
        page.locator(".speed select").select_option("60")
        page.get_by_role("button", name="Play").click()
        page.wait_for_timeout(300)
        before = int(page.locator(".when b").inner_text().replace(",", ""))
        frames = page.evaluate(FRAMES, 240)
        after = int(page.locator(".when b").inner_text().replace(",", ""))
    assert median(frames) <= SIXTIETH
    # Four seconds of 60 steps; the timer may be late where the computer is busy.
    assert after - before > 100
