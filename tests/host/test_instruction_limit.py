"""`max_instructions` ends a launch soon after its last instruction, whatever the kernel is."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void mark(unsigned char* marks) { marks[blockIdx.x] = 1; }
extern "C" __global__ void once(unsigned char* marks) {
    for (int i = 0; i < 4; i++) ((volatile unsigned char*)marks)[blockIdx.x] = 1;
}
"""

BLOCKS = 4_000_000
LOOK = 1 << 20


@pytest.mark.parametrize("kernel", ["mark", "once"])
@pytest.mark.parametrize("limit", [0, 1000, 2_000_000])
def test_blocks_beyond_the_limit_do_not_run(kernel: str, limit: int) -> None:
    """In kernels without loops, too: the limit is looked at every 2^20 warp instructions."""
    gpu = wl.Device("h100")
    marks = gpu.zeros(BLOCKS, np.uint8)
    launch = gpu.compile(SOURCE)[kernel][BLOCKS, 1]
    with pytest.raises(wl.InstructionLimit):
        launch(marks, max_instructions=limit)
    started = int(marks.copy_to_host().sum())
    assert started <= limit + LOOK
    assert started < BLOCKS // 2
    launch(marks)
    assert marks.copy_to_host().all()
