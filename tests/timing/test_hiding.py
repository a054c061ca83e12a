"""What other warps hide, and what nothing does."""

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
"""
STEPS = 64


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_bytes_a_cycle_follow_littles_law(warps: int) -> None:
    """Each warp has one line of 32 bytes on its way from DRAM, which is there after 436 cycles on a
    V100 (gpu-benches), whatever the other warps do: so many warps move so many times as much."""
    gpu = wl.Device("v100", record=True)
    x = gpu.zeros((warps * STEPS, 16), np.int64)
    x.view[:, 0] = x.address + 128 * (np.arange(warps * STEPS) + 1)
    kernel = gpu.compile(CHASES)["chase"]
    time = kernel[1, 32 * warps](x, gpu.zeros(1, np.int64), STEPS).time()
    assert warps * 32 * STEPS / time.cycles == pytest.approx(warps * 32 / 436, rel=0.05)
    assert time.dram_read_bytes == warps * 32 * STEPS


@pytest.mark.parametrize("device", ["v100", "a100"])
def test_saxpy_reaches_the_bandwidth_of_a_copy(device: str) -> None:
    """gpu-benches, gpu-stream: a scaled copy moves 802 GB/s on a V100, 1,381 on an A100."""
    gpu = wl.Device(device, record=True)
    n = 1 << 22
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    time = gpu.load("examples/saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y).time()
    copied = {"v100": 802e9, "a100": 1381e9}[device]
    assert 0.9 * copied < 12 * n / time.seconds < copied
    assert time.bound.startswith("bound by DRAM")
    assert time.dram_bytes == 12 * n


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
    """Cycles of the loops of 1,024 more rounds."""
    gpu = wl.Device("v100", record=True)
    kernel = gpu.compile(SIDES)[name]
    y = gpu.zeros(threads, np.float32)
    short, long = (kernel[1, threads](y, m, *more).time().cycles for m in (1024, 2048))
    return long - short


def test_sides_inside_a_warp_double_the_region_and_between_warps_cost_nothing() -> None:
    whole = region("one", 32)
    assert region("inside", 32) == 2 * whole
    assert region("between", 64) == region("one", 64) == whole


def test_thirty_two_ways_take_thirty_two_times() -> None:
    assert region("ways", 32, 32) == pytest.approx(32 * region("ways", 32, 1), rel=0.01)


def test_a_stride_of_32_costs_the_ratio_of_its_sectors() -> None:
    """Consecutive floats share a sector by eights; at a stride of 32 each has one of its own."""
    gpu = wl.Device("v100", record=True)
    text = """extern "C" __global__ void copy(const float *x, float *y, int stride) {
        long i = (long)(blockIdx.x * blockDim.x + threadIdx.x) * stride; y[i] = x[i]; }"""
    kernel = gpu.compile(text)["copy"]
    n, cycles = 1 << 18, list[int]()
    for stride in (1, 32):
        x, y = gpu.zeros(n * stride, np.float32), gpu.zeros(n * stride, np.float32)
        cycles.append(kernel[n // 256, 256](x, y, stride).time().cycles)
    assert cycles[1] / cycles[0] == pytest.approx(8, rel=0.15)


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
    """The time of a kernel whose threads take so many registers, in four waves of one SM's."""
    gpu = wl.Device("v100", record=True)
    kernel = gpu.compile(TWO_KINDS)[name]
    kernel.__dict__["resources"] = replace(kernel.resources, registers=registers)
    blocks = 80 * 32
    x = gpu.zeros((blocks * 8, 16), np.int64)
    x.view[:, 0] = x.address + 128 * np.arange(blocks * 8)  # every line points at itself
    return kernel[blocks, 256](x, gpu.zeros(1, np.int64), 64).time()


def test_twice_the_registers_halve_occupancy_and_slow_what_waits_for_memory() -> None:
    """64 K registers hold 64 warps of 32 threads with 32 registers each, and 32 with 64. A warp
    that waits for L2 all the time needs the others; four independent sums in each of 8 warps a
    scheduler are enough for an FP32 unit that takes one every second cycle."""
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


def test_a_register_blocked_product_is_bound_by_fp32() -> None:
    """In a round a warp makes 256 products, for which its scheduler's FP32 unit takes 512 cycles.
    It reads 24 times 16 bytes a lane from shared memory, by quarter-warps: the warps of four
    schedulers take 384 wavefronts for that."""
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
