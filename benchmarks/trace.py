"""How long a million warp steps take to record, and how large their trace is.

    python benchmarks/trace.py [--browser]

The kernel is a search that parts lanes, reads scattered words and counts with atomics: about as
hard as a trace gets. With --browser, the page is opened in Chromium too: how long until it shows
the trace, and how long a step takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import warploom as wl
from warploom.observe.trace import Trace
from warploom.ui.page import export
from warploom.ui.shows import exported_show

SOURCE = """
__global__ void search(int n, const int *keys, const int *wanted, int *found, int *hits)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (keys[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    found[i] = low;
    if (low < n && keys[low] == wanted[i]) atomicAdd(hits, 1);
}
"""
BLOCKS, THREADS, KEYS = 656, 256, 4096


def main() -> None:
    """Measure, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--browser", action="store_true", help="measure the page too")
    given = options.parse_args()
    trace = recorded()
    data = trace.to_bytes()
    if given.browser:
        in_browser(trace, data)


def recorded() -> Trace:
    """Record twice: the first time, the kernel and the helpers are compiled."""
    gpu = wl.Device("v100")
    kernel = gpu.compile(SOURCE)["search"]
    random = np.random.default_rng(1)
    keys = np.sort(random.integers(0, 1 << 20, KEYS)).astype(np.int32)
    wanted = random.choice(keys, BLOCKS * THREADS).astype(np.int32)
    buffers = [gpu.to_device(a) for a in (keys, wanted, np.zeros_like(wanted))]
    hits = gpu.zeros(1, np.int32, "hits")
    limits = wl.TraceLimits(warps=BLOCKS * THREADS // 32, steps=100_000)
    for name in ("first, with compilation", "again"):
        started, busy = time.perf_counter(), time.process_time()
        trace = kernel[BLOCKS, THREADS].trace(
            KEYS, *buffers, hits, limits=limits, engine="compiled"
        )
        recording, busy = time.perf_counter() - started, time.process_time() - busy
        started = time.perf_counter()
        size = len(trace.to_bytes())
        writing = time.perf_counter() - started
        print(
            f"{name}: {trace.steps.count:,} steps, {trace.accesses.count:,} accesses,"
            f" {len(trace.states):,} states, {len(trace.shapes):,} shapes: recorded in"
            f" {recording:.2f} s ({busy:.2f} s of the processor), packed in {writing:.2f} s,"
            f" {size / 1e6:.1f} MB"
        )
    return trace


def in_browser(trace: Trace, data: bytes) -> None:
    """Open the trace as a page, and step through it as fast as the browser draws."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "page.html"
        page_file.write_text(export(exported_show("search", ("search",)), [data]))
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking"],
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        started = time.perf_counter()
        page.goto(page_file.as_uri())
        page.wait_for_selector(".app")
        print(f"opened in {time.perf_counter() - started:.2f} s")
        for name, key in (("a step", "ArrowRight"), ("to the next event", "Shift+ArrowRight")):
            frames = page.evaluate(_STEPS, key)
            print(f"{name}: {frames['mean']:.1f} ms on average, {frames['worst']:.1f} ms at worst")
        chromium.close()


_STEPS = """async (keys) => {
  const key = keys.split("+").pop(), shiftKey = keys.includes("Shift");
  const times = [];
  for (let i = 0; i < 240; i++) {
    const begun = performance.now();
    document.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    if (i >= 20) times.push(performance.now() - begun);
  }
  return { mean: times.reduce((a, b) => a + b) / times.length, worst: Math.max(...times) };
}"""


if __name__ == "__main__":
    main()
