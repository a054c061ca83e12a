"""What divergence costs the compiled engine: warp instructions a second, converged and diverged.

    python benchmarks/divergence.py

One kernel, the same instructions: in the first run every lane of a warp takes the same side of a
branch in a loop, in the second the lanes always part two ways. Both models of control.
"""

from __future__ import annotations

import os
import statistics
import time

import numpy as np

import warploom as wl

SOURCE = r"""
extern "C" __global__ void sides(unsigned *out, int laps, int shift)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, side = threadIdx.x >> shift & 1;
    for (int i = 0; i < laps; ++i) {
        if (side ^ (i & 1)) {
            x = x * 1664525u + 1013904223u; x ^= x >> 7; x = x * 22695477u + 1u; x ^= x << 9;
            x += x >> 3; x = x * 69069u + 5u; x ^= x >> 11; x = x * 1103515245u + 12345u;
            x ^= x << 5; x = x * 134775813u + 1u; x ^= x >> 13; x += 0x9e3779b9u;
        } else {
            x = x * 214013u + 2531011u; x ^= x << 6; x = x * 1140671485u + 12820163u; x ^= x >> 8;
            x += x << 4; x = x * 65793u + 4282663u; x ^= x << 12; x = x * 16843009u + 826366247u;
            x ^= x >> 6; x = x * 8121u + 28411u; x ^= x << 14; x += 0x7f4a7c15u;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""
LAPS, BLOCKS, THREADS = 200, 256, 256


def rate(gpu: wl.Device, kernel: wl.Kernel, shift: int) -> tuple[float, str]:
    """Billion warp instructions a second, median of five, and the code of the last launch; the
    lanes' side is bit `shift` of their number."""
    out = gpu.zeros(BLOCKS * THREADS, np.uint32)
    times: list[float] = []
    run = kernel[BLOCKS, THREADS](out, LAPS, shift)
    for _ in range(5):
        start = time.perf_counter()
        run = kernel[BLOCKS, THREADS](out, LAPS, shift)
        times.append(time.perf_counter() - start)
    return run.counters.warp_instructions / statistics.median(times) / 1e9, run.tier


def main() -> None:
    os.environ["WARPLOOM_OPT_LEVEL"] = "3"
    print(f"{'':24}{'converged':>12}{'two ways':>12}{'ratio':>8}   G warp inst/s")
    for name in ("gtx-1080", "v100"):
        gpu = wl.Device(name)
        kernel = gpu.compile(SOURCE)["sides"]
        (together, tier), (diverged, _) = rate(gpu, kernel, 5), rate(gpu, kernel, 0)
        title = f"{name}, cc {gpu.spec.cc}"
        print(f"{title:24}{together:12.2f}{diverged:12.2f}{diverged / together:8.2f}   {tier}")


if __name__ == "__main__":
    main()
