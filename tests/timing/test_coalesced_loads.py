"""Tests that loads of the same sectors by neighboring SMs are one request to L2 on Hopper."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SECTOR = 32
COPY = """
extern "C" __global__ void copy(const float *a, float *y, int sharing)
{
    int from = blockIdx.x / sharing * blockDim.x + threadIdx.x;
    y[blockIdx.x * blockDim.x + threadIdx.x] = a[from];
}
"""
PRODUCT = """
extern "C" __global__ void product(float *c, const float *a, const float *b, int inner, int width)
{
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = 32 * blockIdx.y + y, column = 32 * blockIdx.x + x;
    float sum = 0;
    for (int k = 0; k < inner; k += 32) {
        tile_a[y][x] = a[inner * row + k + x];
        tile_b[y][x] = b[width * (k + y) + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[width * row + column] = sum;
}
"""


@pytest.mark.parametrize(
    ("device", "sharing", "requests"),
    [("h100", 1, 132), ("h100", 4, 33), ("h100", 2, 66), ("h100", 132, 33), ("a100", 4, 132)],
)
def test_four_sms_request_a_sector_once(device: str, sharing: int, requests: int) -> None:
    """A block of 1,024 threads on each of 132 SMs loads 128 sectors and stores as many. Of blocks
    that load the same, those on four neighboring SMs make one request."""
    gpu = wl.Device(device, record=True)
    a, y = (gpu.zeros(132 * 1024, np.float32) for _ in range(2))
    time = gpu.compile(COPY)["copy"][132, 1024](a, y, sharing).time()
    assert time.l2_bytes == SECTOR * 128 * (requests + 132)


def test_product_requests_as_many_sectors_as_an_h100() -> None:
    """cuda-samples' matrixMul of 320 x 320 by 320 x 640: Nsight Compute counts 321,744 sectors read
    by L1 from L2, where L1 misses 509,440 (lts__t_sectors_srcunit_tex_op_read.sum)."""
    gpu = wl.Device("h100", record=True)
    a, b, c = (gpu.zeros(n, np.float32) for n in (320 * 320, 320 * 640, 320 * 640))
    run = gpu.compile(PRODUCT)["product"][(20, 10), (32, 32)](c, a, b, 320, 640)
    stored = 320 * 640 * 4
    assert (run.time().l2_bytes - stored) / SECTOR == pytest.approx(321_744, rel=0.02)
