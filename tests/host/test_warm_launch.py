"""Checks how many modules a launch passes through whose code and buffers exist already."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import warploom as wl

PACKAGE = str(Path(wl.__file__).parent)
MOST_FILES = 15
SOURCE = """
extern "C" __global__ void add(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
"""


@pytest.mark.parametrize("workers", [1, None])
def test_a_warm_launch_calls_functions_of_few_files(workers: int | None) -> None:
    gpu = wl.Device(workers=workers)
    kernel = gpu.compile(SOURCE)["add"]
    x, y = gpu.to_device(np.ones(1000, np.float32)), gpu.zeros(1000, "float32")
    for _ in range(3):
        kernel[4, 256](x, y, 1000)
    files: set[str] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename)

    y.view[:] = 0
    sys.setprofile(record)
    try:
        kernel[4, 256](x, y, 1000)
    finally:
        sys.setprofile(None)
    assert (y.copy_to_host() == 2).all()
    assert len(files) <= MOST_FILES, sorted(files)
