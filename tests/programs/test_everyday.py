"""Kernels such as everyone writes, in blocks of many shapes: both machines leave the same memory
and the same counts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("everyday.cu")
KERNELS = dict(re.findall(r"KERNEL (\w+)\(([^)]*)\)", SOURCE.read_text("utf-8")))
WIDTH, HEIGHT = 40, 11
WORDS = np.random.default_rng(1).integers(-500, 500, WIDTH * HEIGHT).astype(np.int32)
BLOCKS = [(32, 1), (64, 1), (128, 1), (100, 1), (16, 16), (32, 4), (16, 4), (8, 8)]
ACROSS = {"borders": 32, "transpose": 32}
"""The most threads along x for which a kernel has shared memory."""

NOW = [(32, 1), (100, 1), (16, 16), (16, 4)]
"""The shapes of blocks in each change; the others only in the nightly job."""

CASES = [
    pytest.param(name, block, marks=[] if block in NOW else [pytest.mark.nightly])
    for name in KERNELS
    for block in BLOCKS
    if block[0] <= ACROSS.get(name, 512)
]


@cache
def module(engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100", engine=engine)
    return gpu, gpu.load(SOURCE)


def left(engine: str, name: str, block: tuple[int, int]) -> tuple[bytes, object]:
    """What a launch leaves in memory, and its counters."""
    gpu, kernels = module(engine)
    plane = "width" in KERNELS[name]
    threads = block[0] * block[1]
    grid: tuple[int, int] = (-(-len(WORDS) // threads), 1)
    if name == "row_maximum":
        grid = HEIGHT, 1
    elif plane:
        grid = -(-WIDTH // block[0]), -(-HEIGHT // block[1])
    given, to = gpu.to_device(WORDS), gpu.zeros(len(WORDS) + 64, np.int32)
    sizes = (WIDTH, HEIGHT) if plane else (len(WORDS),)
    run = kernels[name][grid, block](given, to, *sizes)
    return to.copy_to_host().tobytes(), run.counters


@pytest.mark.parametrize(("name", "block"), CASES, ids=str)
def test_machines_agree_on_everyday_kernels(name: str, block: tuple[int, int]) -> None:
    assert left("compiled", name, block) == left("reference", name, block)
