"""Kernels that are right have no findings: CUB's collectives, and cooperative groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.sanitize.findings import TOOLS

PROGRAMS = Path(__file__).parent.parent / "programs"
RNG = np.random.default_rng(5)


def integers(high: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    return RNG.integers(0, high, count, dtype)


CUB: dict[str, tuple[int, tuple[Any, ...]]] = {
    "scan": (64, (integers(1000, 256, np.int32), np.zeros(256, np.int32))),
    "reduce": (96, (integers(1000, 96, np.int32), np.zeros(101, np.int32))),
    "sort": (64, (integers(50, 128, np.uint32), np.arange(128, dtype=np.int32))),
    "merge": (32, (integers(50, 96, np.int32),)),
    "count": (64, (integers(16, 256, np.uint8), np.zeros(16, np.uint32))),
}


@pytest.fixture(scope="module")
def cub() -> wl.Module:
    pytest.importorskip("cuda.bindings.nvrtc")
    return wl.Device().load(PROGRAMS / "cub_blocks.cu", ["--std=c++17"])


@pytest.mark.parametrize("name", CUB)
@pytest.mark.parametrize("schedule", ["converge", "adversarial"])
def test_collectives_of_cub(cub: wl.Module, name: str, schedule: str) -> None:
    threads, args = CUB[name]
    # The merge loads one element behind its tile, compares it and ignores the answer.
    tools = [tool for tool in TOOLS if (name, tool) != ("merge", "init")]
    found = cub[name][1, threads](*args, schedule=schedule, sanitize=tools).findings
    assert found == (), "\n".join(map(str, found))
