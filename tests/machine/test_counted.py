"""Checks the tally of several launches whose counts are added up first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.abi.range_cache import RETIRED_SETS
from warploom.cost.fields import CostRecord
from warploom.machine.compiled.counted import Counted, combined_tally
from warploom.machine.compiled.merged_caches import CacheColumns, Words, merged_caches
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


REPITCHED = """
__global__ void rows(const float *x, float *y, int first, int then)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 20; i++)
        sum += x[threadIdx.y * (i < 5 ? first : then) + threadIdx.x];
    y[threadIdx.y * blockDim.x + threadIdx.x] = sum;
}
"""


def test_equal_launches_leave_one_table() -> None:
    """A warp of 16x2 threads has two runs of lanes; once more accesses have had the second distance
    of the runs than the first, the entry of the first is replaced. A run is 64 bytes: two sectors,
    or three if it begins 400 bytes after the first one, which is half a sector off."""
    kernel = (gpu := wl.Device("a100")).compile(REPITCHED)["rows"]
    x, y = gpu.zeros(1000, np.float32), gpu.zeros(32, np.float32)
    counted = [kernel[1, (16, 2)](x, y, 100, 200).counted for _ in range(5)]
    first = counted[0]
    assert isinstance(first, Counted)
    layout = first.kernel.layout
    parts: list[Words] = [
        part.view(np.int64)[first.records_at + layout.caches_at :]
        for one in counted
        if isinstance(one, Counted)
        for part in one.parts
    ]
    entries = parts[0][layout.caches.entries_at :].reshape(-1, layout.caches.set_words)
    assert entries[RETIRED_SETS].any()
    assert len(merged_caches(CacheColumns(layout.caches), parts)) == 1
    counters = Counters(combined_tally(counted))
    assert counters.global_load_requests == 5 * 20
    assert counters.global_load_sectors == 5 * (5 * (2 + 3) + 15 * (2 + 2))
