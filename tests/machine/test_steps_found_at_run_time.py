"""Checks loads whose step from lane to lane is found at run time, after a loop that lanes leave at
different iterations: memory and counts are equal on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl

# The remainder comes first, as compilers unroll a loop by four.
SOURCE = """
extern "C" __global__ void sums(const int *x, int *y, int n, int lanes)
{
    int lane = threadIdx.y * blockDim.x + threadIdx.x, at = lane, sum = 0;
    if (lane >= lanes)
        return;
#pragma unroll 1
    for (int rest = (n - lane + 31) / 32 % 4; rest; rest--, at += 32)
        sum += x[at];
#pragma unroll 1
    for (; at < n; at += 128)
        sum += x[at] + 2 * x[at + 32] + 3 * x[at + 64] + 4 * x[at + 96];
    y[lane] = sum;
}
"""


def expected_sum(x: Any, lane: int) -> int:
    """Returns what a lane sums: the remainder with factor 1, then others with 1 to 4 in turn."""
    elements = x[lane::32]
    rest = len(elements) % 4
    return int(elements[:rest].sum() + (elements[rest:].reshape(-1, 4) @ [1, 2, 3, 4]).sum())


@pytest.mark.parametrize("block", [(32, 1), (16, 2), (8, 4)])
@pytest.mark.parametrize("lanes", [32, 31, 20])
@pytest.mark.parametrize(
    "n",
    [
        1024,  # All lanes have one step.
        1000,  # Lanes 8 to 31 are ahead of the others, so the last lane has another step.
        1023,  # Only the last lane has another step.
        993,  # Lane 0 alone has left late: lanes 0 and 1 suggest a step that no other lane has.
        1009,  # The second half of the warp is ahead.
    ],
)
def test_loads_after_lanes_have_left_a_loop(block: tuple[int, int], lanes: int, n: int) -> None:
    x = np.arange(n, dtype=np.int32) ** 2 % 1009
    found: list[Any] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device("a100", engine=engine)
        y = gpu.zeros(32, np.int32)
        run = gpu.compile(SOURCE)["sums"][1, block](gpu.to_device(x), y, n, lanes)
        found.append((dict(run.counters), y.copy_to_host().tolist()))
    assert found[1] == found[0]
    sums = [expected_sum(x, lane) if lane < lanes else 0 for lane in range(32)]
    assert found[1][1] == sums
