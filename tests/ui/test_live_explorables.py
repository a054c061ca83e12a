"""Explorables with a server: what is counted for values that were not recorded follows from the
kernel by hand, the server refuses other values, and the page goes on where the server ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import msgspec
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched, page_in

from warploom.core.errors import WarploomError
from warploom.ui.explorables import (
    EXPLORABLES,
    explorable_of,
    explorable_show,
    read_explorable,
    request_of_values,
)
from warploom.ui.explorables.recorded import explore, recorded_explorable
from warploom.ui.page import BUNDLE
from warploom.ui.runner import Limits
from warploom.ui.schema import Explored, ExploreRequest, LaunchRequest, Refusal
from warploom.ui.server import Viewer, ViewServer, serve
from warploom.ui.worker_runner import Worker, WorkerPair

pytestmark = pytest.mark.xdist_group("browser")
in_a_browser = pytest.mark.skipif(
    (not BROWSER or not BUNDLE.exists()) and not REQUIRED, reason=NO_BROWSER
)

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
MEMORY = 1 << 30
ENDLESS = "__global__ void k(volatile int *x) { while (x[0] == 0) x[1] += 1; }"


def counted(name: str, *values: str) -> float:
    return explore(ExploreRequest(name, values), MEMORY).curve


# ---- what is counted -----------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [9, 21, 33, 64])
def test_every_stride_costs_the_sectors_that_its_addresses_touch(stride: int) -> None:
    touched = len({4 * stride * lane // 32 for lane in range(32)})
    assert counted("stride", str(stride)) == touched


@pytest.mark.parametrize("pitch", [47, 72, 80, 96])
def test_every_pitch_costs_its_common_divisor_with_the_banks(pitch: int) -> None:
    assert counted("padding", str(pitch)) == gcd(pitch, 32)


@pytest.mark.parametrize(("x", "y"), [(24, 10), (5, 7), (37, 8)])
def test_every_block_costs_the_sectors_of_its_first_warp(x: int, y: int) -> None:
    places = [(thread % x, thread // x) for thread in range(32)]
    expected = len({4 * (64 * row + column) // 32 for column, row in places})
    assert counted("block-shape", f"{x},{y}") == expected


@pytest.mark.parametrize("number", [3, 5, 31])
def test_the_counter_that_most_lanes_share_counts(number: int) -> None:
    assert counted("atomics", str(number)) == -(-32 // number)


def test_a_single_lane_on_either_side_costs_both_loops() -> None:
    assert counted("taken", "3", "v100") == counted("taken", "29", "v100")


@pytest.mark.parametrize("name", EXPLORABLES)
def test_each_has_a_slider_whose_recorded_values_are_in_its_range(name: str) -> None:
    sliders = [one for one in read_explorable(name).controls if one.ranges]
    assert sliders
    for control in sliders:
        for value in control.values:
            for part, one in zip(value.split(","), control.ranges, strict=True):
                assert int(part) in range(one.least, one.most + 1, one.step)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("stride", ("65",)),
        ("stride", ("-1",)),
        ("stride", ("1.5",)),
        ("stride", ("01",)),
        ("stride", ("1", "2")),
        ("stride", ()),
        ("warps", ("33",)),
        ("block-shape", ("8",)),
        ("block-shape", ("8,8,8",)),
        ("taken", ("3", "h100")),
        ("stages", ("1 -include /etc/passwd",)),
    ],
)
def test_other_values_are_refused(name: str, values: tuple[str, ...]) -> None:
    with pytest.raises(WarploomError, match=r"it can be|needs"):
        request_of_values(ExploreRequest(name, values))


# ---- the process that stays between runs ---------------------------------------------------------


def test_a_process_runs_one_launch_after_the_other_and_ends_with_the_one_that_is_late() -> None:
    endless = LaunchRequest(name="k.cu", source=ENDLESS, args=("i32[2]=zeros",), device="v100")

    async def worked() -> list[bytes | Refusal]:
        worker = Worker(Limits(seconds=6))
        try:
            strides = [worker.run(ExploreRequest("stride", (value,))) for value in ("3", "7")]
            return [await strides[0], await worker.run(endless), await strides[1]]
        finally:
            await worker.end()

    first, late, second = asyncio.run(worked())
    assert isinstance(late, Refusal)
    assert late.kind == "time"
    for answer, sectors in ((first, 12), (second, 28)):
        assert isinstance(answer, bytes)
        assert msgspec.msgpack.decode(answer, type=Explored).curve == sectors


def test_a_run_whose_client_has_left_ends() -> None:
    endless = LaunchRequest(name="k.cu", source=ENDLESS, args=("i32[2]=zeros",), device="v100")

    async def worked() -> bytes | Refusal:
        worker = Worker(Limits(seconds=300))
        running = asyncio.create_task(worker.run(endless))
        waiting = asyncio.create_task(worker.run(endless))
        await asyncio.sleep(2)
        for task in (waiting, running):
            task.cancel()
            await asyncio.wait((task,))
        try:
            return await asyncio.wait_for(worker.run(ExploreRequest("stride", ("3",))), 60)
        finally:
            await worker.end()

    assert isinstance(asyncio.run(worked()), bytes)


def test_a_launch_does_not_wait_for_one_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warploom.ui.worker_runner.usable_cores", lambda: 2)
    endless = LaunchRequest(name="k.cu", source=ENDLESS, args=("i32[2]=zeros",), device="v100")

    async def worked() -> list[bytes | Refusal]:
        pair = WorkerPair(Limits(seconds=300))
        running = None
        try:
            first = await pair.run(ExploreRequest("stride", ("3",)))
            assert pair.warmup is not None
            repeated = await pair.warmup
            running = asyncio.create_task(pair.run(endless))
            await asyncio.sleep(0)
            beside = await asyncio.wait_for(pair.run(ExploreRequest("stride", ("7",))), 60)
            assert not running.done()
            return [first, repeated, beside]
        finally:
            if running is not None:
                running.cancel()
            await pair.end()

    for answer, sectors in zip(asyncio.run(worked()), (12, 12, 28), strict=True):
        assert isinstance(answer, bytes)
        assert msgspec.msgpack.decode(answer, type=Explored).curve == sectors


# ---- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def viewer_of(name: str) -> Viewer:
    launches = recorded_explorable(name)
    show = explorable_show(explorable_of(name, launches, live=True))
    return Viewer(show, [launch.trace for launch in launches])


def served(viewer: Viewer) -> str:
    urls: Queue[str] = Queue()
    threading.Thread(target=serve, args=(viewer, urls.put), daemon=True).start()
    return urls.get(timeout=20)


def test_only_the_explorable_that_is_shown_is_run() -> None:
    viewer = viewer_of("atomics")

    async def asked(content: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=viewer.app(4711))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:4711"
        ) as client:
            headers = {"X-Warploom-Token": viewer.token}
            try:
                return await client.post("/explore", content=content, headers=headers)
            finally:
                await viewer.close()

    other = asyncio.run(asked('{"explorable": "stride", "values": ["3"]}'))
    assert other.status_code == 404
    wrong = asyncio.run(asked('{"explorable": "atomics", "values": ["33"]}'))
    assert wrong.status_code == 422
    assert "counters cannot be 33: it can be 1 to 32" in wrong.json()["message"]
    assert asyncio.run(asked('{"explorable": "atomics"}')).status_code == 422


def slide(page: Any, value: int, slider: int = 0) -> None:
    page.locator(".control input").nth(slider).fill(str(value))


def shown(page: Any, figure: str) -> None:
    """Wait until the launch with the chosen values is shown, and its figure."""
    page.locator(".counted:not(.late)", has_text=figure).wait_for()


@in_a_browser
def test_a_slider_takes_every_value_and_the_page_says_where_it_is_from(chromium: Any) -> None:
    with page_in(chromium) as page:
        page.goto(served(viewer_of("stride")))
        page.get_by_text("Recorded beforehand").wait_for()
        slide(page, 21)
        page.get_by_text("Run on the server for").wait_for()
        assert page.locator(".counted").inner_text().startswith("sectors: 32;")
        # A link leads to the same value.
        page.wait_for_url("**values=21*")
        page.goto("about:blank")
        page.go_back()
        page.get_by_text("stride: 21").wait_for()


@in_a_browser
def test_two_sliders_combine_and_a_block_has_its_limit(chromium: Any) -> None:
    with page_in(chromium) as page:
        page.goto(served(viewer_of("block-shape")))
        page.get_by_text("block x").wait_for()
        slide(page, 24)
        slide(page, 10, 1)
        shown(page, "sectors: 4;")
        page.get_by_role("heading", name="part").get_by_text("24\u00d710").wait_for()
        slide(page, 200, 1)
        refused = page.locator(".origin.refused")
        refused.wait_for()
        assert "1024" in refused.inner_text().replace(",", "")
        slide(page, 8, 1)
        refused.wait_for(state="detached")


@in_a_browser
def test_a_live_page_is_for_everybody(chromium: Any) -> None:
    """Two sliders, and a block that is too large: nothing that axe finds, also on a phone, and all
    of it with the keyboard."""
    url = served(viewer_of("block-shape"))
    for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
        context = chromium.new_context(
            viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True
        )
        page = context.new_page()
        page.goto(url)
        page.get_by_text("block x").wait_for()
        for slider, key in ((0, "ArrowRight"), (1, "ArrowLeft"), (1, "End")):
            page.locator(".control input").nth(slider).press(key)
        page.locator(".origin.refused").wait_for()
        over = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(over) <= 0
        if AXE.exists():
            page.evaluate(AXE.read_text("utf-8"))
            found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
            assert [(one["id"], one["nodes"][0]["target"]) for one in found["violations"]] == []
        context.close()


@in_a_browser
def test_a_drag_runs_what_it_ends_with_and_not_all_that_it_passes(chromium: Any) -> None:
    with page_in(chromium) as page:
        page.goto(served(viewer_of("padding")))
        page.get_by_text("Recorded beforehand").wait_for()
        slide(page, 33)
        shown(page, "passes of one read: 1")
        asked: list[Any] = []
        page.on("request", lambda request: "explore" in request.url and asked.append(request))
        page.evaluate(
            """() => {
              const slider = document.querySelector(".control input");
              for (let value = 34; value <= 96; value++) {
                slider.value = value;
                slider.dispatchEvent(new InputEvent("input", { bubbles: true }));
              }
            }"""
        )
        shown(page, "passes of one read: 32")
        values = [request.post_data_json["values"] for request in asked]
        assert ["96"] in values
        assert len(values) < 20


@in_a_browser
def test_the_recorded_values_remain_without_the_server(
    chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers: list[ViewServer] = []
    begin = ViewServer.run

    def noted(self: ViewServer, sockets: Any = None) -> None:
        servers.append(self)
        begin(self, sockets)

    monkeypatch.setattr(ViewServer, "run", noted)
    with page_in(chromium) as page:
        page.goto(served(viewer_of("atomics")))
        page.wait_for_load_state("networkidle")
        slide(page, 7)
        page.get_by_text("Run on the server for").wait_for()
        servers[0].should_exit = True
        page.wait_for_timeout(2500)
        page.locator(".control input").first.fill("31")
        page.get_by_text("The server does not answer").wait_for()
        page.get_by_text("counters: 32").wait_for()
        assert page.locator(".counted").inner_text().endswith(": 1")
        page.locator(".control input").first.press("Home")
        page.get_by_text("counters: 1", exact=True).wait_for()
        assert page.locator(".counted").inner_text().endswith(": 32")
