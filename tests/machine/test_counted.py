"""Checks the tally of several launches whose counts are added up first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.cost.fields import CostRecord
from warploom.machine.compiled.counted import combined_tally
from warploom.observe.counters import Counters

SOURCE = """
__global__ void gather(const float *x, const int *at, float *y)
{
    int i = threadIdx.x;
    if (i < 16)
        y[i] = x[at[i]];
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_counts_are_sums_and_the_costliest_access_stands_for_all(engine: str) -> None:
    """Counts 16 lanes that load and store 64 bytes each, and gather: from one sector, from 8, from
    one."""
    gpu = wl.Device("a100", engine=engine)
    kernel = gpu.compile(SOURCE)["gather"]
    x, y = gpu.zeros(16 * 8, np.float32), gpu.zeros(16, np.float32)
    near, far = (gpu.to_device(np.arange(16, dtype=np.int32) // 2 * step) for step in (0, 16))
    runs = [kernel[1, 32](x, at, y) for at in (near, far, near)]
    tally = combined_tally([run.counted for run in runs])
    counters = Counters(tally)
    assert counters.global_store_sectors == 3 * 2
    assert counters.global_load_sectors == 3 * 2 + 1 + 8 + 1
    assert counters.global_load_requests == 6
    assert counters.divergent_branches == 3
    _, gathered = [n for n, row in enumerate(tally.access_records) if row.op == "load"]
    assert tally.records[gathered, CostRecord.example_cost] == 8
    assert tally.records[gathered, CostRecord.example_mask] == 0xFFFF


@pytest.mark.parametrize("options", [{"engine": "reference"}, {"record": True}, {}])
def test_the_launches_that_were_added_up_keep_their_own_counts(options: dict[str, Any]) -> None:
    """Each stores 16 times 4 bytes, two sectors."""
    gpu = wl.Device("a100", **options)
    kernel = gpu.compile(SOURCE)["gather"]
    x, at, y = gpu.zeros(16, np.float32), gpu.zeros(16, np.int32), gpu.zeros(16, np.float32)
    runs = [kernel[1, 32](x, at, y) for _ in range(3)]
    combined_tally([run.counted for run in runs])
    assert [run.counters.global_store_sectors for run in runs] == [2] * 3
