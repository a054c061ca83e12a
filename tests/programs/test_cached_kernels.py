"""Caches of real devices under kernels whose reuse is plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl

SOURCE = """
__constant__ float table[64];
extern "C" __global__ void again(float* out, float* in, int n) {
    float sum = 0;
    for (int k = 0; k < n; k++) { sum += in[threadIdx.x]; __syncthreads(); }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void read_only(float* out, const float* __restrict__ in, int n, int step) {
    float sum = 0;
    for (int k = 0; k < n; k++) { sum += __ldg(in + threadIdx.x + k * step); __syncthreads(); }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void constants(float* out, int n) {
    float sum = 0;
    for (int k = 0; k < n; k++) { sum += table[k]; __syncthreads(); }
    out[threadIdx.x] = sum;
}
"""


def run(name: str, cc: str, *args: object, engine: str = "compiled", **options: Any) -> wl.Run:
    gpu = wl.Device(cc=cc, engine=engine, caches=True, **options)
    out = gpu.zeros(32, np.float32)
    data = gpu.to_device(np.ones(32, np.float32))
    given = (out, *args) if name == "constants" else (out, data, *args)
    return gpu.compile(SOURCE)[name][1, 32](*given)


def hits(run: wl.Run, kind: str = "global_load") -> tuple[int, int, int, int]:
    names = ("l1_hits", "l1_misses", "l2_hits", "l2_misses")
    l1_hits, l1_misses, l2_hits, l2_misses = (run.counters[f"{kind}_{name}"] for name in names)
    return l1_hits, l1_misses, l2_hits, l2_misses


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("cc", "expected"),
    [
        ("1.1", (0, 0, 0, 0)),  # no cache for global memory
        ("2.0", (36, 4, 0, 4)),  # 10 loads of 4 sectors: the first misses everywhere
        ("3.5", (0, 0, 36, 4)),  # L2 only
        ("5.0", (0, 0, 36, 4)),
        ("5.2", (0, 0, 36, 4)),
        ("6.1", (36, 4, 0, 4)),
        ("9.0", (36, 4, 0, 4)),
    ],
)
def test_loads_hit_where_the_device_caches_them(
    cc: str, expected: tuple[int, int, int, int], engine: str
) -> None:
    assert hits(run("again", cc, 10, engine=engine)) == expected


def test_l1_can_be_asked_for_and_left_out() -> None:
    assert hits(run("again", "5.2", 10, l1_global=True)) == (36, 4, 0, 4)
    assert hits(run("again", "9.0", 10, l1_global=False)) == (0, 0, 36, 4)


def test_read_only_loads_have_a_cache_where_plain_ones_have_none() -> None:
    assert hits(run("read_only", "3.5", 10, 0)) == (36, 4, 0, 4)
    assert hits(run("read_only", "5.0", 10, 0)) == (36, 4, 0, 4)


def test_stores_go_to_l2() -> None:
    assert hits(run("again", "9.0", 1), "global_store") == (0, 0, 0, 4)


def test_constants_miss_once_a_sector() -> None:
    """16 words of 4 bytes are two sectors of 32."""
    assert hits(run("constants", "9.0", 16), "constant_load") == (14, 2, 0, 2)


def test_the_report_shows_hit_rates_and_lines() -> None:
    made = run("again", "9.0", 10)
    assert "Global Load L1 Hit Rate" in made.report()
    assert sum(line.global_load_l1_hits for line in made.counters.by_line().values()) == 36
    assert "L1 Hit Rate" not in wl_without_caches().report()


def wl_without_caches() -> wl.Run:
    gpu = wl.Device(cc="9.0")
    data = gpu.zeros(32, np.float32)
    return gpu.compile(SOURCE)["again"][1, 32](data, data, 3)
