"""What the debugger costs: a far breakpoint, going back over a long launch, checkpoints.

    python benchmarks/debugging.py

A kernel of about 10^8 warp instructions, with barriers and divergence, runs without a debugger;
with one and a breakpoint in its last block; then the debugger goes back to the first hit of a
breakpoint from the end, and to the last write of an element.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

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
    print(f"{run.counters.warp_instructions:,} warp instructions, {plain:.2f} s without a debugger")

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


if __name__ == "__main__":
    main()
