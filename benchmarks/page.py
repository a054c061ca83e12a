"""How long the page takes to open a million steps, to step, to play, to show 4,096 elements of
data, and to redraw an explorable when its slider is dragged: from launches that were recorded, and
from those that a server runs.

    python benchmarks/page.py [--trace FILE.wl]

The trace is that of `benchmarks/traces.py`; with --trace it is kept in a file, and read from there
the next time. Two times are given: by the clock, until the browser has drawn a frame (a frame takes
16.7 ms at 60 a second), and of the processor in the page's main thread (Chromium's TaskDuration),
which other work on the computer does not lengthen.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import traces as recording

from warploom.observe.trace import Trace
from warploom.ui.explorables import EXPLORABLES, explorable_of, explorable_show
from warploom.ui.explorables.recorded import recorded_explorable
from warploom.ui.page import export
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show

COPY = """
__global__ void copy(const float *in, float *out)
{
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        out[i] = 2 * in[4095 - i];
}
"""

STEPS, WARM_UP = 220, 20

READING_MILLISECONDS = 5000
"""Time between opening the page of a server and dragging: a reader reads the text meanwhile."""

DRAG_STEPS = 40
"""Values of a live drag at most."""


@dataclass(frozen=True)
class Opened:
    """A page in the browser, and the session that measures its main thread."""

    page: Any
    session: Any


def main() -> None:
    """Measure, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trace", type=Path, help="file in which the long trace is kept")
    given = options.parse_args()
    if given.trace and given.trace.exists():
        search = Trace.from_bytes(given.trace.read_bytes())
    else:
        search = recording.recorded()
    if given.trace and not given.trace.exists():
        given.trace.write_bytes(search.to_bytes())
    args = ("in:f32[4096]=arange", "out:f32[4096]=zeros")
    copy = record(LaunchRequest(name="copy.cu", source=COPY, block="128", args=args))
    measure(search, copy)


def measure(search: Trace, copy: Trace) -> None:
    """Open two traces in Chromium; print how long opening and stepping take."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking"],
        )
        search_page = open_page(chromium, search, Path(folder) / "search.html", "a million steps")
        stepped(search_page, "a step", "ArrowRight")
        stepped(search_page, "to the next event", "Shift+ArrowRight")
        copy_page = open_page(chromium, copy, Path(folder) / "copy.html", "4,096 elements")
        copy_page.page.keyboard.press("2")
        copy_page.page.locator(".arrays button", has_text="out").click()
        copy_page.page.keyboard.press("Home")
        assert copy_page.page.locator(".grid-of-cells canvas").count() == 1
        stepped(copy_page, "a step, with the data of 4,096 elements", "ArrowRight")
        played(search_page)
        for name in EXPLORABLES:
            dragged(chromium, name, Path(folder) / f"{name}.html")
        chromium.close()


def open_page(chromium: Any, trace: Trace, file: Path, name: str) -> Opened:
    """Open the page of a trace. Print how long it takes until steps are shown."""
    file.write_text(export(exported_show(name, (name,)), [trace.to_bytes()]), "utf-8")
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    started = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector(".app")
    taken = time.perf_counter() - started
    print(f"{name}: opened in {taken:.2f} s, {busy(session):.2f} s of the processor")
    return Opened(page, session)


def busy(session: Any) -> float:
    """Return the seconds that the page's main thread has worked since the page was opened."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def stepped(opened: Opened, name: str, key: str) -> None:
    """Press a key again and again; print how long each takes until a frame is drawn."""
    before = busy(opened.session)
    times: list[float] = opened.page.evaluate(_STEPS, [key, STEPS])
    each = 1000 * (busy(opened.session) - before) / STEPS
    kept = sorted(times[WARM_UP:])
    print(
        f"{name}: {sum(kept) / len(kept):.1f} ms on average, {kept[len(kept) * 95 // 100]:.1f} ms"
        f" at the 95th percentile, {kept[-1]:.1f} ms at worst; {each:.1f} ms of the processor"
    )


def played(opened: Opened) -> None:
    """Play a trace at 60 steps a second; print how long its frames take."""
    page = opened.page
    page.keyboard.press("Home")
    page.locator(".speed select").select_option("60")
    page.get_by_role("button", name="Play").click()
    times = sorted(page.evaluate(_FRAMES, 240))
    print(f"playing at 60 steps a second: {times[len(times) // 2]:.1f} ms a frame (median)")


def dragged(chromium: Any, name: str, file: Path) -> None:
    """Drag an explorable's slider to each of its values; print how long the redrawing takes."""
    launches = recorded_explorable(name)
    traces = [launch.trace for launch in launches]
    recorded = explorable_show(explorable_of(name, launches))
    file.write_text(export(recorded, traces), "utf-8")
    page = opened(chromium, file.as_uri())
    printed(f"a drag in {name}", page.evaluate(_DRAG, None))
    page.close()
    show = explorable_show(explorable_of(name, launches, live=True))
    page = opened(chromium, served(Viewer(show, traces)))
    page.wait_for_timeout(READING_MILLISECONDS)
    printed(f"a live drag in {name}", page.evaluate(_DRAG, DRAG_STEPS))
    page.close()


def opened(chromium: Any, url: str) -> Any:
    """Return the page of an explorable, when its recorded launches have been read."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_selector(".explorable")
    page.wait_for_load_state("networkidle")
    return page


def printed(what: str, times: list[float]) -> None:
    """Print the median of times and the longest one."""
    times = sorted(times)
    print(f"{what}: {times[len(times) // 2]:.0f} ms (median), {times[-1]:.0f} ms at worst")


def served(viewer: Viewer) -> str:
    """Return the URL of a server, which ends with this process."""
    urls: Queue[str] = Queue()
    threading.Thread(target=serve, args=(viewer, urls.put), daemon=True).start()
    return urls.get()


_FRAMES = """async (count) => {
  const times = [];
  await new Promise((done) => {
    const next = (now) => {
      times.push(now);
      times.length > count ? done() : requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  return times.slice(1).map((time, index) => time - times[index]);
}"""

_DRAG = """async (most) => {
  const slider = document.querySelector(".control input");
  const frame = () => new Promise(requestAnimationFrame);
  const drawn = async () => (await frame(), await frame());
  const [min, max, step] = [slider.min, slider.max, slider.step].map(Number);
  const values = Array.from({ length: (max - min) / step + 1 }, (_, place) => min + place * step);
  const now = values.indexOf(Number(slider.value));
  const further = [...values.slice(now + 1), ...values.slice(0, now).reverse()].slice(0, most);
  const times = [];
  for (const value of most === null ? [...values, ...values] : further) {
    const begin = performance.now();
    slider.value = value;
    slider.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await drawn();
    while (document.querySelector(".counted.late")) await drawn();
    times.push(performance.now() - begin);
  }
  return most === null ? times.slice(values.length) : times;
}"""
"""Without `most`, each value twice: the first time may read a launch. With it, so many further
values of the slider, each until its launch is drawn."""

_STEPS = """async ([keys, count]) => {
  const key = keys.split("+").pop(), shiftKey = keys.includes("Shift");
  const times = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    document.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    times.push(performance.now() - begun);
  }
  return times;
}"""


if __name__ == "__main__":
    main()
