"""What the debugger costs: a far breakpoint, going back over a long launch, checkpoints.

    python benchmarks/debugging.py

A kernel of about 10^8 warp instructions, with barriers and divergence, runs without a debugger;
with one and a breakpoint in its last block; then the debugger goes back to the first hit of a
breakpoint from the end, and to the last write of an element. Then the same over 1 GB of memory.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import warploom as wl
from warploom.debug.attaching import AttachedDebugger
from warploom.debug.session import Session
from warploom.host.debugging import attach

SOURCE = """
extern "C" __global__ void loop(int n, int m, float *y)
{
    __shared__ float t[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int j = 0; j < m; j++) {
        if ((i ^ j) & 1)
            s += j * 0.5f;
        else
            s -= 1.0f;
        t[threadIdx.x] = s;
        __syncthreads();
        s += t[(threadIdx.x + 1) % blockDim.x] * 0.25f;
        __syncthreads();
    }
    if (i < n)
        y[i] = s;
}
"""
GRID, BLOCK, LAPS = 512, 256, 2200

LARGE = """
extern "C" __global__ void axpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s = y[i];
        for (int j = 0; j < 8; j++)
            s = s * 0.5f + a * x[i];
        y[i] = s;
    }
}
"""
ELEMENTS = 1 << 27
"""Of two buffers of 512 MB each."""


def timed(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    gpu = wl.Device()
    kernel = gpu.compile(SOURCE, options=["-lineinfo"])["loop"]
    y = gpu.zeros(GRID * BLOCK, np.float32)
    args = (GRID * BLOCK, LAPS, y)
    run = kernel[GRID, BLOCK](*args)
    plain = min(timed(lambda: kernel[GRID, BLOCK](*args)) for _ in range(3))
    tier = kernel[GRID, BLOCK](*args).tier
    print(
        f"{run.counters.warp_instructions:,} warp instructions, {plain:.2f} s without a debugger,"
        f" in code of {tier}"
    )

    def face(session: Session) -> bool:
        session.add("17 if blockIdx.x == 100000")
        took = timed(session.start)
        print(f"to the end, past a breakpoint: {took:.2f} s, {took / plain:.2f} times")
        session.breakpoints.clear()
        last = GRID - 1
        session.begin()
        session.add(f"17 if blockIdx.x == {last} && threadIdx.x == 0")
        started = time.perf_counter()
        session.start()
        took = time.perf_counter() - started
        assert session.focus.block == last
        print(f"to a breakpoint in the last block: {took:.2f} s, {took / plain:.2f} times")
        session.breakpoints.clear()
        session.go_on()
        print(f"{session.timeline.checkpoints} checkpoints: {session.timeline.bytes / 1e6:.1f} MB")
        session.add("17 if blockIdx.x == 0 && threadIdx.x == 0")
        print(f"reverse-continue to the first block: {timed(session.reverse):.2f} s")
        session.breakpoints.clear()
        session.go_on()
        wrote = timed(lambda: session.last_access("y[5]"))
        print(f"who wrote y[5], in the first block: {wrote:.2f} s")
        session.add("12 if blockIdx.x == 256 && threadIdx.x == 0")
        session.go_on()
        session.breakpoints.clear()
        print(f"reverse-step in the middle: {timed(lambda: session.reverse_step('line')):.2f} s")
        return False

    attach(AttachedDebugger(face))
    kernel[GRID, BLOCK](*args)
    attach(None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"the process had {peak / 1e3:.0f} MB at most")


def large() -> None:
    """A launch over 1 GB of numbers that no two are alike."""
    gpu = wl.Device()
    kernel = gpu.compile(LARGE, options=["-lineinfo"])["axpy"]
    values = np.random.default_rng(0).random(ELEMENTS, np.float32)
    x, y = gpu.to_device(values, "x"), gpu.to_device(values, "y")
    del values
    args = (ELEMENTS, 2.0, x, y)
    kernel[ELEMENTS // 256, 256](*args)
    plain = min(timed(lambda: kernel[ELEMENTS // 256, 256](*args)) for _ in range(2))
    before = anonymous()

    def face(session: Session) -> bool:
        session.add(f"9 if blockIdx.x == {ELEMENTS}")
        took = timed(session.start)
        print(f"1 GB of buffers: to the end in {took:.2f} s, {took / plain:.2f} times")
        timeline = session.timeline
        kept = (
            f"{timeline.bytes / 1e6:.0f} MB in memory, {timeline.file_bytes / 1e6:.0f} MB in a file"
        )
        print(f"{timeline.checkpoints} checkpoints: {kept}")
        wrote = timed(lambda: session.last_access("y[1000000]"))
        print(f"who wrote y[1000000]: {wrote:.2f} s")
        print(f"the process has {(anonymous() - before) / 1e6:.0f} MB more than without a debugger")
        return False

    attach(AttachedDebugger(face))
    kernel[ELEMENTS // 256, 256](*args)
    attach(None)


def anonymous() -> int:
    """Bytes of this process's memory that are in no file (Linux)."""
    text = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(next(r for r in text.split("\n") if r.startswith("RssAnon")).split()[1])


if __name__ == "__main__":
    main()
    large()
