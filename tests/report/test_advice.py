"""Every rule of advice: a kernel that triggers it, and one that must not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.report.advice import Advice

SOURCE = """
struct Particle { float x, y, z, mass, vx, vy, vz, charge; };
extern "C" __global__ void copy(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void by_lane(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (threadIdx.x % 2) { for (int k = 0; k < n; k += 64) out[i] += k; }
    else { for (int k = 0; k < n; k += 64) out[i] -= k * k; }
}
extern "C" __global__ void by_warp(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (threadIdx.x / 32 % 2) { for (int k = 0; k < n; k += 64) out[i] += k; }
    else { for (int k = 0; k < n; k += 64) out[i] -= k * k; }
}
extern "C" __global__ void structures(float* out, const Particle* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = p[i].x + p[i].y + p[i].z;
}
extern "C" __global__ void strided(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * 8];
}
extern "C" __global__ void column(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * 1024 % n];
}
extern "C" __global__ void scattered(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * i * 37 % n];
}
template <int PITCH> __device__ void tile(float* out, int n) {
    __shared__ float t[32][PITCH];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    t[y][x] = x;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = t[x][y];
}
extern "C" __global__ void tight(float* out, int n) { tile<32>(out, n); }
extern "C" __global__ void padded(float* out, int n) { tile<33>(out, n); }
__constant__ float table[64];
extern "C" __global__ void same_constant(float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[k];
}
extern "C" __global__ void lane_constant(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[threadIdx.x % 32];
}
__device__ float warp_sum(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_down_sync(0xffffffff, x, step);
    return x;
}
extern "C" __global__ void sum_of_some(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = warp_sum(in[i]);
    if (threadIdx.x % 32 == 0) out[i / 32] = x;
}
extern "C" __global__ void sum_of_all(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = warp_sum(i < n ? in[i] : 0);
    if (i < n && threadIdx.x % 32 == 0) out[i / 32] = x;
}
extern "C" __global__ void large(float* out, int n) {
    __shared__ float room[10240];  // each thread walks along 40 elements, again and again
    for (int k = 0; k < 40; k++) room[256 * k + threadIdx.x] = k ^ threadIdx.x;
    __syncthreads();
    int at = threadIdx.x;
    for (int k = 0; k < 200; k++) at = (int)room[at] + 256 * (k % 40);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = at;
}
"""

N = 4096


@cache
def module() -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("rtx-2080-ti")
    return gpu, gpu.compile(SOURCE, name="advice.cu")


def advice(name: str, grid: int, block: int, *args: object) -> dict[str, Advice]:
    """What is said of a launch with an output of N floats, by rule."""
    gpu, kernels = module()
    out = gpu.zeros(max(N, grid * block), np.float32)
    run = kernels[name][grid, block](out, *args)
    return {found.rule: found for found in run.summary.advice}


def floats(count: int) -> np.ndarray:
    return np.zeros(count, np.float32)


def line(text: str) -> str:
    """The place of the line of SOURCE that has this text."""
    [found] = [i for i, row in enumerate(SOURCE.splitlines(), 1) if text in row]
    return f"advice.cu:{found}"


def place(found: Advice) -> str:
    assert found.line is not None
    return Path(found.line).name


Launched = Callable[[], dict[str, Advice]]


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (
            "partial warps",
            lambda: advice("copy", 40, 100, floats(N), N),
            lambda: advice("copy", 32, 128, floats(N), N),
        ),
        (
            "small blocks",
            lambda: advice("copy", 128, 32, floats(N), N),
            lambda: advice("copy", 64, 64, floats(N), N),
        ),
        (
            "small grid",
            lambda: advice("copy", 16, 256, floats(N), N),
            lambda: advice("copy", 68 * 4, 256, floats(68 * 1024), 68 * 1024),
        ),
        (
            "low occupancy",
            lambda: advice("large", 680, 256, N),
            lambda: advice("copy", 68, 256, floats(N), N),
        ),
        (
            "divergence within warps",
            lambda: advice("by_lane", 8, 256, N),
            lambda: advice("by_warp", 8, 256, N),
        ),
        (
            "shuffle with lanes that exited",
            lambda: advice("sum_of_some", 16, 256, floats(N), N - 3),
            lambda: advice("sum_of_all", 16, 256, floats(N), N - 3),
        ),
        (
            "array of structures",
            lambda: advice("structures", 16, 256, floats(N * 8), N),
            lambda: advice("strided", 2, 256, floats(N), N // 8),
        ),
        (
            "strided access",
            lambda: advice("strided", 2, 256, floats(N), N // 8),
            lambda: advice("copy", 16, 256, floats(N), N),
        ),
        (
            "scattered access",
            lambda: advice("scattered", 16, 256, floats(N), N - 3),
            lambda: advice("copy", 16, 256, floats(N), N),
        ),
        (
            "bank conflicts",
            lambda: advice("tight", 2, 1024, N),
            lambda: advice("padded", 2, 1024, N),
        ),
        (
            "diverging constant memory accesses",
            lambda: advice("lane_constant", 16, 256, N),
            lambda: advice("same_constant", 16, 256, N, 3),
        ),
    ],
)
def test_a_rule_speaks_where_it_should_and_nowhere_else(
    rule: str, bad: Launched, good: Launched
) -> None:
    assert rule in bad()
    assert rule not in good()


def test_lanes_lost_are_counted() -> None:
    """100 threads are 4 warps of 128 lanes: 28 without a thread, 21.9 %."""
    found = advice("copy", 40, 100, floats(N), N)["partial warps"]
    assert "leaves 28 lanes" in found.evidence
    assert "21.9 %" in found.evidence
    assert "128, or 96" in found.text


def test_divergence_says_where_and_how_often() -> None:
    found = advice("by_lane", 8, 256, N)["divergence within warps"]
    assert place(found) == line("if (threadIdx.x % 2)")
    assert "64 of the 64" in found.evidence  # 8 blocks of 8 warps, each once


def test_a_shuffle_that_names_exited_lanes_is_distinguished_from_one_that_does_not() -> None:
    """Of 128 warps only the last, of which 3 lanes have returned, in each of its 5 steps."""
    found = advice("sum_of_some", 16, 256, floats(N), N - 3)["shuffle with lanes that exited"]
    assert place(found) == line("__shfl_down_sync")
    assert "1 of the 128 times" in found.evidence
    whole = advice("sum_of_some", 16, 256, floats(N), N)
    assert "shuffle with lanes that exited" not in whole
    # A warp that was never full has no lanes that exited.
    partial = advice("sum_of_some", 1, 100, floats(N), N)
    assert "shuffle with lanes that exited" not in partial


def test_a_structure_is_found_from_its_addresses() -> None:
    found = advice("structures", 16, 256, floats(N * 8), N)["array of structures"]
    assert place(found) == line("p[i].x + p[i].y")
    assert "structures of 32 bytes" in found.evidence
    assert "offsets 0, 4, 8" in found.evidence


def test_padding_is_the_least_that_ends_the_conflicts() -> None:
    found = advice("tight", 2, 1024, N)["bank conflicts"]
    assert place(found) == line("out[i] = t[x][y]")
    assert "Pad each row of 128 bytes by 4 bytes, to 132" in found.text
    assert "took 32 wavefronts where 1 would do" in found.evidence
    assert "because all 32 lanes access the same bank" in found.evidence


def test_strides_are_reported_in_bytes() -> None:
    found = advice("strided", 2, 256, floats(N), N // 8)["strided access"]
    assert "lane addresses are 32 bytes apart, but each lane uses only 4" in found.evidence
    assert "12 % of the bytes moved" in found.evidence


def test_low_occupancy_names_its_limiter_and_the_next_step() -> None:
    """40 KiB of 64: one block of 8 warps of 32; two would need 32 KiB each. Each warp waits for 200
    loads, one after the other."""
    found = advice("large", 680, 256, N)["low occupancy"]
    assert "8 of 32 warps" in found.evidence
    assert "limited by 40,960 bytes of shared memory per block" in found.evidence
    assert (
        "32,768 instead of 40,960 bytes of shared memory per block gives 50 %, and saves up to"
        in found.text
    )


def test_the_grid_is_measured_against_the_capacity() -> None:
    """68 SMs with 4 blocks of 256 threads each (32 warps): 272."""
    found = advice("copy", 16, 256, floats(N), N)["small grid"]
    assert "16 blocks" in found.evidence
    assert "272" in found.evidence


def test_constants_by_lane_are_32_words() -> None:
    found = advice("lane_constant", 16, 256, N)["diverging constant memory accesses"]
    assert "4,096 passes for 128 requests" in found.evidence
