"""Rows of lanes that lie in pairs, in a loop that runs in batches of iterations."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SUMS = """
extern "C" __global__ void sums(const float *x, float *y, int n)
{
    int column = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[(i * 8 + row) * 64 + column];
        y[(i * 8 + row) * 64 + column] = sum;
    }
}
"""


@pytest.mark.parametrize("block", [(6, 6), (2, 8), (10, 3)])
def test_sums_down_columns_of_pairs(block: tuple[int, int]) -> None:
    width, height, count = *block, 50
    x = np.arange(count * 8 * 64, dtype=np.float32).reshape(count, 8, 64) % 7
    gpu = wl.Device("h100")
    y = gpu.zeros((count, 8, 64), np.float32)
    gpu.compile(SUMS)["sums"][3, block](x, y, count)
    expected = np.zeros_like(x)
    columns = 3 * width
    expected[:, :height, :columns] = x[:, :height, :columns].cumsum(axis=0)
    assert np.array_equal(y.copy_to_host(), expected)
