"""The page in a real browser: what it shows is what the trace holds, and everything can be done
with the keyboard. Where there is no browser, these are skipped, unless one is required."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED, launched

from warploom.observe.schema import DIVERGED, MET
from warploom.observe.trace import Trace
from warploom.timing.traced import COLUMNS
from warploom.ui.lessons import ORDER, find_lesson, labels_of, requests_of
from warploom.ui.page import BUNDLE, export
from warploom.ui.record import record
from warploom.ui.runner import Limits
from warploom.ui.schema import LaunchRequest
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show, live_show

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]

SOURCE = """// </script><img src=x onerror="document.title='taken'"> a comment, not markup
__global__ void halves(int *out)
{
    int lane = threadIdx.x, value = lane;
    if (lane < 16) {
#pragma unroll 1
        for (int i = 0; i < 3; i++) value = value * 3 + 1;
    } else {
#pragma unroll 1
        for (int i = 0; i < 3; i++) value = value * 5 + 7;
    }
    out[lane] = value;
}
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that fails its test where anything is written to the console as an error."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    made.expected_errors = []
    yield made
    context.close()
    assert [text for text in wrong if not any(e in text for e in made.expected_errors)] == []


@pytest.fixture(scope="module")
def asked() -> LaunchRequest:
    return LaunchRequest(
        name="halves.cu", source=SOURCE, args=("i32[32]=zeros",), device="gtx-1080"
    )


@pytest.fixture(scope="module")
def trace(asked: LaunchRequest) -> Trace:
    return record(asked)


@pytest.fixture(scope="module")
def exported(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pages") / "halves.html"
    file.write_text(export(exported_show("halves", ("halves",)), [trace.to_bytes()]), "utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def url(asked: LaunchRequest, trace: Trace) -> str:
    """Where a server stands."""
    output: list[str] = []
    ready = threading.Event()

    def opened(address: str) -> None:
        output.append(address)
        ready.set()

    given = live_show("halves.cu", 1, request=asked)
    viewer = Viewer(given, [trace.to_bytes()], Limits(seconds=6))
    threading.Thread(target=serve, args=(viewer, opened), daemon=True).start()
    assert ready.wait(10)
    return output[0]


def show(page: Any, address: str) -> None:
    """Go to a page and wait until it shows its trace."""
    page.goto(address)
    page.wait_for_selector(".lanes")


def lanes(page: Any, kind: str) -> int:
    """The lanes that the page shows in a state, as a mask."""
    shown = page.locator(".warp .lane").all()
    assert len(shown) == 32
    names = [(lane.get_attribute("class") or "") for lane in shown]
    return sum(1 << i for i, name in enumerate(names) if f"is-{kind}" in name.split())


def picture(page: Any) -> Any:
    """All that is to be seen: the elements, what is drawn on canvases, how far texts are scrolled.
    (The edges of rounded corners differ by a shade from one painting to the next.)"""
    page.mouse.move(5, 5)
    page.wait_for_timeout(60)
    return page.evaluate(
        """() => [
          document.querySelector("#app").innerHTML,
          [...document.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()),
          [...document.querySelectorAll(".cm-scroller")].map((text) => text.scrollTop),
        ]"""
    )


def step(page: Any) -> int:
    """The number of the step that the page shows, from 0."""
    return int(page.locator("[data-testid=position] b").inner_text().replace(",", "")) - 1


def test_stepping_forward_and_back_gives_the_same_picture(page: Any, exported: str) -> None:
    show(page, exported)
    for key in ("1", "2", "3", "4"):
        page.keyboard.press(key)
        page.keyboard.press("ArrowRight")
        before = picture(page)
        for _ in range(9):
            page.keyboard.press("ArrowRight")
        assert picture(page) != before
        for _ in range(9):
            page.keyboard.press("ArrowLeft")
        assert picture(page) == before


def test_jumping_to_a_divergence_shows_the_masks_of_the_trace(
    page: Any, exported: str, trace: Trace
) -> None:
    show(page, exported)
    steps = trace.warp().steps
    divergent = next(s for s in steps if s.marks & DIVERGED)
    page.keyboard.press("Shift+ArrowRight")
    assert step(page) == divergent.time
    assert lanes(page, "goes_on") | lanes(page, "jumps") == divergent.active == 0xFFFFFFFF
    assert lanes(page, "goes_on") in (0xFFFF, 0xFFFF0000)
    page.keyboard.press("ArrowRight")
    behind = steps[divergent.time + 1]
    assert (lanes(page, "active"), lanes(page, "other_path")) == (
        behind.active,
        behind.off.other_path,
    )
    assert behind.active in (0xFFFF, 0xFFFF0000)
    page.keyboard.press("Shift+ArrowRight")
    assert lanes(page, "active") == 0xFFFFFFFF
    assert (
        page.locator(".tree em").first.inner_text()
        == "no divergence: all running lanes execute together"
    )


def test_an_export_needs_no_network(chromium: Any, exported: str) -> None:
    context = chromium.new_context(offline=True)
    made = context.new_page()
    requested: list[str] = []
    made.on("request", lambda request: requested.append(request.url))
    made.goto(exported)
    made.wait_for_selector(".lanes")
    assert [address for address in requested if not address.startswith(("file:", "data:"))] == []
    assert made.locator("text=Edit").count() == 0
    context.close()


def test_kernel_text_is_no_markup(page: Any, exported: str) -> None:
    show(page, exported)
    assert "onerror" in page.locator(".source .cm-line").first.inner_text()
    assert page.locator("img").count() == 0
    assert page.title() == "halves · Warploom"


def test_a_link_leads_to_its_step(page: Any, exported: str, trace: Trace) -> None:
    show(page, exported + "#step=12&warp=0&view=numbers")
    assert step(page) == 12
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Numbers"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('step=13')")


def test_numbers_at_the_end_are_the_report_s(page: Any, exported: str, trace: Trace) -> None:
    show(page, exported)
    page.keyboard.press("End")
    page.keyboard.press("4")
    rows = page.locator(".numbers tr").all()
    shown = {r.locator("th").inner_text(): r.locator("td").inner_text() for r in rows}
    steps = trace.warp().steps
    assert shown["Warp instructions"] == str(len(steps))
    total = sum(s.active.bit_count() for s in steps)
    assert shown["Thread instructions"].replace(",", "") == str(total)
    assert (shown["Divergent branches"], shown["Reconvergences"]) == ("1", "1")
    assert shown["global store sectors"] == "4"


def test_the_keyboard_is_enough(page: Any, url: str) -> None:
    """Play, stop, look at every view, open and close what there is, edit and leave."""
    show(page, url)
    page.keyboard.press("Space")
    page.wait_for_timeout(600)
    page.keyboard.press("Space")
    assert step(page) >= 1
    for key, title in zip("1234", ("Memory", "Data", "Machine", "Numbers"), strict=True):
        page.keyboard.press(key)
        assert page.locator("[role=tab][aria-selected=true]").inner_text() == title
    page.keyboard.press("?")
    assert page.locator("[role=dialog]").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    assert page.locator(".sheet li").count() == len(ORDER)
    page.keyboard.press("Escape")
    assert page.locator("[role=dialog]").count() == 0
    page.keyboard.press("x")
    focused = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        focused.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert {"Step", "Step back", "Play", "Timeline of the launch", "PTX of the kernel"} <= focused


def test_edit_and_run(page: Any, url: str) -> None:
    show(page, url)
    page.keyboard.press("e")
    editor = page.locator(".source .cm-content[contenteditable=true]")
    editor.wait_for()
    editor.fill(SOURCE.replace("lane < 16", "lane < 4"))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".trouble.calm", state="attached")
    page.wait_for_selector(".trouble.calm", state="detached", timeout=20_000)
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowRight")
    assert lanes(page, "active") in (0xF, 0xFFFFFFF0)


def test_a_line_that_does_not_compile_is_marked(page: Any, url: str) -> None:
    page.expected_errors.append("422")
    show(page, url)
    page.keyboard.press("e")
    editor = page.locator(".source .cm-content[contenteditable=true]")
    editor.wait_for()
    editor.fill(SOURCE.replace("out[lane] = value", "out[lane] = valeu"))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".trouble[role=alert]", timeout=20_000)
    assert "valeu" in page.locator(".trouble").inner_text()
    assert "valeu" in page.locator(".cm-line.is-wrong").inner_text()


def test_a_kernel_that_never_ends_is_stopped_and_the_page_says_so(page: Any, url: str) -> None:
    page.expected_errors.append("422")
    show(page, url)
    page.keyboard.press("e")
    editor = page.locator(".source .cm-content[contenteditable=true]")
    editor.wait_for()
    editor.fill("__global__ void k(int *out) { while (true) atomicAdd(out, 1); }")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".trouble[role=alert]", timeout=20_000)
    assert "stopped after 6 seconds" in page.locator(".trouble").inner_text()


@pytest.fixture(scope="module")
def timed(asked: LaunchRequest) -> Trace:
    return record(msgspec.structs.replace(asked, block="64", args=("i32[64]=zeros",), timed=True))


@pytest.fixture(scope="module")
def timed_page(timed: Trace, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pages") / "timed.html"
    file.write_text(export(exported_show("halves", ("halves",)), [timed.to_bytes()]), "utf-8")
    return file.as_uri()


def spans(trace: Trace) -> list[dict[str, int]]:
    """The times in which a warp was in one state, as the trace has them."""
    output = trace.modelled
    assert output is not None
    columns = {n: np.frombuffer(getattr(output, n), t).tolist() for n, t in COLUMNS.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_only_a_timed_trace_has_modelled_time(page: Any, exported: str, timed_page: str) -> None:
    show(page, exported + "#step=0&view=time")
    page.keyboard.press("5")
    assert page.get_by_role("tab", name="Time").count() == 0
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Memory"
    show(page, timed_page + "#step=0&view=time")
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Time"


def test_modelled_time_says_what_it_is(page: Any, timed_page: str, timed: Trace) -> None:
    show(page, timed_page)
    page.keyboard.press("5")
    output = timed.modelled
    assert output is not None
    said = page.locator(".facts").inner_text()
    for part in (
        "Modelled",
        timed.device.title,
        f"scheduler {output.scheduler}",
        "All blocks ran on SM 0",
    ):
        assert part in said
    assert f"{output.cycles:,} cycles" in said
    sums: Counter[str] = Counter()
    for one in spans(timed):
        sums[output.states[one["state"]]] += one["until"] - one["since"]
    items = page.locator(".time .legend li").all()
    shown = {li.get_attribute("data-state"): li.locator("b").inner_text() for li in items}
    assert set(shown) == set(sums)
    for name, own in sums.items():
        share = 100 * own / sums.total()
        assert shown[name] == (f"{share:.1f} %" if share >= 0.05 else "< 0.1 %")


def test_a_time_in_a_track_leads_to_its_warp_and_step(
    page: Any, timed_page: str, timed: Trace
) -> None:
    """The longest wait of the second warp in a later turn of a loop: the tooltip shows it, a
    click goes there."""
    show(page, timed_page)
    page.keyboard.press("5")
    output = timed.modelled
    assert output is not None
    ends = [min(s["since"] for s in spans(timed)), max(s["until"] for s in spans(timed))]
    later = (s for s in spans(timed) if s["warp"] == 1 and s["visit"] > 0)
    longest = max(later, key=lambda one: one["until"] - one["since"])
    place = page.locator("canvas.tracks").bounding_box()
    row = sorted({s["slot"] for s in spans(timed)}).index(longest["slot"])
    share = ((longest["since"] + longest["until"]) / 2 - ends[0]) / (ends[1] - ends[0])
    at = place["x"] + 52 + share * (place["width"] - 60), place["y"] + 20 + 18 * row + 9
    page.mouse.move(*at)
    state = output.states[longest["state"]].replace("_", " ")
    cycles = f"{state}, cycles {longest['since']:,} to {longest['until']:,}"
    said = page.locator(".tip").inner_text()
    assert f"Modelled: {cycles}" in said
    assert timed.instructions[longest["instruction"]] in said
    assert timed.line(longest["instruction"]).partition(":")[2] in said
    page.mouse.click(*at)
    assert "block 0, warp 1" in page.locator(".warp > header").inner_text()
    steps = [s for s in timed.warp(0, 1).steps if s.instruction == longest["instruction"]]
    assert f"step={steps[longest['visit']].time}" in link(page)
    assert cycles in page.locator(".span-details").inner_text()


def link(page: Any) -> str:
    """Where the page is, once it has written that down."""
    page.wait_for_timeout(400)
    return str(page.evaluate("location.hash"))


def test_tracks_are_walked_and_zoomed_by_keys(page: Any, timed_page: str, timed: Trace) -> None:
    """From a warp's first state, the arrow goes to the second, and the one below to the other
    slot; stepping through the launch brings its own state along."""
    show(page, timed_page)
    page.keyboard.press("5")
    said = page.locator(".span-details b")
    page.locator("canvas.tracks").focus()
    for _ in range(len(spans(timed))):
        page.keyboard.press("ArrowLeft")
    first, second = spans(timed)[:2]
    assert f"cycles {first['since']:,} to {first['until']:,}" in said.inner_text()
    page.keyboard.press("ArrowRight")
    assert f"cycles {second['since']:,} to {second['until']:,}" in said.inner_text()
    page.keyboard.press("ArrowDown")
    assert "block 0, warp 1" in page.locator(".span-details").inner_text()
    before = picture(page)
    page.locator("canvas.tracks").focus()
    page.keyboard.press("+")
    closer = picture(page)
    assert closer != before
    page.keyboard.press("0")
    assert picture(page) == before
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Later").click()
    page.get_by_role("button", name="All").click()
    page.locator(".timeline").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    ended = page.locator(".span-details").inner_text()
    assert "selected" in ended
    assert "ret" in ended


def test_the_timeline_says_which_step_is_under_the_pointer(
    page: Any, exported: str, trace: Trace
) -> None:
    page.goto(exported)
    page.wait_for_selector(".lanes", state="attached")
    box = page.locator(".timeline").bounding_box()
    page.mouse.move(box["x"] + 93, box["y"] + 25)
    said = page.locator(".tip").inner_text()
    assert said.startswith("Step 1 (")
    assert trace.code[0].text in said
    assert "32 active lanes" in said
    page.mouse.move(box["x"] + 93, box["y"] - 60)
    assert page.locator(".tip").is_hidden()


def test_time_is_modelled_on_request(page: Any, url: str, timed: Trace) -> None:
    """The launch is asked for with its time, of the SM that was chosen; then it is there."""
    asked: list[LaunchRequest] = []

    def answer(route: Any) -> None:
        asked.append(msgspec.json.decode(route.request.post_data_buffer, type=LaunchRequest))
        route.fulfill(body=timed.to_bytes(), content_type="application/octet-stream")

    page.route("**/run", answer)
    show(page, url)
    assert page.get_by_role("tab", name="Time").count() == 0
    page.keyboard.press("r")
    page.get_by_label("Model the time").check()
    page.get_by_label("of SM").fill("3")
    page.keyboard.press("Control+Enter")
    page.get_by_role("tab", name="Time").click()
    assert page.locator("canvas.tracks").is_visible()
    assert [(one.timed, one.sm) for one in asked] == [(True, 3)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chromium: Any, timed_page: str, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    made = context.new_page()
    made.goto(timed_page)
    made.wait_for_selector(".tabs")
    for tab in ("Code", "Warp", "Memory", "Data", "Machine", "Numbers", "Time"):
        made.get_by_role("tab", name=tab).click()
        wide = made.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, tab
    context.close()


MANY = "__global__ void many(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }"


def test_blocks_end_on_the_page_though_some_were_not_recorded(page: Any, tmp_path: Path) -> None:
    """100 blocks of one warp on two SMs, each of which holds 32 (compute capability 6.2);
    64 warps are recorded."""
    request = LaunchRequest(
        name="many.cu", source=MANY, args=("i32[3200]=zeros",), device="jetson-tx2", grid="100"
    )
    file = tmp_path / "many.html"
    file.write_text(export(exported_show("many", ("many",)), [record(request).to_bytes()]), "utf-8")
    page.goto(f"{file.as_uri()}#view=machine&step=0")
    blocks = page.locator(".blocks h3 em")
    assert blocks.inner_text() == "0 waiting · 64 resident · 0 done · 36 not recorded"
    page.keyboard.press("End")
    assert blocks.inner_text() == "0 waiting · 0 resident · 64 done · 36 not recorded"


def test_the_multiprocessor_is_drawn_with_the_sizes_of_the_device(
    page: Any, tmp_path: Path
) -> None:
    """An SM of a Tesla K40 has 4 schedulers, 192 cores and 64 warp slots; one of its four warps is
    executing, in the slots of the first block."""
    request = LaunchRequest(
        name="halves.cu", source=SOURCE, args=("i32[128]=zeros",), device="k40", block="128"
    )
    file = tmp_path / "k40.html"
    file.write_text(export(exported_show("k", ("k",)), [record(request).to_bytes()]), "utf-8")
    page.goto(f"{file.as_uri()}#view=machine&step=3")
    drawn = page.locator(".mp")
    assert "SM 0 of Tesla K40" in drawn.locator("h3").inner_text()
    assert drawn.locator(".mp-part").count() == 4
    assert drawn.locator(".mp-cores i").count() == 192
    assert drawn.locator(".mp-slots > *").count() == 64
    assert [drawn.locator(f".mp-part:nth-child({n}) button").count() for n in range(1, 5)] == [
        1
    ] * 4
    assert drawn.locator("button.st-executing").count() == 1
    assert drawn.locator(".mp-cores .on").count() == 32
    rows = drawn.inner_text()
    assert "128 of 2,048" in rows
    assert "1.5 MiB" in rows
    assert "12 GiB" in rows


LOCK = """__global__ void count(int *lock, int *total)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    *(volatile int *)total += 1;
    __threadfence();
    atomicExch(lock, 0);
}"""


def test_iterations_in_which_nothing_changes_are_stepped_over(page: Any, tmp_path: Path) -> None:
    """Lanes that spin on a lock execute thousands of instructions before the owner's turn comes;
    steps lead through what changes, and say what they leave out."""
    request = LaunchRequest(
        name="lock.cu", source=LOCK, args=("i32[1]=zeros",) * 2, device="v100", block="4"
    )
    trace = record(request)
    assert trace.steps.count > 10_000
    file = tmp_path / "lock.html"
    file.write_text(export(exported_show("l", ("l",)), [trace.to_bytes()]), "utf-8")
    page.goto(f"{file.as_uri()}#view=machine&step=0&warp=0")
    position, instruction = page.get_by_test_id("position"), page.locator(".now")
    lines, left_out, steps = set(), 0, 0
    while "the end" not in position.inner_text():
        page.keyboard.press("ArrowRight")
        steps += 1
        words = instruction.inner_text()
        lines.add(words[words.find("line") :].split(" ·")[0])
        if found := re.search(r"\(([\d,]+) steps, not shown", words):
            left_out = max(left_out, int(found[1].replace(",", "")))
    assert steps < 200
    assert left_out > 1000
    assert lines == {f"line {number}" for number in (1, 3, 5, 6, 7, 8)}
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert f"of {trace.steps.count:,}" in position.inner_text()


FIB = """__device__ __noinline__ int fib(int n)
{
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
}
__global__ void numbers(int *out)
{
    out[threadIdx.x] = fib(threadIdx.x);
}"""


def test_lanes_show_the_calls_that_have_not_returned(page: Any, tmp_path: Path) -> None:
    """Lanes 0 and 1 wait in fib(0) and fib(1) while lanes 2 and 3 enter fib(1) and fib(2), which
    fib(2) and fib(3) call."""
    request = LaunchRequest(
        name="fib.cu", source=FIB, args=("i32[4]=zeros",), device="h100", block="4"
    )
    trace = record(request)
    warp = trace.warp()
    step = next(one.time for one in warp.steps if len(warp.call_stack(3, one.time)) == 3)
    file = tmp_path / "fib.html"
    file.write_text(export(exported_show("f", ("f",)), [trace.to_bytes()]), "utf-8")
    page.goto(f"{file.as_uri()}#view=machine&step={step}&warp=0")
    calls = page.get_by_role("group", name="Calls").get_by_role("listitem").all_inner_texts()
    assert calls == [
        "lanes 2\N{EN DASH}3: fib line 1 ← fib line 4 ← numbers line 8",
        "lanes 0\N{EN DASH}1: fib line 3 ← numbers line 8",
    ]
    page.keyboard.press("End")
    assert page.get_by_role("group", name="Calls").count() == 0


RETURNS = """__global__ void returns(const int *in, int *out, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    out[i] = in[i] > 3 ? 5 * in[i] : 7 - in[i];
}"""


def test_lanes_that_returned_are_called_so_and_selects_are_explained(
    page: Any, tmp_path: Path
) -> None:
    """NVRTC merges all returns into one; lanes 8 to 31 wait there. The conditional expression
    becomes a select: no lane is off."""
    request = LaunchRequest(
        name="returns.cu", source=RETURNS, args=("i32[8]=arange", "i32[8]=zeros", "8"),
        device="v100",
    )  # fmt: skip
    trace = record(request)
    file = tmp_path / "returns.html"
    file.write_text(export(exported_show("r", ("r",)), [trace.to_bytes()]), "utf-8")
    steps = trace.warp(0, 0).steps
    texts = [trace.code[step.instruction].text for step in steps]
    select = next(n for n, text in enumerate(texts) if text.startswith("selp"))
    branch = next(n for n, text in enumerate(texts) if "bra" in text)
    page.goto(f"{file.as_uri()}#view=memory&step={select}")
    assert "24" in page.locator(".legend li", has_text="returned").inner_text()
    assert "each lane selects one of two computed values" in page.locator(".now").inner_text()
    page.goto(f"{file.as_uri()}#view=memory&step={branch}")
    assert "jumps to the return" in page.locator(".legend").inner_text()
    assert not any(step.marks & MET for step in steps)


OVERFLOWING = """
() => [...document.querySelectorAll('.lane b, .threads i, .tabs button, .lesson button')]
    .filter((one) => one.offsetParent !== null && one.textContent.trim())
    .filter((one) => one.scrollWidth > one.clientWidth + 1
        || one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => `${one.className} ${one.textContent}`)
"""
"""Texts that are wider than their boxes, and buttons beyond the edge."""

SMALLEST = """
() => Math.min(...[...document.querySelectorAll('svg.picture text')]
    .filter((one) => one.getClientRects().length)
    .map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a))
"""
"""The height of the smallest letters of a drawing, in pixels."""


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["1280", "390"])
@pytest.mark.parametrize("name", ["coalescing", "branch", "reduction", "banks"])
def test_values_and_buttons_fit(
    chromium: Any, tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    """Values of lanes have up to six characters, those of a comparison four."""
    lesson = find_lesson(name)
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    show = exported_show(lesson.title, labels_of(lesson), lesson=lesson)
    file = tmp_path / "lesson.html"
    file.write_text(export(show, traces), "utf-8")
    page = chromium.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(file.as_uri())
    page.wait_for_selector(".tabs")
    for key in ("n", "n", "n", "End", "ArrowLeft", "2", "3", "4", "6", "1"):
        page.keyboard.press(key)
        page.wait_for_timeout(50)
        assert page.evaluate(OVERFLOWING) == [], key
        if page.locator("svg.picture text").count():
            assert page.evaluate(SMALLEST) > 7, key
    page.close()


def test_kernels_of_the_source_are_offered(page: Any, url: str) -> None:
    show(page, url)
    page.keyboard.press("r")
    page.wait_for_selector("#kernels", state="attached")
    offered = page.locator("#kernels option").evaluate_all("all => all.map(one => one.value)")
    assert offered == [re.findall(r"__global__ void (\w+)", SOURCE)[0]]


def test_two_versions_of_a_source_are_compared(page: Any, url: str) -> None:
    """The run after an edit stands beside the one before it."""
    show(page, url)
    page.keyboard.press("r")
    page.get_by_label("Compare with the run that is shown").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("e")
    editor = page.locator(".source .cm-content[contenteditable=true]")
    editor.wait_for()
    editor.fill(SOURCE.replace("lane < 16", "lane < 4"))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".compare .side", timeout=20_000)
    titles = page.locator(".compare .side h2").all_inner_texts()
    assert titles == ["this run", "the previous run"]
    assert page.locator(".cm-content").first.inner_text().count("lane < 4") == 1
