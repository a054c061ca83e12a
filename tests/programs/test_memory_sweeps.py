"""Copies with an offset and with a stride, structures and transposes, on devices old and new.

The kernels are those of the CUDA C Best Practices Guide ("Coalesced Access to Global Memory"), the
transactions those of its figures and of the CUDA C Programming Guide 4.2, F.3 to F.5: worked out
below from a warp's span of bytes.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void offset_copy(float* out, const float* in, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + offset;
    out[i] = in[i];
}
extern "C" __global__ void stride_copy(float* out, const float* in, int stride) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    out[i] = in[i];
}
struct Point { float x, y, z, w; };
extern "C" __global__ void structures(float* out, const Point* points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = points[i].x + points[i].y;
}
extern "C" __global__ void arrays(float* out, const float* x, const float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + y[i];
}
"""
WARPS = 4
THREADS = 32 * WARPS


@cache
def module(cc: str, l1_global: bool | None = None) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device(cc=cc, l1_global=l1_global)
    return gpu, gpu.compile(SOURCE)


def loads(run: wl.Run) -> dict[int, float]:
    """Load transactions of each size, a warp."""
    counters = run.counters
    found = {n: counters[f"global_load_transactions_{n}"] / WARPS for n in (32, 64, 128)}
    return {n: count for n, count in found.items() if count}


def copy(name: str, cc: str, step: int, l1_global: bool | None = None) -> wl.Run:
    gpu, kernels = module(cc, l1_global)
    source = gpu.to_device(np.arange(THREADS * 40, dtype=np.float32))
    out = gpu.zeros(THREADS * 40, np.float32)
    return kernels[name][1, THREADS](out, source, step)


def half_warps(offset: int) -> dict[int, float]:
    """1.3: 64 bytes of a half-warp, from byte s of a segment of 128."""
    found: dict[int, float] = {}
    for half in (0, 1):
        s = (4 * offset + 64 * half) % 128
        parts = [64] if s % 64 == 0 else [128]
        if s > 64:  # over the end of the segment: its last bytes, and the next one's first
            parts = [32 if part <= 32 else 64 for part in (128 - s, s - 64)]
        for part in parts:
            found[part] = found.get(part, 0) + 1
    return found


@pytest.mark.parametrize("offset", range(33))
def test_offset_sweep(offset: int) -> None:
    in_order = {64: 2} if offset % 16 == 0 else {32: 32}
    lines = {128: 1 if offset % 32 == 0 else 2}
    segments = {32: 4 if offset % 8 == 0 else 5}
    assert loads(copy("offset_copy", "1.1", offset)) == in_order
    assert loads(copy("offset_copy", "1.3", offset)) == half_warps(offset)
    assert loads(copy("offset_copy", "2.0", offset)) == lines
    assert loads(copy("offset_copy", "2.0", offset, l1_global=False)) == segments
    assert loads(copy("offset_copy", "3.5", offset)) == segments
    assert loads(copy("offset_copy", "3.5", offset, l1_global=True)) == lines
    assert loads(copy("offset_copy", "5.2", offset)) == segments
    assert loads(copy("offset_copy", "7.0", offset)) == segments


# 1.3, a half-warp: 16 words over 64 * stride bytes, in segments of 128 of which all, one lane every
# 64 bytes, or one lane alone is used.
HALF_WARP_STRIDES = {1: {64: 2}, 2: {128: 2}, 4: {128: 4}, 8: {128: 8}, 16: {128: 16}, 32: {32: 32}}


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 8, 16, 32])
def test_stride_sweep(stride: int) -> None:
    assert loads(copy("stride_copy", "1.1", stride)) == ({64: 2} if stride == 1 else {32: 32})
    if stride in HALF_WARP_STRIDES:
        assert loads(copy("stride_copy", "1.3", stride)) == HALF_WARP_STRIDES[stride]
    lines, segments = {128: min(32, stride)}, {32: min(32, 4 * stride)}
    assert loads(copy("stride_copy", "2.0", stride)) == lines
    assert loads(copy("stride_copy", "2.0", stride, l1_global=False)) == segments
    for cc in ("3.5", "5.2", "7.0"):
        run = copy("stride_copy", cc, stride)
        assert loads(run) == segments
        assert run.counters.global_load_bytes_requested == 128 * WARPS
        assert run.counters.global_load_bytes_moved == 32 * min(32, 4 * stride) * WARPS


def test_stores_go_past_l1() -> None:
    run = copy("stride_copy", "2.0", 2)
    assert run.counters.global_store_transactions_32 == 8 * WARPS
    assert run.counters.global_store_transactions == 8 * WARPS


@pytest.mark.parametrize(
    ("cc", "structures", "arrays"),
    [
        ("1.1", {32: 64}, {64: 4}),  # two loads a warp
        ("1.3", {128: 8}, {64: 4}),  # a half-warp's structures fill two segments
        ("2.0", {128: 8}, {128: 2}),
        ("7.0", {32: 32}, {32: 8}),
    ],
)
def test_arrays_of_structures_move_what_nobody_asked_for(
    cc: str, structures: dict[int, float], arrays: dict[int, float]
) -> None:
    gpu, kernels = module(cc)
    out = gpu.zeros(THREADS, np.float32)
    points = gpu.zeros((THREADS, 4), np.float32)
    plain = [gpu.zeros(THREADS, np.float32) for _ in range(2)]
    assert loads(kernels["structures"][1, THREADS](out, points)) == structures
    assert loads(kernels["arrays"][1, THREADS](out, *plain)) == arrays


SIDE, TILE = 64, 16
TRANSPOSE = f"""
#define TILE {TILE}
#define TRANSPOSE(NAME, PITCH) \\
extern "C" __global__ void NAME(float* out, const float* in, int n) {{ \\
    __shared__ float tile[TILE][PITCH]; \\
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y; \\
    tile[threadIdx.y][threadIdx.x] = in[y * n + x]; \\
    __syncthreads(); \\
    x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y; \\
    out[y * n + x] = tile[threadIdx.x][threadIdx.y]; \\
}}
TRANSPOSE(tiled, TILE)
TRANSPOSE(padded, TILE + 1)
extern "C" __global__ void naive(float* out, const float* in, int n) {{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}}
"""


@pytest.mark.parametrize(
    ("cc", "naive_store", "tiled_store", "tiled_ways", "padded_ways"),
    [
        # A half-warp is a row of the tile: a column of 16 rows of 64 bytes is one of 16 banks.
        ("1.1", {32: 32}, {64: 2}, 32, 2),
        ("1.3", {32: 32}, {64: 2}, 32, 2),
        # 16 rows of 16 words: two of 32 banks, 8 rows each, for both halves of the warp in turn
        # (word y of a row is beside word y + 1, which the other half wants). Padded, row x begins
        # at word 17 x: one bank each, but 17 * 15 + 1 = 256 comes round to bank 0 again.
        ("2.0", {32: 16}, {32: 4}, 8, 2),
        ("7.0", {32: 16}, {32: 4}, 8, 2),
    ],
)
def test_transposes(
    cc: str,
    naive_store: dict[int, int],
    tiled_store: dict[int, int],
    tiled_ways: int,
    padded_ways: int,
) -> None:
    gpu = wl.Device(cc=cc)
    kernels = gpu.compile(TRANSPOSE)
    source = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    warps = SIDE * SIDE // 32
    for name, stored, ways in (
        ("naive", naive_store, 0),
        ("tiled", tiled_store, tiled_ways),
        ("padded", tiled_store, padded_ways),
    ):
        out = gpu.zeros((SIDE, SIDE), np.float32)
        run = kernels[name][(SIDE // TILE, SIDE // TILE), (TILE, TILE)](out, source, SIDE)
        assert np.array_equal(out.copy_to_host(), source.T)
        made = {n: run.counters[f"global_store_transactions_{n}"] / warps for n in (32, 64, 128)}
        assert {n: count for n, count in made.items() if count} == stored
        assert run.counters.shared_load_wavefronts == ways * warps
