"""Tests phases of mbarriers that are completed by other blocks of a cluster, multicast copies and
products in tensor memory: in modelled time they complete with the last of those."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.devices.timing import TimingSpec, find_timing
from warploom.host.run import Run
from warploom.machine.launch import Launch
from warploom.timing.record.mbarriers import owners_of

HEAD = """
.version 8.8
.target TARGET
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 source) .reqnctapercluster 2
{
    .reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p<6>;
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [out]; ld.param.u64 %d3, [source];
    cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d3, %d3;
    mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bar; mov.u32 %r5, tile;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.u32 %p1, %r1, 0;
"""

WAIT = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    st.global.u32 [%d1], %r1;
END:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;
}
"""

SLEEPS = "nanosleep.u32 NANOSECONDS; mapa.shared::cluster.u32 %r3, %r2, 0;"

BODIES = {
    "arrives": f"""
    @%p1 bra WAIT;
    {SLEEPS}
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
    bra END;
    """,
    "stores": f"""
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4;
    @%p1 bra WAIT;
    {SLEEPS}
    mapa.shared::cluster.u32 %r4, %r5, 0;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r1, [%r3];
    bra END;
    """,
    "multicasts": """
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u16 %h1, 3;
    @!%p1 bra WAIT;
    nanosleep.u32 NANOSECONDS;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r5], [%d3], 2048, [%r2], %h1;
    bra WAIT;
    """,
}


@cache
def run(name: str, nanoseconds: int) -> Run:
    """Launches one cluster of two blocks of one thread each."""
    head = HEAD.replace(".reg .b32", ".reg .b16 %h<2>; .reg .b32").replace("TARGET", "sm_90")
    text = head + BODIES[name].replace("NANOSECONDS", str(nanoseconds)) + WAIT
    gpu = wl.Device("h100", record=True)
    kernel = gpu.compile(text, "ptx")["k"]
    source = gpu.to_device(np.zeros(512, np.uint32))
    return kernel[2, 1](gpu.zeros(1, np.uint32), source)


def spec() -> TimingSpec:
    return find_timing(wl.Device("h100").spec)


@pytest.mark.parametrize("name", BODIES)
def test_block_waits_for_arrival_of_other_block(name: str) -> None:
    """The other block sleeps 2,000 ns longer before it completes the phase: the launch takes as
    many cycles more, because of the first block, which alone would have ended long before."""
    times = [run(name, sleep).time() for sleep in (1000, 3000)]
    cycles = 2000 * times[0].spec.clock_mhz / 1000
    assert times[1].cycles - times[0].cycles == pytest.approx(cycles, abs=8)
    assert times[1].pipeline
    waited = times[1].pipeline.for_threads + times[1].pipeline.for_copies
    slept = 3000 * times[1].spec.clock_mhz / 1000
    assert waited > slept


@pytest.mark.parametrize("name", ["arrives", "stores"])
def test_arrival_of_other_block_takes_cluster_latency(name: str) -> None:
    late = replace(spec(), latency_cluster=spec().latency_cluster + 1000)
    first, second = run(name, 1000).time(), run(name, 1000).time(spec=late)
    assert second.cycles - first.cycles == pytest.approx(1000, abs=8)


def test_multicast_copy_completes_in_both_blocks() -> None:
    late = replace(spec(), latency_tma=spec().latency_tma + 1000)
    first, second = run("multicasts", 1000).time(), run("multicasts", 1000).time(spec=late)
    assert second.cycles - first.cycles == pytest.approx(1000, abs=8)
    assert second.pipeline
    assert second.pipeline.for_copies > 2 * 1000, "both blocks wait for it"


@cache
def products(count: int) -> Run:
    """Launches a block that makes `count` products in tensor memory, commits and waits."""
    descriptor = 1 << 4 | 8 << 17 | 8 << 24  # f32 += f16 * f16, 64 columns, 128 rows
    multiply = f"""
    tcgen05.mma.cta_group::1.kind::f16 [%r6], %d4, %d4, {descriptor}, %p1;"""
    body = f"""
    mov.u32 %r7, place;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 64;
    ld.shared.u32 %r6, [place];
    mov.u64 %d4, 0x0000400800010000;
    shr.u32 %r8, %r5, 4; cvt.u64.u32 %d2, %r8; or.b64 %d4, %d4, %d2;
    elect.sync _|%p2, -1;
    @!%p2 bra WAIT;
    {multiply * count}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    bar.warp.sync -1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;
    ret;
}}
"""
    head = HEAD.replace(" .reqnctapercluster 2", "").replace("TARGET", "sm_100a")
    head = head.replace("tile[4096]", "tile[16384]").replace("%cluster_ctarank", "%tid.x")
    head = head.replace("    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n", "")
    head = head.replace("mbarrier.init", "setp.eq.u32 %p4, %r1, 0; @%p4 mbarrier.init")
    head = head.replace(".shared .align 8 .b64 bar;", ".shared .b64 bar; .shared .b32 place;")
    head += "    setp.ne.u32 %p1, %r1, 64; bar.warp.sync -1;\n"
    gpu = wl.Device("b200", record=True)
    kernel = gpu.compile(head + body, "ptx")["k"]
    return kernel[1, 32](gpu.zeros(1, np.uint32), gpu.zeros(1, np.uint32))


def test_commit_signals_mbarrier_after_products() -> None:
    """Products of a thread follow each other in the tensor cores, each for its interval; the wait
    at the mbarrier includes the latency of the last one."""
    own = find_timing(wl.Device("b200").spec)
    few, many = products(4).time(), products(12).time()
    interval = 128 * 128 * 32 // 2 // 4 / (own.tensor_fma / 4)
    assert many.cycles - few.cycles == pytest.approx(8 * interval, rel=0.05)
    late = replace(own, latency_tensor=own.latency_tensor + 1000)
    assert products(4).time(spec=late).cycles - few.cycles == pytest.approx(1000, abs=8)


def test_cluster_addresses_map_to_owning_blocks() -> None:
    """A grid of 4 x 4 blocks in clusters of 2 x 2, with 100 bytes of shared memory a block: blocks
    2, 3, 6 and 7 are a cluster in the order of their ranks, and 13 has rank 3 in that of block
    8."""
    launch = Launch((4, 4, 1), (32, 1, 1), b"", (), cluster=(2, 2, 1))
    block = np.array([2, 2, 2, 2, 7, 7, 13, 13])
    place = np.array([8, 108, 208, 308, 8, 308, 8, -1])
    phase = np.array([0, 1, 2, 3, 0, 1, 2, 0])
    packed = np.where(place < 0, -1, place << 2 | phase)
    owner, own = owners_of(launch, 100, block, packed)
    assert owner.tolist() == [2, 3, 6, 7, 2, 7, 8, 13]
    assert own.tolist() == [8 << 2 | number for number in (0, 1, 2, 3, 0, 1, 2)] + [-1]


def test_blocks_of_a_cluster_are_on_sms_side_by_side() -> None:
    """Of a grid of 4 x 2 in clusters of 2 x 2, the first cluster has blocks 0, 1, 4 and 5."""
    source = HEAD.replace("TARGET", "sm_90").replace(".reqnctapercluster 2", "")
    gpu = wl.Device("h100", record=True)
    made = gpu.compile(source + "WAIT: ret;\n}", "ptx")["k"]
    run = made[(4, 2), 32](gpu.zeros(1, np.int32), gpu.zeros(1, np.int32), cluster_dims=(2, 2, 1))
    timing = run.time(timeline=1 << 10)
    found = [{row.warp for row in timing.timeline(sm)} for sm in range(8)]
    assert found == [{0}, {1}, {4}, {5}, {2}, {3}, {6}, {7}]
