"""Tests the latency and throughput of the texture path, and its memory traffic."""

from __future__ import annotations

import numpy as np
import pytest
from test_accounts import balanced

import warploom as wl
from warploom.timing.result import Timing

SOURCE = """
extern "C" __global__ void chain(cudaTextureObject_t t, int *y, int steps) {
    int i = 0;
    for (int s = 0; s < steps; s++) i = tex1Dfetch<int>(t, i);
    y[threadIdx.x] = i;
}
extern "C" __global__ void many(cudaTextureObject_t t, int *y, int steps) {
    int i = 0;
    for (int s = 0; s < steps; s++) i += tex1Dfetch<int>(t, s % 8);
    y[threadIdx.x] = i;
}
extern "C" __global__ void copy(cudaTextureObject_t t, cudaSurfaceObject_t s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    surf2Dwrite(tex2D<float>(t, x + 0.5f, blockIdx.y + 0.5f), s, x * 4, blockIdx.y);
}
extern "C" __global__ void apart(cudaTextureObject_t t, float *y, int rows) {
    y[threadIdx.x] = tex2D<float>(t, 8 * threadIdx.x + 8.f, (threadIdx.x * 7 % rows) + 1.f);
}
"""


def steps(device: str, name: str, block: int) -> float:
    """Returns the cycles of one more step: those of 64 less those of 32."""
    gpu = wl.Device(device, record=True)
    kernel = gpu.compile(SOURCE)[name]
    texture = gpu.texture(np.zeros(256, np.int32))
    runs = [kernel[1, block](texture, gpu.zeros(block, np.int32), n) for n in (32, 64)]
    few, more = (run.time(scheduler="lrr") for run in runs)  # warps stay together
    return (more.cycles - few.cycles) / 32


def test_dependent_fetches_take_texture_latency() -> None:
    """Each fetch returns the coordinates of the next one; all hit the cache. A step adds the branch
    and the address computation of the loop, less than a fifth of the latency."""
    assert 90 <= steps("v100", "chain", 32) < 1.2 * 90


@pytest.mark.parametrize(("device", "texels"), [("v100", 4), ("gtx-1080", 8)])
def test_independent_fetches_take_texture_throughput(device: str, texels: int) -> None:
    """An SM of a V100 has 4 texture units, one of a GTX 1080 has 8: 32 warps of 32 lanes take 256
    or 128 cycles, which is more than all other work."""
    assert steps(device, "many", 1024) == pytest.approx(1024 / texels, rel=0.05)


def copied(device: str) -> Timing:
    gpu = wl.Device(device, record=True)
    source = np.arange(256 * 256, dtype=np.float32).reshape(256, 256)
    target = gpu.surface(np.zeros_like(source))
    run = gpu.compile(SOURCE)["copy"][(2, 256), 128](gpu.texture(source), target)
    np.testing.assert_array_equal(target.copy_to_host(), source)
    return run.time()


@pytest.mark.parametrize("device", ["gtx-480", "k40", "v100", "h100"])
def test_texels_are_read_from_memory_once(device: str) -> None:
    """256 KiB are read and as many written, in whole sectors, which stay in L2 where there is
    one."""
    time = copied(device)
    balanced(time)
    written = time.dram_written_bytes + time.l2_dirty_bytes
    assert time.dram_read_bytes == written == 4 * 256 * 256
    assert time.warp_states["long_scoreboard"] > 0


def test_request_can_touch_more_sectors_than_lanes() -> None:
    """Between four texels, at a distance of two rows and never in another lane's sector: 32 lanes
    take 2 sectors of each of two rows, or more where they begin one."""
    gpu = wl.Device("v100", record=True)
    texture = gpu.texture(np.zeros((64, 264), np.float32), filter="linear")
    run = gpu.compile(SOURCE)["apart"][1, 32](texture, gpu.zeros(32, np.float32), 60)
    time = run.time()
    balanced(time)
    sectors = run.counters.texture_load_sectors
    assert sectors > 64
    assert time.dram_read_bytes == 32 * sectors
