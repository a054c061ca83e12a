"""What parallel work and arithmetic cost where memory's latency is hidden: the experiment of
`examples/statements/intensity.cu`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import warploom as wl

SOURCE = Path(__file__).parents[2] / "examples" / "statements" / "intensity.cu"


def cycles(grid: int, block: int, rounds: int) -> float:
    """Returns the modelled cycles of a launch on an H100."""
    kernel = wl.Device("h100", record=True).load(SOURCE)["intensity"]
    elements = np.ones(grid * block, np.float32)
    return kernel[grid, block](elements, np.zeros_like(elements), rounds).time().cycles


def test_more_warps_and_more_arithmetic_cost_little_time() -> None:
    """4,224 warps are eight on each scheduler of 132 SMs. Their loads wait together, and 64
    multiply-adds of eight warps take 512 issue slots, about as long as one load from DRAM: 64 times
    the arithmetic takes less than twice the time, and 4,224 times the work less than three
    times."""
    full = cycles(528, 256, 64)
    assert full < 3 * cycles(1, 32, 64)
    assert full < 2 * cycles(528, 256, 1)
