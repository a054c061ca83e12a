"""Tests what branches, convergence and exits cost in machine code, and which cycles are waits for
stall counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compare import record, run_case
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.devices.timing import find_timing
from warploom.timing.result import Timing

pytestmark = NEEDS_PTXAS

STEPS = """
extern "C" __global__ void steps(float *out, int n)
{
    if (n < 0) return;
    float x = threadIdx.x;
    for (int i = 0; i < n; i++) {
        if (x < 1e6f) {
            x = sinf(x) * 1e3f;
            out[threadIdx.x] = x;
        }
        __syncwarp();
    }
    out[threadIdx.x] = x;
}
"""


def timed(run: wl.Run, **figures: int) -> Timing:
    """Return the time of a run in machine code, with other figures of the device."""
    timing = run.time(spec=replace(find_timing(wl.Device("h100").spec), **figures))
    assert timing.basis.code == "machine code"
    return timing


@pytest.fixture(scope="module")
def run() -> wl.Run:
    gpu = wl.Device("h100", record=True)
    return gpu.compile(STEPS)["steps"][1, 32](gpu.zeros(32, np.float32), 50)


def test_each_convergence_of_a_warp_takes_as_many_cycles_more(run: wl.Run) -> None:
    """Nothing else of the one warp can go on meanwhile."""
    times = run.machine.by_opcode["BSYNC"]
    assert times >= 50
    more = timed(run, latency_convergence=215).cycles - timed(run, latency_convergence=15).cycles
    assert more == pytest.approx(200 * times, rel=0.02)


def test_an_exit_that_no_lane_takes_delays_its_warp(run: wl.Run) -> None:
    assert run.machine.by_opcode["EXIT"] == 2
    assert timed(run, latency_exit=511).cycles - timed(run, latency_exit=11).cycles == 500


def test_these_cycles_are_waits_for_branches(run: wl.Run) -> None:
    states = [timed(run, latency_convergence=one).warp_states for one in (15, 215)]
    branches = [one["branch_resolving"] for one in states]
    assert branches[1] - branches[0] == 200 * run.machine.by_opcode["BSYNC"]


@pytest.mark.parametrize(
    "name", ["CRC-32", "Monte Carlo", "argmax of rows", "edit distance", "rank sort"]
)
def test_stall_counts_are_the_waits_of_an_h100(name: str) -> None:
    """Nsight Compute's "wait" is the time of stall counts, whatever else the warp waits for then
    (smsp__average_warps_issue_stalled_wait_per_issue_active.ratio)."""
    metrics = record().launches[f"families/{name}"].metrics
    timing = run_case(name).time()
    share = timing.warp_states["wait"] / timing.issued
    issued = metrics["smsp__issue_active.sum"] / metrics["smsp__inst_executed.sum"]
    recorded = metrics["smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"]
    assert share == pytest.approx(recorded * issued, rel=0.05)


def test_a_block_in_the_place_of_another_is_not_resident_until_it_begins() -> None:
    """Two blocks of one warp run on each SM, one after the other. Both begin 1,000 cycles later if
    launches take as much longer, but only the first has a warp that waits on the SM."""
    gpu = wl.Device("h100", record=True)
    kernel = gpu.compile(STEPS.replace("float x", "extern __shared__ int s[]; float x"))["steps"]
    run = kernel[2 * gpu.spec.sms, 32, None, 200 * 1024](gpu.zeros(32, np.float32), 5)
    short, long = (timed(run, block_launch_cycles=one) for one in (390, 1390))
    waits = [one.warp_states["no_instruction"] for one in (short, long)]
    assert waits[1] - waits[0] == 1000 * gpu.spec.sms
    assert long.cycles - short.cycles > 1500
