"""Measures what a move of the table of access plans gains over the rows behind it.

`python benchmarks/moves.py structures` runs kernels with the whole table and without the rows of
that move (`ir.access_plans.Move`), in turn in one process, and prints warp instructions a
second, by thread time, of each. Results and counters have to be the same. Kernels named behind the
move, of those in benchmarks/families, are measured as well.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from families import CASES
from families.base import Case
from families.measuring import Launch

import warploom as wl
from warploom.ir import access_plans

THREADS, BLOCK, ROUNDS = 1 << 16, 256, 25
SOURCE = """
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
extern "C" {
__global__ void sum3(const float *p, float *y, int n) { AT; y[i] = p[3*i] + p[3*i+1] + p[3*i+2]; }
__global__ void product2(const float *p, float *y, int n) {
    AT; float a = p[2*i], b = p[2*i+1]; y[i] = a * a - b * b;
}
__global__ void product2_double(const double *p, double *y, int n) {
    AT; double a = p[2*i], b = p[2*i+1]; y[i] = a * a - b * b;
}
__global__ void grey4(const float *p, float *y, int n) {
    AT; y[i] = 0.3f * p[4*i] + 0.59f * p[4*i+1] + 0.11f * p[4*i+2] * p[4*i+3];
}
__global__ void grey3_bytes(const unsigned char *p, unsigned char *y, int n) {
    AT; y[i] = (77 * p[3*i] + 150 * p[3*i+1] + 29 * p[3*i+2]) >> 8;
}
__global__ void some_of_6(const float *p, float *y, int n) {
    AT; y[i] = p[6*i] + p[6*i+1] + p[6*i+5];
}
__global__ void some_of_8(const float *p, float *y, int n) {
    AT; y[i] = p[8*i] + p[8*i+1] + p[8*i+5];
}
__global__ void shared2(const float *p, float *y, int n) {
    __shared__ float own[1024];
    AT;
    int t = threadIdx.x;
    for (int k = t; k < 1024; k += blockDim.x) own[k] = p[k];
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < 16; r++) sum += own[2*t + r] * own[2*t + r + 1];
    y[i] = sum;
}
__global__ void flip(const float *p, float *y, int n) { AT; y[n - 1 - i] = 2 * p[i]; }
__global__ void convolve(const float *p, float *y, int n) {
    AT;
    float sum = 0;
    for (int k = 0; k < 8; k++) if (i >= 8) sum += p[k] * p[n - 1 - i + k];
    y[i] = sum;
}
__global__ void flip_bytes(const unsigned char *p, unsigned char *y, int n) {
    AT; y[n - 1 - i] = 255 - p[i];
}
}
"""
KERNELS = {
    "sum3": (np.float32, 3),
    "product2": (np.float32, 2),
    "product2_double": (np.float64, 2),
    "grey4": (np.float32, 4),
    "grey3_bytes": (np.uint8, 3),
    "some_of_6": (np.float32, 6),
    "some_of_8": (np.float32, 8),
    "shared2": (np.float32, 2),
    "flip": (np.float32, 1),
    "convolve": (np.float32, 1),
    "flip_bytes": (np.uint8, 1),
}
"""Kernels by their type and the elements that a thread's structure has."""


@dataclass(frozen=True)
class Side:
    """Holds launches of one kernel under one table: what measures one, and its warp instructions;
    the first one's code, result and counters."""

    seconds: Callable[[], float]
    warp_instructions: int
    tier: str
    result: np.ndarray[Any, Any]
    counters: dict[str, int]


def prepared(name: str) -> Side:
    """Compile a kernel of this file under the table as it is now, and launch it."""
    dtype, members = KERNELS[name]
    gpu = wl.Device("h100", workers=1)
    numbers = np.random.default_rng(1).random(THREADS * members) * 200
    given, out = gpu.to_device(numbers.astype(dtype)), gpu.zeros(THREADS, dtype)
    launcher = gpu.compile(SOURCE)[name][THREADS // BLOCK, BLOCK]

    def seconds() -> float:
        begin = time.thread_time()
        launcher(given, out, THREADS)
        return time.thread_time() - begin

    run = launcher(given, out, THREADS)
    counters = dict(run.counters)
    return Side(seconds, counters["warp_instructions"], run.tier, out.copy_to_host(), counters)


def prepared_case(case: Case) -> Side:
    """Do the same for a kernel of benchmarks/families, in its natural shape, and check it."""
    gpu = wl.Device(workers=1)
    launch = Launch(gpu, gpu.load(case.path)[case.kernel], case, case.shapes[0])
    launch()
    launch.check()
    return Side(launch, launch.warp_instructions(), launch.tier(), np.zeros(0), {})


def main() -> None:
    options = argparse.ArgumentParser(description="Measure what a move gains.")
    options.add_argument("move", choices=[move.name.lower() for move in access_plans.Move])
    options.add_argument("kernels", nargs="*", help="kernels of benchmarks/families as well")
    given = options.parse_args()
    move = access_plans.Move[given.move.upper()]
    cases = [case for case in CASES if case.kernel in given.kernels]
    kernels = {name: partial(prepared, name) for name in KERNELS}
    kernels |= {case.kernel: partial(prepared_case, case) for case in cases}
    os.environ["WARPLOOM_OPT_LEVEL"] = "3"
    whole = access_plans.TABLE
    without = tuple(row for row in whole if row.plan.move is not move)
    print(f"{'million warp instructions/s':28}{'without':>10}{'with':>10}{'gain':>8}")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for name, prepare in kernels.items():
            sides: list[Side] = []
            for table, folder in ((without, first), (whole, second)):
                os.environ["WARPLOOM_CACHE_DIR"] = folder
                access_plans.TABLE = table  # pyright: ignore[reportConstantRedefinition]
                sides.append(prepare())
            before, now = rates(name, sides)
            print(f"{name:28}{before:10.0f}{now:10.0f}{now / before:8.2f}   {sides[1].tier}")


def rates(name: str, sides: Sequence[Side]) -> list[float]:
    """Returns the millions of warp instructions a second of each side, of its fastest launch.

    Raises SystemExit where results or counters differ.
    """
    if not np.array_equal(sides[0].result, sides[1].result):
        raise SystemExit(f"{name}: the results differ")
    if sides[0].counters != sides[1].counters:
        raise SystemExit(f"{name}: the counters differ")
    rounds = [[side.seconds() for side in sides] for _ in range(ROUNDS)]
    count = sides[0].warp_instructions / 1e6
    return [count / min(each) for each in zip(*rounds, strict=True)]


if __name__ == "__main__":
    main()
