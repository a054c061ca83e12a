"""`%smid` and `%nsmid`: blocks are dealt out to the multiprocessors, clusters side by side."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

import warploom as wl
from warploom.observe.limits import TraceLimits
from warploom.timing.traced import blocks_of

pytestmark = pytest.mark.usefixtures("share_every_launch")

SMS = 132
"""Those of an H100 SXM (NVIDIA H100 Tensor Core GPU Architecture, "H100 SM Count")."""

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry where(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %d<3>;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %smid;
    mad.lo.u32 %r1, %r2, %r3, %r1; ld.param.u64 %d1, [out];
    mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r4;
    ret;
}
.visible .entry persistent(.param .u64 counts, .param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %d<5>;
    mov.u32 %r1, %smid; mov.u32 %r3, %nsmid; ld.param.u64 %d1, [counts]; ld.param.u64 %d2, [out];
    mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3;
    atom.global.add.u32 %r2, [%d1], 1;
    mad.lo.u32 %r2, %r2, %r3, %r1; mul.wide.u32 %d3, %r2, 4; add.u64 %d2, %d2, %d3;
    mov.u32 %r4, 1; red.global.add.u32 [%d2], %r4;
    ret;
}
"""


def places(gpu: wl.Device, grid: tuple[int, int], cluster: tuple[int, int]) -> np.ndarray:
    """Returns the SM of each block, by y and x."""
    out = np.zeros((grid[1], grid[0]), np.int32)
    made = gpu.compile(KERNEL, "ptx")["where"]
    made[grid, 1](out, cluster_dims=(*cluster, 1))
    return out


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_blocks_are_spread_over_all_multiprocessors(engine: str, workers: int) -> None:
    gpu = wl.Device("h100", engine=engine, workers=workers)
    assert places(gpu, (300, 1), (1, 1))[0].tolist() == [block % SMS for block in range(300)]
    pairs = places(gpu, (4, 2), (2, 2)).tolist()
    assert pairs == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_the_order_of_blocks_decides_in_which_order_they_are_dealt_out(engine: str) -> None:
    """The adversarial order begins with the last block."""
    gpu = wl.Device("h100", engine=engine, schedule="adversarial")
    assert places(gpu, (300, 1), (1, 1))[0].tolist() == [b % SMS for b in reversed(range(300))]


UNEVEN = """__global__ void uneven(int *sm, int *turn, int *clock)
{
    int own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    if (threadIdx.x == 0) {
        sm[blockIdx.x] = own;
        turn[2 * blockIdx.x] = atomicAdd(clock, 1);
    }
    for (int i = 0; i < 40 * (blockIdx.x * 7 % 5); i++) __syncthreads();
    if (threadIdx.x == 0) turn[2 * blockIdx.x + 1] = atomicAdd(clock, 1);
}"""


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("schedule", ["converge", "fair", "random"])
def test_no_multiprocessor_ever_holds_more_blocks_than_fit(engine: str, schedule: str) -> None:
    """Blocks of 1,024 threads, of which an SM of compute capability 5.3 holds two: between the
    ticks that a block takes at its begin and its end, at most one other is on its SM."""
    gpu = wl.Device("jetson-tx1", engine=engine, schedule=schedule, seed=2)
    blocks, resident = 16, 2 * 2
    sm, turn = np.zeros(blocks, np.int32), np.zeros((blocks, 2), np.int32)
    gpu.compile(UNEVEN)["uneven"][blocks, 1024](sm, turn, np.zeros(1, np.int32))
    assert set(sm.tolist()) == {0, 1}
    for tick in range(2 * blocks):
        now = (turn[:, 0] <= tick) & (tick <= turn[:, 1])
        assert now.sum() <= resident
        assert np.bincount(sm[now], minlength=2).max() <= resident // 2


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_clusters_that_do_not_divide_their_number_leave_some_out(engine: str) -> None:
    """16 clusters of 8 have 128 of the 132; the next one begins at the first again."""
    found = places(wl.Device("h100", engine=engine), (136, 1), (8, 1))[0]
    assert found.tolist() == [*range(128), *range(8)]


def test_a_persistent_kernel_finds_a_place_for_each_block_by_its_multiprocessor() -> None:
    """Two blocks for each SM, each of which takes the next place of its SM."""
    gpu = wl.Device("h100")
    counts, out = gpu.zeros(SMS, np.int32), gpu.zeros((2, SMS), np.int32)
    gpu.compile(KERNEL, "ptx")["persistent"][2 * SMS, 1](counts, out)
    assert (counts.copy_to_host() == 2).all()
    assert (out.copy_to_host() == 1).all()


def test_the_race_detector_sees_the_same() -> None:
    gpu = wl.Device("h100", sanitize=("race",))
    counts, out = gpu.zeros(SMS, np.int32), gpu.zeros((2, SMS), np.int32)
    run = gpu.compile(KERNEL, "ptx")["persistent"][2 * SMS, 1](counts, out)
    assert not run.findings
    assert (out.copy_to_host() == 1).all()


def test_modelled_time_keeps_blocks_where_the_kernel_saw_itself() -> None:
    """Blocks of uneven length would be dealt out by their ends; the kernel has read where it is."""
    gpu = wl.Device("jetson-tx1", record=True)
    blocks = 16
    sm, turn = np.zeros(blocks, np.int32), np.zeros((blocks, 2), np.int32)
    run = gpu.compile(UNEVEN)["uneven"][blocks, 1024](sm, turn, np.zeros(1, np.int32))
    timing = run.time(code="ptx", timeline=1_000_000)
    for number in range(2):
        assert set(blocks_of(timing, number)) == set(np.flatnonzero(sm == number).tolist())


RANDOM = """__global__ void somewhere(int *sm, int longest)
{
    int own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    if (threadIdx.x == 0) sm[blockIdx.x] = own;
    for (int i = 0; i < blockIdx.x * 7919 % 13 * longest; i++) __syncthreads();
}
__global__ void waits(volatile int *flag, int *sm)
{
    int own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    if (threadIdx.x == 0) sm[blockIdx.x] = own;
    while (*flag == 0) {}
}"""


class Waiting:
    """A kernel that waits for memory until it is released: `sm` has the SM of each block."""

    def __init__(self, gpu: wl.Device, blocks: int, shared: int) -> None:
        """Launches it, and waits until its blocks are resident."""
        self.flag, self.stream = gpu.zeros(1, np.int32), gpu.stream()
        found, self.shared = gpu.to_device(np.full(blocks, -1, np.int32)), shared
        waits = gpu.compile(RANDOM)["waits"]
        waits[blocks, 32, self.stream, shared](self.flag, found)
        while (found.view < 0).any():
            time.sleep(0.001)
        self.sm = found.view.tolist()

    def release(self) -> None:
        """Lets it end."""
        self.flag.view[0] = 1
        self.stream.synchronize()


def waiting_beside(gpu: wl.Device, draw: random.Random) -> list[Waiting]:
    """Launches up to two kernels of which each waits for memory, beside which others fit."""
    found: list[Waiting] = []
    for _ in range(draw.randint(0, 2)):
        found.append(Waiting(gpu, draw.randint(1, 3), part_of_shared(gpu, draw)))
    return found


def part_of_shared(gpu: wl.Device, draw: random.Random) -> int:
    """Returns bytes of shared memory of which an SM has at least three times as many."""
    return gpu.spec.shared_bytes_per_sm // draw.choice([3, 4, 8]) // 512 * 512 - 512


def test_random_launches_are_where_they_see_themselves(random_examples: int) -> None:
    """`%smid` in both engines, in each of several streams, the trace of the page, and modelled time
    name the same SM for each block; a trace has no two blocks in one slot at a time, nor more of
    them on an SM than fit. The same beside kernels that wait for memory, on the SMs that they leave
    (blocks, warps and shared memory of an SM: guide, "Compute Capabilities")."""
    for seed in range(random_examples or 12):
        draw = random.Random(seed)
        device = draw.choice(["jetson-tx1", "jetson-tx2", "gtx-750-ti", "jetson-orin", "gt-240"])
        schedule = draw.choice(["converge", "fair", "random", "adversarial"])
        # In the adversarial order each lane runs by itself, which takes the interpreter long.
        is_slow = schedule == "adversarial"
        blocks, threads = draw.randint(1, 5 if is_slow else 40), draw.choice([32, 100, 256])
        threads = min(threads, 100 if is_slow else 256)
        longest = 0 if is_slow else draw.randint(0, 2)
        order = {"schedule": schedule, "seed": seed}
        gpu = wl.Device(device, engine="compiled", record=True, **order)
        beside = waiting_beside(gpu, random.Random(seed))
        shared = draw.choice([0, part_of_shared(gpu, draw)])
        streams = [gpu.stream() for _ in range(draw.randint(1, 3))]
        buffers = [gpu.zeros(blocks, np.int32) for _ in streams]
        module = gpu.compile(RANDOM)
        runs = [
            module["somewhere"][blocks, threads, stream, shared](sm, longest)
            for stream, sm in zip(streams, buffers, strict=True)
        ]
        run = draw.choice(runs)
        timing = run.time(code="ptx", timeline=1_000_000)
        for stream in streams:
            stream.synchronize()
        seen, *others = (sm.copy_to_host().tolist() for sm in buffers)
        assert all(other == seen for other in others), seed
        for one in beside:
            one.release()

        gpu = wl.Device(device, engine="reference", **order)
        same = waiting_beside(gpu, random.Random(seed))
        assert [one.sm for one in same] == [one.sm for one in beside], seed
        kernel = gpu.compile(RANDOM)["somewhere"][blocks, threads, None, shared]
        sm = gpu.zeros(blocks, np.int32)
        kernel(sm, longest)
        assert sm.copy_to_host().tolist() == seen, seed
        trace = kernel.trace(sm, longest, limits=TraceLimits(warps=32 * blocks, registers=0))
        placed = sorted(trace.residency, key=lambda one: one.block)
        assert [one.sm for one in placed] == seen, seed
        assert beside or all(one.slot % gpu.spec.sms == one.sm for one in placed)
        fitting = run.occupancy.active_blocks
        other_blocks, other_bytes = np.zeros((2, gpu.spec.sms), np.int64)
        for one in same:
            np.add.at(other_blocks, one.sm, 1)  # of a warp each
            np.add.at(other_bytes, one.sm, one.shared)
        assert max(other_bytes) <= gpu.spec.shared_bytes_per_sm, seed
        for step in {one.since for one in placed}:
            now = [one for one in placed if one.since <= step < one.until]
            assert len({one.slot for one in now}) == len(now), seed
            on_sm = np.bincount([one.sm for one in now], minlength=gpu.spec.sms)
            assert max(on_sm) <= fitting, seed
            assert max(on_sm + other_blocks) <= gpu.spec.max_blocks_per_sm, seed
            warps = on_sm * -(-threads // 32) + other_blocks
            assert max(warps) <= gpu.spec.max_warps_per_sm, seed
            assert max(on_sm * shared + other_bytes) <= gpu.spec.shared_bytes_per_sm, seed
        for one in same:
            one.release()
        replayed = seen[: timing.sampled_blocks]
        for number in range(timing.sms):
            of_time = set(blocks_of(timing, number))
            assert of_time == {block for block, at in enumerate(replayed) if at == number}, seed
