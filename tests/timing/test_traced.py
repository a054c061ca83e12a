"""Tests modelled time in a trace: every cycle of a warp is in it once, and belongs to a step."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.observe.schema import VERSION, ModelledTime
from warploom.observe.trace import Trace
from warploom.timing.result import Timing
from warploom.timing.traced import COLUMNS, blocks_of

SOURCE = """
__global__ void k(const float *x, float *y)
{
    __shared__ float s[96];
    int t = threadIdx.x;
    float v = 0;
#pragma unroll 1
    for (int i = 0; i <= t / 40; i++) v += x[t + i];
    s[t] = v;
    __syncthreads();
    if (t % 2) s[t] += sqrtf(v);
    else s[t] *= 3;
    __syncthreads();
    y[blockIdx.x * 96 + t] = s[95 - t];
}
"""
WARPS = 3


def launched(device: str, blocks: int, timeline: int = 1 << 14) -> tuple[Timing, Trace]:
    gpu = wl.Device(device, record=True)
    x, y = gpu.zeros(200, np.float32), gpu.zeros(96 * blocks, np.float32)
    kernel = gpu.compile(SOURCE)["k"][blocks, 96]
    return kernel(x, y).time(timeline=timeline), kernel.trace(x, y)


def modelled(timing: Timing, trace: Trace, sm: int = 0) -> ModelledTime:
    """Returns the modelled time that a file of the trace has."""
    found = Trace.from_bytes(timing.add_to(trace, sm).to_bytes()).modelled
    assert found is not None
    return found


def rows(output: ModelledTime) -> list[dict[str, int]]:
    columns = {n: np.frombuffer(getattr(output, n), t).tolist() for n, t in COLUMNS.items()}
    assert {len(column) for column in columns.values()} == {output.count}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("device", ["gtx-480", "gtx-1080", "v100"])
def test_states_of_a_warp_are_contiguous_and_add_up(device: str) -> None:
    """One block is on one SM, so the timeline has all that the engine counted."""
    timing, trace = launched(device, 1)
    output = modelled(timing, trace)
    assert (output.sms, output.left_out, output.cycles) == (1, 0, timing.cycles)
    sums: Counter[str] = Counter()
    for row in rows(output):
        assert row["since"] < row["until"] <= output.cycles
        sums[output.states[row["state"]]] += row["until"] - row["since"]
    assert sums == Counter(timing.warp_states)
    for warp in range(WARPS):
        own = [row for row in rows(output) if row["warp"] == warp]
        assert len({row["slot"] for row in own}) == 1
        assert all(before["until"] == after["since"] for before, after in pairwise(own))
        issued = [row for row in own if output.states[row["state"]] == "selected"]
        assert trace.instructions[issued[-1]["instruction"]].startswith("ret")


@pytest.mark.parametrize("device", ["gtx-480", "gtx-1080", "v100"])
def test_every_state_belongs_to_a_trace_step(device: str) -> None:
    """A warp executed an instruction as often as its trace has steps of it: those of the loop as
    often as the lane that stays longest. The GTX 1080 issues two instructions at once."""
    timing, trace = launched(device, 1)
    output = rows(modelled(timing, trace))
    for warp in range(WARPS):
        steps = Counter(step.instruction for step in trace.warp(0, warp).steps)
        visits: dict[int, set[int]] = {}
        for row in output:
            if row["warp"] == warp:
                visits.setdefault(row["instruction"], set()).add(row["visit"])
        assert max(len(found) for found in visits.values()) == 1 + (31 + 32 * warp) // 40
        for instruction, found in visits.items():
            assert found == set(range(steps[instruction]))


GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void g(float *y) {
    float a = threadIdx.x;
    for (int t = 0; t < 4; t++) {
        if (blockIdx.x == t && threadIdx.x >= 32) for (int i = 0; i < 64; i++) a = a * 1.5f + .5f;
        cooperative_groups::this_grid().sync();
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
"""


@pytest.mark.nightly
def test_repeated_execution_by_parts_of_a_warp_is_distinguished() -> None:
    """Lanes that diverge before a barrier execute the branch after it in turn; it is all that its
    block has."""
    gpu = wl.Device("v100", record=True)
    y = gpu.zeros(4 * 64, np.float32)
    kernel = gpu.compile(GRID)["g"][4, 64]
    timing = kernel(y, cooperative=True).time(timeline=1 << 14)
    trace = kernel.trace(y, cooperative=True)
    output = rows(modelled(timing, trace, 3))
    alone = [b.start for b in trace.basic_blocks if b.stop - b.start == 1]
    branch = next(i for i in alone if trace.code[i].is_branch and trace.code[i - 1].is_barrier)
    steps = Counter(step.instruction for step in trace.warp(3, 0).steps)
    assert steps[branch] > 4  # turns of the loop
    own = {r["visit"] for r in output if (r["warp"], r["instruction"]) == (6, branch)}
    assert own == set(range(steps[branch]))


def test_sm_can_be_selected() -> None:
    timing, trace = launched("v100", 81)
    assert blocks_of(timing, 0) == (0, 80)
    output = modelled(timing, trace, 7)
    assert (output.sm, output.sms) == (7, 80)
    assert {row["warp"] // WARPS for row in rows(output)} == {7}


def test_cycles_beyond_capacity_are_counted() -> None:
    whole, trace = launched("v100", 2)
    kept, _ = launched("v100", 2, timeline=40)
    output, all_of_it = modelled(kept, trace), modelled(whole, trace)
    assert output.count == 40
    cycles = sum(row["until"] - row["since"] for row in rows(output))
    assert cycles + output.left_out == sum(row["until"] - row["since"] for row in rows(all_of_it))
    assert output.left_out > 0


def test_mismatched_trace_is_refused() -> None:
    timing, trace = launched("v100", 2)
    _, other = launched("v100", 3)
    with pytest.raises(WarploomError, match=r"grid \(2, 1, 1\).*trace records .*grid \(3, 1, 1\)"):
        timing.add_to(other)
    with pytest.raises(WarploomError, match="SM 2 had no blocks: only SMs 0 to 1 had blocks"):
        timing.add_to(trace, 2)
    without, _ = launched("v100", 2, timeline=0)
    with pytest.raises(WarploomError, match="timeline=N"):
        without.add_to(trace)


def test_older_traces_are_refused() -> None:
    _, trace = launched("v100", 1)
    assert Trace.from_bytes(trace.to_bytes()).modelled is None
    older = msgspec.structs.replace(trace, version=VERSION - 1)
    with pytest.raises(WarploomError, match=f"version {VERSION - 1} of the schema"):
        Trace.from_bytes(older.to_bytes())
