"""Tests that every cycle is charged to a state, for random programs and devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import THREAD_BYTES, kernels

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.devices.timing import find_timing
from warploom.timing.layout import SCHEDULERS
from warploom.timing.result import Timing

DEVICES = ("1.3", "2.0", "2.1", "3.5", "6.1", "7.0", "7.5", "8.0", "8.6", "9.0", "12.0")


def balanced(time: Timing) -> None:
    """Asserts that the issues and stalls of schedulers add up to all cycles, and the states of
    warps to the cycles for which they were resident; each issue is one cycle of a warp in the state
    "selected"."""
    assert time.issued + sum(time.stalls.values()) == time.scheduler_cycles
    assert time.issued <= time.instructions
    resident = time.active_warps * time.active_cycles
    assert sum(time.warp_states.values()) == pytest.approx(resident, abs=1e-6 * resident)
    assert time.warp_states["selected"] == time.issued
    by_line = [sum(line.states.values()) for line in time.by_line().values()]
    assert sum(by_line) == sum(time.warp_states.values())


FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "schedulers": st.sampled_from((1, 2, 4)),
        "issue_cycles": st.sampled_from((1, 2, 4)),
        "dispatch_width": st.sampled_from((1, 2)),
        "active_warps": st.integers(1, 8),
        "lsu_queue": st.integers(1, 4),
        "mshrs": st.integers(1, 40),
        "latency_barrier": st.integers(1, 60),
        "latency_branch": st.integers(1, 30),
        "block_launch_cycles": st.integers(0, 400),
        "fetch_instructions": st.sampled_from((8, 32, 768)),
        "dram_banks": st.sampled_from((1, 16, 2048)),
        "dram_turn_cycles": st.integers(0, 50),
    },
)
"""Figures of devices that do not exist."""


def test_cycles_balance_on_random_programs(random_examples: int) -> None:
    @settings(max_examples=random_examples, database=None)  # fmt: skip
    @given(
        kernels(),
        st.sampled_from(DEVICES),
        st.sampled_from(SCHEDULERS),
        st.sampled_from([(1, 32), (3, 70), (40, 128)]),
        FIGURES,
    )
    def check(
        text: str, cc: str, policy: str, shape: tuple[int, int], figures: dict[str, int]
    ) -> None:
        gpu = wl.Device(cc=cc, record=True)
        blocks, threads = shape
        try:
            kernel = gpu.compile(text, "ptx")["k"]
            memory = gpu.zeros(blocks * threads * THREAD_BYTES, np.uint8)
            run = kernel[blocks, threads](memory, max_instructions=200_000)
        except WarploomError:
            return  # what a device has not, or a kernel does wrong, has no time
        spec = replace(find_timing(gpu.spec), **figures)
        time = run.time(scheduler=policy, spec=spec)
        balanced(time)
        assert time.sampled_blocks == blocks

    check()


TWO = """
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i * 7 % n] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(y, s[0]);
}
"""


@pytest.mark.parametrize("device", ["gtx-480", "k40", "gtx-1080", "v100", "h100"])
def test_workers_do_not_change_results(device: str) -> None:
    gpu = wl.Device(device, record=True)
    n = 1 << 16
    x, y = gpu.zeros(n, np.float32), gpu.zeros(1, np.float32)
    run = gpu.compile(TWO)["k"][n // 256, 256](x, y, n)
    one, two = run.time(timeline=1000), run.time(workers=2, timeline=1000)
    balanced(one)
    assert one.cycles == two.cycles
    assert one.stalls == two.stalls
    assert one.by_line() == two.by_line()
    assert [one.timeline(sm) for sm in range(one.sms)] == [two.timeline(s) for s in range(two.sms)]


@pytest.mark.parametrize("sm", [-1, 4])
def test_an_sm_without_blocks_is_an_error(sm: int) -> None:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(1024, np.float32), gpu.zeros(1, np.float32)
    time = gpu.compile(TWO)["k"][4, 256](x, y, 1024).time(timeline=100)
    message = f"SM {sm} had no blocks: only SMs 0 to 3 had blocks"
    for ask in (time.timeline, time.copies, time.warp_cycles):
        with pytest.raises(wl.WarploomError, match=message):
            ask(sm)


def test_the_timeline_shows_every_warp_at_every_cycle() -> None:
    """Each warp of an SM is in one state from its launch to its end, without a gap."""
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(1024, np.float32), gpu.zeros(1, np.float32)
    time = gpu.compile(TWO)["k"][4, 256](x, y, 1024).time(timeline=100_000)
    found = time.timeline(2)
    warps = {state.warp for state in found}
    assert warps == set(range(16, 24))
    for warp in warps:
        own = sorted((s.since, s.until) for s in found if s.warp == warp)
        assert all(before[1] == after[0] for before, after in pairwise(own))
    assert sum(s.until - s.since for s in found if s.state == "selected") * 4 == time.issued
