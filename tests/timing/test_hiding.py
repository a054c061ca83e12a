"""Tests which latencies other warps hide, and which effects nothing hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from warploom.timing.result import Timing

CHASES = """
extern "C" __global__ void chase(long long *x, long long *y, int steps) {
    long long *p = x + (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * (long long)steps * 16;
    for (int i = 0; i < steps; i++) p = (long long *)__ldcg(p);
    if (p == 0) y[0] = 1;
}
extern "C" __global__ void wide(long long *x, long long *y, int steps) {
    long long *p = x + (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * (long long)steps * 32
        + threadIdx.x % 32;
    for (int i = 0; i < steps; i++) p = (long long *)__ldcg(p);
    if (p == 0) y[0] = 1;
}
"""
STEPS = 64


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize(("device", "latency"), [("jetson-tk1", 440), ("a100", 570)])
def test_bandwidth_follows_littles_law(device: str, latency: int, warps: int) -> None:
    """Each warp has one sector of 32 bytes in flight from DRAM, with a latency of 570 cycles on an
    A100 (gpu-benches; an estimate for the other, which has one SM): n warps on each SM move n times
    as much. Both hold 64 warps on an SM, and have bandwidth for that."""
    gpu = wl.Device(device, record=True)
    all_warps, blocks = warps * gpu.spec.sms, gpu.spec.sms * (1 + warps // 64)
    x = gpu.zeros((all_warps * STEPS, 16), np.int64)
    x.view[:, 0] = x.address + 128 * (np.arange(all_warps * STEPS) + 1)
    kernel = gpu.compile(CHASES)["chase"]
    time = kernel[blocks, 32 * all_warps // blocks](x, gpu.zeros(1, np.int64), STEPS).time()
    law = all_warps * 32 / latency
    assert all_warps * 32 * STEPS / time.cycles == pytest.approx(law, rel=0.05)
    assert time.dram_read_bytes == all_warps * 32 * STEPS


def test_littles_law_is_limited_by_bandwidth() -> None:
    """64 warps on each SM of a V100 with 256 bytes in flight each would move 80 x 64 x 256 / 436 =
    3,006 bytes a cycle; reads alone get 866 GB/s (gpu-stream), 628 bytes a cycle of 1,380 MHz."""
    gpu = wl.Device("v100", record=True)
    rows = 80 * 64 * STEPS
    x = gpu.zeros((rows, 32), np.int64)
    x.view[:] = x.address + 256 * (np.arange(rows)[:, None] + 1) + 8 * np.arange(32)
    kernel = gpu.compile(CHASES)["wide"]
    time = kernel[160, 1024](x, gpu.zeros(1, np.int64), STEPS).time()
    assert 256 * rows / time.cycles == pytest.approx(628, rel=0.1)
    assert time.bound.startswith("bound by DRAM")


@pytest.mark.parametrize(
    ("device", "copied"),
    [
        ("v100", 802),
        ("a100", 1381),
        pytest.param("h200", 3165, marks=pytest.mark.nightly),
        pytest.param("l40s", 770, marks=pytest.mark.nightly),
    ],
)
def test_saxpy_achieves_copy_bandwidth(device: str, copied: int) -> None:
    """Compares with GB/s of gpu-benches' gpu-stream, "scale" at full occupancy (on an L40, not an
    L40S; their memories are the same): L2 is full before, and half of what a copy leaves there is
    dirty."""
    gpu = wl.Device(device, record=True)
    n = 1 << 24
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    run = gpu.load("examples/saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y)
    time = run.time(l2=wl.CacheModel(dirty=0.5))
    assert 0.9 * copied < 12 * n / time.seconds / 1e9 < copied
    assert time.bound.startswith("bound by DRAM")
    assert time.dram_read_bytes == pytest.approx(8 * n, rel=1e-3)
    written = time.dram_written_bytes + time.l2_dirty_bytes
    assert written == pytest.approx(4 * n + gpu.spec.l2_bytes / 2, rel=1e-3)


SIDES = """
extern "C" __global__ void one(float *y, int m) {
    float a = threadIdx.x;
    for (int i = 0; i < m; i++) a = a * 1.5f + .5f;
    y[threadIdx.x] = a;
}
extern "C" __global__ void inside(float *y, int m) {
    float a = threadIdx.x;
    if (threadIdx.x % 2) for (int i = 0; i < m; i++) a = a * 1.5f + .5f;
    else for (int i = 0; i < m; i++) a = a * 2.5f + .25f;
    y[threadIdx.x] = a;
}
extern "C" __global__ void between(float *y, int m) {
    float a = threadIdx.x;
    if (threadIdx.x / 32 % 2) for (int i = 0; i < m; i++) a = a * 1.5f + .5f;
    else for (int i = 0; i < m; i++) a = a * 2.5f + .25f;
    y[threadIdx.x] = a;
}
extern "C" __global__ void ways(float *y, int m, int n) {
    float a = threadIdx.x;
    for (int way = 0; way < n; way++)
        if (threadIdx.x % n == way) for (int i = 0; i < m; i++) a = a * 1.5f + .5f;
    y[threadIdx.x] = a;
}
"""


def region(name: str, threads: int, *more: int) -> int:
    """Returns the cycles of 1,024 further iterations of the loops."""
    gpu = wl.Device("v100", record=True)
    kernel = gpu.compile(SIDES)[name]
    y = gpu.zeros(threads, np.float32)
    short, long = (kernel[1, threads](y, m, *more).time().cycles for m in (1024, 2048))
    return long - short


def test_divergence_within_warps_doubles_time_between_warps_is_free() -> None:
    whole = region("one", 32)
    assert region("inside", 32) == 2 * whole
    assert region("between", 64) == region("one", 64) == whole


def test_32_divergent_paths_take_32_times() -> None:
    assert region("ways", 32, 32) == pytest.approx(32 * region("ways", 32, 1), rel=0.01)


@pytest.mark.nightly
def test_stride_of_32_costs_ratio_of_sectors() -> None:
    """Eight consecutive floats share a sector; at a stride of 32 each has its own. L2 is full
    before, and half of what a copy leaves there is dirty."""
    gpu = wl.Device("v100", record=True)
    text = """extern "C" __global__ void copy(const float *x, float *y, int stride) {
        long i = (long)(blockIdx.x * blockDim.x + threadIdx.x) * stride; y[i] = x[i]; }"""
    kernel = gpu.compile(text)["copy"]
    more = list[int]()  # the cycles of twice as many elements less those of as many
    for stride in (1, 32):
        n = 1 << 20
        x, y = gpu.zeros(n * stride, np.float32), gpu.zeros(n * stride, np.float32)
        runs = [kernel[m // 256, 256](x, y, stride) for m in (n // 2, n)]
        few, many = (run.time(l2=wl.CacheModel(dirty=0.5)).cycles for run in runs)
        more.append(many - few)
    assert more[1] / more[0] == pytest.approx(8, rel=0.15)


TWO_KINDS = """
extern "C" __global__ void waits(long long *x, long long *y, int steps) {
    long long *p = x + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    for (int i = 0; i < steps; i++) p = (long long *)__ldcg(p);
    if (p == 0) y[0] = 1;
}
extern "C" __global__ void computes(long long *x, long long *y, int steps) {
    float a = threadIdx.x, b = a, c = a, d = a;
    for (int i = 0; i < steps; i++) {
        a = a * 1.5f + .5f; b = b * 1.5f + .5f; c = c * 1.5f + .5f; d = d * 1.5f + .5f;
    }
    if (a + b + c + d == 3.f) y[0] = 1;
}
"""


def with_registers(name: str, registers: int) -> Timing:
    """Returns the time of a kernel whose threads have `registers` registers, in four waves of one
    SM's blocks."""
    gpu = wl.Device("v100", record=True)
    kernel = gpu.compile(TWO_KINDS)[name]
    kernel.__dict__["resources"] = replace(kernel.resources, registers=registers)
    blocks = 80 * 32
    x = gpu.zeros((blocks * 8, 16), np.int64)
    x.view[:, 0] = x.address + 128 * np.arange(blocks * 8)  # every line points at itself
    return kernel[blocks, 256](x, gpu.zeros(1, np.int64), 64).time()


@pytest.mark.nightly
def test_twice_the_registers_halve_occupancy_and_slow_memory_bound_kernel() -> None:
    """64 K registers hold 64 warps of 32 threads with 32 registers each, and 32 with 64. A warp
    that waits for L2 all the time needs the others; four independent sums in each of 8 warps of a
    scheduler are enough for an FP32 unit that accepts one every second cycle."""
    few, many = (with_registers("waits", registers) for registers in (32, 64))
    assert few.achieved_occupancy == pytest.approx(1, abs=0.1)
    assert many.achieved_occupancy == pytest.approx(few.achieved_occupancy / 2, rel=0.05)
    assert many.cycles == pytest.approx(2 * few.cycles, rel=0.1)
    few, many = (with_registers("computes", registers) for registers in (32, 64))
    assert many.achieved_occupancy == pytest.approx(few.achieved_occupancy / 2, rel=0.05)
    assert many.cycles == pytest.approx(few.cycles, rel=0.05)


BLOCKED = """
extern "C" __global__ void product(const float4 *a, const float4 *b, float4 *c, int n) {
    __shared__ float4 left[8][16], right[8][16];
    float sum[8][4] = {};
    int x = threadIdx.x % 16, y = threadIdx.x / 16, row = threadIdx.x / 16;
    for (int k = 0; k < n; k += 8) {
        float4 l = a[(k + row) * n / 4 + blockIdx.y * 16 + x];
        float4 r = b[(k + row) * n / 4 + blockIdx.x * 16 + x];
        __syncthreads();
        left[row][x] = l; right[row][x] = r;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            float4 p = left[i][2 * y], q = left[i][2 * y + 1], w = right[i][x];
            float u[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
            #pragma unroll
            for (int j = 0; j < 8; j++) {
                sum[j][0] += u[j] * w.x; sum[j][1] += u[j] * w.y;
                sum[j][2] += u[j] * w.z; sum[j][3] += u[j] * w.w;
            }
        }
    }
    for (int j = 0; j < 8; j++)
        c[(blockIdx.y * 64 + y * 8 + j) * n / 4 + blockIdx.x * 16 + x] =
            make_float4(sum[j][0], sum[j][1], sum[j][2], sum[j][3]);
}
"""


@pytest.mark.nightly
def test_register_blocked_product_is_bound_by_fp32() -> None:
    """In an iteration a warp makes 256 products, which occupy its scheduler's FP32 unit for 512
    cycles. It reads 24 times 16 bytes a lane from shared memory, by quarter-warps: the warps of
    four schedulers take 384 wavefronts for that."""
    gpu = wl.Device("jetson-xavier", record=True)
    n = 768
    rng = np.random.default_rng(1)
    a, b = (rng.random((n, n), np.float32) for _ in range(2))
    c = gpu.zeros((n, n), np.float32)
    kernel = gpu.compile(BLOCKED)["product"]
    run = kernel[(n // 64, n // 64), 128](gpu.to_device(a), gpu.to_device(b), c, n)
    np.testing.assert_allclose(c.copy_to_host(), a.T @ b, rtol=1e-4)
    time = run.time()
    assert time.roofs[0].name == "FP32"
    assert time.bound.startswith("bound by the FP32 units")
