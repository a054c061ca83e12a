"""Where blocks of a kernel are resident that begins beside a kernel which waits for memory: in the
slots that the other leaves. The SMs of a Jetson TX2 (two) have 64 KB of shared memory each and so
hold one block of 48 KB each (CUDA Programming Guide, "Compute Capabilities", 6.2)."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import warploom as wl
from warploom.devices.catalog import find_device
from warploom.devices.occupancy import Demand
from warploom.host.residency import ResidentBlocks, slots_beside
from warploom.host.run import Run
from warploom.observe.limits import TraceLimits
from warploom.timing.traced import blocks_of

SOURCE = """
__device__ int own_sm() { int own; asm volatile("mov.u32 %0, %%smid;" : "=r"(own)); return own; }

extern "C" __global__ void waits(volatile int *flag, int *sm)
{
    if (threadIdx.x == 0) sm[blockIdx.x] = own_sm();
    while (*flag == 0) {}
}
extern "C" __global__ void where(int *sm)
{
    if (threadIdx.x == 0) sm[blockIdx.x] = own_sm();
}
extern "C" __global__ void uneven(int *sm)
{
    if (threadIdx.x == 0) sm[blockIdx.x] = own_sm();
    for (int i = 0; i < 20 * (blockIdx.x * 7 % 5); i++) __syncthreads();
}
extern "C" __global__ void release(volatile int *flag, int *sm, int *arrived)
{
    sm[blockIdx.x] = own_sm();
    *flag = 1;
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {}
}
"""

KB_48 = 48 << 10


@pytest.fixture(params=["compiled", "reference"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device("jetson-tx2", engine=request.param)


def await_wait(run: Run) -> None:
    while not run.kernel.context.turn.has_waiting:
        time.sleep(0.002)


@pytest.mark.parametrize("kernel", ["where", "uneven"])
def test_a_block_beside_another_kernel_is_on_the_sm_with_free_slots(
    gpu: wl.Device, kernel: str
) -> None:
    """Also one of a kernel without loops, whose blocks need no schedule."""
    module, first = gpu.compile(SOURCE), gpu.stream()
    flag, sm, own = (gpu.zeros(1, np.int32) for _ in range(3))
    waiting = module["waits"][1, 32, first, KB_48](flag, own)
    await_wait(waiting)
    blocks = gpu.zeros(3, np.int32)
    module[kernel][3, 32, None, KB_48](blocks)
    assert blocks.copy_to_host().tolist() == [1, 1, 1]
    assert own.copy_to_host().tolist() == [0]
    flag.view[0] = 1
    first.synchronize()
    module[kernel][1, 32, None, KB_48](sm)
    assert sm.copy_to_host().tolist() == [0]


def test_a_launch_gets_the_slots_of_a_kernel_that_has_ended(gpu: wl.Device) -> None:
    """Block 0 runs on the SM that is left, and ends what occupies the other one, on which block 1
    then begins, for which block 0 waits."""
    module, first, second = gpu.compile(SOURCE), gpu.stream(), gpu.stream()
    flag, own, arrived = (gpu.zeros(1, np.int32) for _ in range(3))
    blocks = gpu.zeros(2, np.int32)
    await_wait(module["waits"][1, 32, first, KB_48](flag, own))
    module["release"][2, 1, second, KB_48](flag, blocks, arrived)
    second.synchronize()
    first.synchronize()
    assert blocks.copy_to_host().tolist() == [1, 0]


def test_a_trace_and_modelled_time_have_the_blocks_where_they_saw_themselves() -> None:
    gpu = wl.Device("jetson-tx2", record=True)
    module, first = gpu.compile(SOURCE), gpu.stream()
    flag, own = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    await_wait(module["waits"][1, 32, first, KB_48](flag, own))
    sm = gpu.zeros(4, np.int32)
    timing = module["uneven"][4, 32, None, KB_48](sm).time(code="ptx", timeline=1 << 20)
    assert sm.copy_to_host().tolist() == [1] * 4
    assert blocks_of(timing, 0) == ()
    assert blocks_of(timing, 1) == (0, 1, 2, 3)
    states = sorted((state.since, state.until, state.warp) for state in timing.timeline(1))
    ends = {warp: until for _, until, warp in states}
    begins = {warp: since for since, _, warp in reversed(states)}
    assert all(ends[warp] <= begins[warp + 1] for warp in range(3))  # one at a time
    trace = module["uneven"][4, 32, None, KB_48].trace(sm, limits=TraceLimits(warps=4))
    assert [one.sm for one in trace.residency] == [1] * 4
    assert all(a.until <= b.since for a, b in pairwise(trace.residency))
    flag.view[0] = 1
    first.synchronize()


def test_slots_by_hand() -> None:
    """Two SMs of 64 warps and 32 blocks (guide, "Compute Capabilities", 6.x); blocks of 16 warps.
    Beside three blocks of 8 warps on SM 0, that has 40 warps left, for two; SM 1 all 64, for four:
    each next block goes where more are left."""
    spec = find_device("jetson-tx2")
    others = [ResidentBlocks("other", Demand(256, 16), Counter({0: 3}))]
    assert slots_beside(spec, Demand(512, 16), 1, others) == [1, 1, 0, 1, 0, 1]
    assert slots_beside(spec, Demand(512, 16), 1, others, [1, 1, 0]) == [1, 0, 1]
    assert slots_beside(spec, Demand(512, 16), 2, others) == [0, 1, 0, 1]
    assert slots_beside(spec, Demand(512, 16), 1, []) == [0, 1] * 4
