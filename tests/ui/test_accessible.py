"""The page for everybody: axe finds nothing in any view, light or dark, and no view is wider than
the screen, from a phone to a large monitor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.ui.lessons import find_lesson, labels_of, requests_of
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show, live_show

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="axe-core is not installed"),
    pytest.mark.xdist_group("browser"),
]

FAULTY = "__global__ void k(int *out) { out[threadIdx.x] = 1; }"
RACING = """
__global__ void reverse(const int *in, int *out)
{
    __shared__ int kept[64];
    kept[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = kept[63 - threadIdx.x];
}
"""
"""Nothing orders the store of line 5 and the load of line 6 in another warp."""

KEYS_OF_VIEWS = {"memory": "1", "data": "2", "machine": "3", "numbers": "4"}
WIDTHS = (390, 800, 1280, 1920)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Exported pages by what they show: a comparison, modelled time, a fault."""
    folder = tmp_path_factory.mktemp("pages")
    found: dict[str, str] = {}
    for name in ("lock", "latency"):
        lesson = find_lesson(name)
        assert lesson is not None
        traces = [record(request).to_bytes() for request in requests_of(lesson)]
        show = exported_show(lesson.title, labels_of(lesson), lesson=lesson)
        (folder / name).with_suffix(".html").write_text(export(show, traces), "utf-8")
        found[name] = (folder / f"{name}.html").as_uri()
    reversing = ("in:i32[64]=arange", "out:i32[64]=zeros")
    race = LaunchRequest(
        name="reverse.cu", source=RACING, block="64", args=reversing, sanitize=("race",)
    )
    shown = exported_show("reverse.cu", ("reverse.cu",))
    (folder / "race.html").write_text(export(shown, [record(race).to_bytes()]), "utf-8")
    found["race"] = (folder / "race.html").as_uri()
    out = ("out:i32[40]=zeros",)
    trace = record(LaunchRequest(name="k.cu", source=FAULTY, block="64", args=out))
    (folder / "fault.html").write_text(
        export(exported_show("k", ("k",)), [trace.to_bytes()]), "utf-8"
    )
    return {**found, "fault": (folder / "fault.html").as_uri()}


def findings(page: Any) -> list[str]:
    """What axe finds on a page as it is now."""
    page.mouse.move(2, 2)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['nodes'][0]['target']} {one['nodes'][0].get('failureSummary', '')}"
        for one in found["violations"]
    ]


def opened(chromium: Any, address: str, scheme: str = "light", width: int = 1280) -> Any:
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".lanes", state="attached")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_comparison(
    chromium: Any, pages: dict[str, str], scheme: str
) -> None:
    page = opened(chromium, pages["lock"], scheme)
    page.locator(".question fieldset button").first.click()
    assert findings(page) == []
    for _ in range(3):
        page.keyboard.press("n")
    for view, key in KEYS_OF_VIEWS.items():
        page.keyboard.press(key)
        assert findings(page) == [], view
    for _ in range(3):
        page.keyboard.press("n")
    page.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Solution").click()
    page.keyboard.press("End")
    assert findings(page) == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_modelled_time_and_code(
    chromium: Any, pages: dict[str, str], scheme: str
) -> None:
    page = opened(chromium, pages["latency"], scheme)
    page.keyboard.press("n")
    page.keyboard.press("x")
    page.keyboard.press("5")
    assert page.locator("canvas.tracks").count() == 1
    assert findings(page) == []
    page.keyboard.press("3")
    assert page.locator(".roofline svg").count() == 1
    assert findings(page) == []
    page.keyboard.press("?")
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Projector").click()
    assert findings(page) == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_a_launch_failed(
    chromium: Any, pages: dict[str, str], scheme: str
) -> None:
    page = opened(chromium, pages["fault"], scheme)
    assert findings(page) == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_there_are_races(
    chromium: Any, pages: dict[str, str], scheme: str
) -> None:
    page = opened(chromium, pages["race"], scheme)
    assert page.locator(".findings").count() == 1
    for key in KEYS_OF_VIEWS.values():
        page.keyboard.press(key)
        assert findings(page) == [], key
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_live_page(chromium: Any, scheme: str) -> None:
    request = LaunchRequest(name="k.cu", source=FAULTY, block="32", args=("out:i32[40]=zeros",))
    viewer = Viewer(live_show("k", 1, request=request), [record(request).to_bytes()])
    urls: list[str] = []
    ready = threading.Event()

    def announced(url: str) -> None:
        urls.append(url)
        ready.set()

    threading.Thread(target=serve, args=(viewer, announced), daemon=True).start()
    assert ready.wait(10)
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, bypass_csp=True, color_scheme=scheme
    )
    page = context.new_page()
    page.goto(urls[0])
    page.wait_for_selector(".lanes")
    for key in ("l", "r", "e"):
        page.keyboard.press(key)
        assert findings(page) == [], key
        page.keyboard.press("Escape")
    page.context.close()


def test_a_fault_is_open_at_its_step(chromium: Any, pages: dict[str, str]) -> None:
    """Threads 40 to 63 write past the end: the page shows the message, the step, and where."""
    page = opened(chromium, pages["fault"])
    assert "Invalid __global__ write" in page.locator(".trouble").inner_text()
    assert "k.cu:1" in page.locator(".trouble pre").inner_text()
    assert "block 0, warp 1" in page.locator(".warp header").inner_text()
    assert "st.global" in page.locator(".warp .now").inner_text()
    assert page.locator(".lane.involved i").all_inner_texts() == ["8"]
    assert page.locator(".warp .legend li").last.inner_text().split() == ["faulted:", "lane", "8"]
    where = page.locator(".fault").inner_text()
    assert "Thread 40 of block 0 accessed the first byte after the end of out" in where
    assert "out[39] = " in page.locator(".cell output").inner_text()
    page.context.close()


def test_a_race_is_open_at_its_later_access(chromium: Any, pages: dict[str, str]) -> None:
    """Warp 0 runs first: lane 31 reads kept[32], which lane 0 of warp 1 stores later."""
    page = opened(chromium, pages["race"])
    assert "block 0, warp 1" in page.locator(".warp header").inner_text()
    assert "st.shared" in page.locator(".warp .now").inner_text()
    announced = page.locator(".findings").inner_text()
    assert "Race reported between Write access and Read access" in announced
    assert "Nothing orders the two accesses. Put __syncthreads() between them" in announced
    assert "Later: lane 0 of block 0, warp 1, line 5" in announced
    assert "Earlier: lane 31 of block 0, warp 0, line 6" in announced
    cell = page.locator(".cell output").inner_text()
    assert cell.startswith("kept[32] = 32 (before: 0) · written now by lane 0 of block 0, warp 1")
    assert "race: lane 0 of block 0, warp 1, line 5; lane 31 of block 0, warp 0, line 6" in cell
    assert involved(page) == [0]
    page.get_by_role("button", name="Earlier").click()
    assert "block 0, warp 0" in page.locator(".warp header").inner_text()
    assert "ld.shared" in page.locator(".warp .now").inner_text()
    assert involved(page) == [31]
    page.locator(".cell input").fill("0")
    assert "race" not in page.locator(".cell output").inner_text()
    page.context.close()


def involved(page: Any) -> list[int]:
    """Return the lanes that are marked as those of the finding."""
    lanes = page.locator(".lane").evaluate_all(
        "all => all.flatMap((one, lane) => one.classList.contains('involved') ? [lane] : [])"
    )
    return list(lanes)


def test_the_roofline_has_a_roof_for_each_memory(chromium: Any, pages: dict[str, str]) -> None:
    """The lesson's kernel adds what it loads from DRAM: FP32 under the roofs of L1, L2 and DRAM."""
    page = opened(chromium, pages["latency"])
    page.keyboard.press("3")
    rows = page.locator(".roofline th").all_inner_texts()
    assert {"L1", "DRAM"} <= set(rows)
    assert page.locator(".roofline .roof").count() == len(rows)
    assert "bound by memory" in page.locator(".roofline table").inner_text()
    page.context.close()


def test_integers_are_shown_in_full(chromium: Any, tmp_path: Path) -> None:
    source = "__global__ void k(int *out, float *x) { out[threadIdx.x] = 123456789; x[0] = 0.1f; }"
    arguments = ("out:i32[32]=zeros", "x:f32[1]=zeros")
    trace = record(LaunchRequest(name="k.cu", source=source, args=arguments))
    (tmp_path / "k.html").write_text(
        export(exported_show("k", ("k",)), [trace.to_bytes()]), "utf-8"
    )
    page = opened(chromium, (tmp_path / "k.html").as_uri())
    page.keyboard.press("2")
    page.keyboard.press("End")
    page.locator(".arrays button", has_text="out").click()
    assert "out[0] = 123456789 " in page.locator(".cell output").inner_text()
    page.locator(".arrays button", has_text="x").click()
    assert "x[0] = 0.1 " in page.locator(".cell output").inner_text()
    page.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_view_fits(chromium: Any, pages: dict[str, str], width: int) -> None:
    for name in pages:
        page = opened(chromium, pages[name], width=width)
        for key in (*KEYS_OF_VIEWS.values(), "5", "6", "7"):
            page.keyboard.press(key)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (name, key)
            cut = page.evaluate(CUT)
            assert cut == [], (name, key)
        page.context.close()


CUT = """() => [...document.querySelectorAll(
    'main, .left, .right, .single, .compare, .side, .below, .bottom')]
  .filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
  .map(one => `${one.className} ${one.scrollWidth} ${one.clientWidth}`)"""
"""Parts of the frame whose content is wider than they are."""
