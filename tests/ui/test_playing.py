"""A launch of more than 10,000 steps plays (`benchmarks/page.py` measures how fast)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in

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


def test_ten_thousand_steps_play(tmp_path: Path) -> None:
    args = ("in:i32[64]=arange", "out:i32[64]=zeros")
    trace = record(LaunchRequest(name="laps.cu", source=SOURCE, block="64", args=args))
    assert trace.steps.count > 10_000
    file = tmp_path / "laps.html"
    file.write_text(export(exported_show("laps", ("laps",)), [trace.to_bytes()]), "utf-8")
    with launched() as chromium, page_in(chromium) as page:
        page.goto(file.as_uri())
        page.wait_for_selector(".lanes")
        page.locator(".speed select").select_option("60")
        page.get_by_role("button", name="Play").click()
        step = page.locator(".when b").first
        step.filter(has_text=re.compile(r"^[1-9],?\d\d")).wait_for()
