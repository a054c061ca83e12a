"""Where recorded blocks are resident, and when: what `%smid` shows them, in every order of blocks,
and never more of them on an SM than fit. Expectations follow from the numbers of the device."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.observe.limits import TraceLimits
from warploom.observe.trace import Trace

UNEVEN = """__global__ void uneven(int *sm)
{
    int own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    if (threadIdx.x == 0) sm[blockIdx.x] = own;
    for (int i = 0; i < 20 * (blockIdx.x * 7 % 5); i++) __syncthreads();
}"""
BLOCKS, FITTING, SMS = 12, 2, 2
"""Of 1,024 threads; an SM of a Jetson TX1, of which it has two, holds 2,048."""


def traced(
    schedule: str, engine: str, limits: TraceLimits | None = None
) -> tuple[Trace, list[int]]:
    gpu = wl.Device("jetson-tx1", schedule=schedule, seed=5)
    sm = gpu.zeros(BLOCKS, np.int32)
    limits = limits or TraceLimits(warps=32 * BLOCKS, registers=0)
    launcher = gpu.compile(UNEVEN)["uneven"][BLOCKS, 1024]
    return launcher.trace(sm, limits=limits, engine=engine), sm.copy_to_host().tolist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("schedule", ["converge", "fair", "random", "adversarial"])
def test_blocks_are_where_they_see_themselves(schedule: str, engine: str) -> None:
    trace, seen = traced(schedule, engine)
    assert [one.sm for one in sorted(trace.residency, key=lambda one: one.block)] == seen
    assert len(trace.residency) == BLOCKS
    assert all(warp.ended for warp in trace.warps)
    for step in range(0, trace.steps.count, 97):
        now = [one for one in trace.residency if one.since <= step < one.until]
        assert len({one.slot for one in now}) == len(now)
        assert max(np.bincount([one.sm for one in now])) <= FITTING


def test_the_first_blocks_are_resident_from_the_start_and_each_later_one_takes_a_freed_slot() -> (
    None
):
    trace, _ = traced("converge", "reference")
    blocks = sorted(trace.residency, key=lambda one: one.block)
    assert [one.since for one in blocks[: FITTING * SMS]] == [0] * FITTING * SMS
    ends = {one.until: one.slot for one in blocks}
    for one in blocks[FITTING * SMS :]:
        assert ends[one.since] == one.slot


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_warp_has_ended_though_others_were_not_recorded(engine: str) -> None:
    trace, _ = traced("converge", engine, TraceLimits(warps=40))
    assert trace.left_out.warps > 0
    assert all(warp.ended for warp in trace.warps)
    first, second = trace.residency
    assert (first.block, second.block) == (0, 1)
    assert first.until <= trace.steps.count


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_warp_whose_last_steps_were_not_recorded_has_not_ended(engine: str) -> None:
    trace, _ = traced("converge", engine, TraceLimits(warps=64, steps=5))
    assert not any(warp.ended for warp in trace.warps)
    assert all(one.until > trace.steps.count for one in trace.residency)
