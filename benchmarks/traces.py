"""How long a million warp steps take to record, and how large their trace is.

    python benchmarks/traces.py

The kernel is a search that diverges, reads scattered words and counts with atomics: about as hard
as a trace gets. `benchmarks/page.py` opens it in a browser.
"""

from __future__ import annotations

import time

import numpy as np

import warploom as wl
from warploom.observe.trace import Trace

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
    recorded()


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


if __name__ == "__main__":
    main()
