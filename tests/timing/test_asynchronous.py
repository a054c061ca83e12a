"""Tests copies of the Tensor Memory Accelerator and mbarriers in modelled time: their latencies by
the device's figures, the waits for them, and what pipeline stages hide."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

import warploom as wl
from warploom.devices.timing import find_timing
from warploom.host.run import Run
from warploom.report.perfetto import write_trace
from warploom.timing.record.mbarriers import phases_of

SOURCE = Path(__file__).with_name("pipeline.cu")


@cache
def run(stages: int, size: int, count: int, skip: int = 1) -> Run:
    """Launches the pipeline and checks its sums; every `skip`-th row of a tile is added up."""
    gpu = wl.Device("h100", record=True)
    options = [f"-DSTAGES={stages}", f"-DBYTES={size}", f"-DSKIP={skip}"]
    kernel = gpu.compile(SOURCE.read_text("utf-8"), options=options)["sums"]
    tiles = np.arange(count * size // 4, dtype=np.float32) % 8
    out = gpu.zeros(128, np.float32)
    done = kernel[1, 160](gpu.to_device(tiles), out, count)
    expected = tiles.reshape(count, -1, 128)[:, ::skip].sum(axis=(0, 1))
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    return done


def test_copy_takes_latency_plus_time_per_line() -> None:
    """4 KiB more are 32 lines more, which the unit requests one after the other. (While their page
    is translated, which takes longer than the copy, requests would wait for that alone.)"""
    spec = replace(find_timing(wl.Device("h100").spec), latency_translation=0)
    small, large = (run(1, size, 1, skip=size // 512).time(spec=spec) for size in (4096, 8192))
    assert large.cycles - small.cycles == pytest.approx(32 * spec.tma_line_cycles, abs=16)
    late = run(1, 4096, 1, skip=8).time(spec=replace(spec, latency_tma=spec.latency_tma + 1000))
    assert late.cycles - small.cycles == pytest.approx(1000, abs=5)
    least = spec.block_launch_cycles + spec.latency_dram + spec.latency_tma
    assert small.cycles > least + 32 * spec.tma_line_cycles


def test_stages_hide_copy_latency() -> None:
    """With one stage a tile is copied when the one before has been read, so 16 tiles pay 16
    latencies. With four stages, four copies are in flight at a time and pay one latency
    together."""
    spec = find_timing(wl.Device("h100").spec)
    later = replace(spec, latency_tma=spec.latency_tma + 1000)
    one = [run(1, 2048, 16).time(spec=each) for each in (spec, later)]
    four = [run(4, 2048, 16).time(spec=each) for each in (spec, later)]
    assert one[1].cycles - one[0].cycles == pytest.approx(16 * 1000, rel=0.02)
    assert four[1].cycles - four[0].cycles <= 4 * 1000
    assert one[0].cycles - four[0].cycles > 12 * spec.latency_dram


def test_report_names_waits_for_copies() -> None:
    one, four = run(1, 2048, 16).time(), run(4, 2048, 16).time()
    assert one.pipeline
    assert four.pipeline
    assert one.bound.startswith("bound by the latency of copies")
    assert "more or larger stages would hide more" in one.bound
    assert one.pipeline.for_copies > four.pipeline.for_copies > 0
    lines = 16 * 2048 // 128
    busy = lines * one.spec.tma_line_cycles / one.cycles
    assert one.pipeline.tma_use == pytest.approx(busy, rel=0.05)
    assert one.dram_read_bytes == 16 * 2048


@pytest.mark.parametrize("stages", [1, 4])
def test_copies_in_flight_equal_stages(stages: int, tmp_path: Path) -> None:
    """A stage is copied to again when it has been read, so one copy for each stage is in flight."""
    timing = run(stages, 2048, 16).time(timeline=1 << 14)
    copies = timing.copies()
    assert len(copies) == 16
    together = [sum(a.since <= b.since < a.until for a in copies) for b in copies]
    assert max(together) == stages
    least = timing.spec.latency_tma + timing.spec.latency_l2
    assert all(copy.until - copy.since > least for copy in copies)
    assert {copy.instruction for copy in copies} == {copies[0].instruction}
    file = tmp_path / "pipeline.pftrace"
    assert write_trace(timing, file) == len(timing.timeline())
    packets = Trace.FromString(file.read_bytes()).packet
    names = [p.track_descriptor.name for p in packets if "copy" in p.track_descriptor.name]
    assert names == [f"copy in flight {number}" for number in range(stages)]


def test_cycles_balance_and_workers_do_not_change_results() -> None:
    found = [run(4, 2048, 16).time(workers=workers) for workers in (1, 2)]
    assert found[0].cycles == found[1].cycles
    for one in found:
        assert one.issued + sum(one.stalls.values()) == one.scheduler_cycles


def test_saved_replay_with_copies_resumes() -> None:
    whole = run(4, 2048, 16).time().cycles
    first = run(4, 2048, 16).replay()
    first.advance(whole // 2)
    second = run(4, 2048, 16).replay()
    second.restore(first.state)
    assert second.time().cycles == whole


ARRIVES_LATE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<6>; .reg .b64 %d<3>; .reg .pred %p<4>;
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; ld.param.u64 %d1, [out];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra INIT;
    mbarrier.init.shared::cta.b64 [%r2], 32;
INIT:
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra WAIT;
    nanosleep.u32 NANOSECONDS;
    mbarrier.arrive.shared::cta.b64 %d2, [%r2];
    bra END;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    st.global.u32 [%d1], %r1;
END:
    ret;
}
"""


def test_warp_waits_for_arrival_of_other_warp() -> None:
    """The other warp sleeps before it arrives: 2,000 ns more are as many cycles more."""
    gpu = wl.Device("h100", record=True)
    times = [
        gpu.compile(ARRIVES_LATE.replace("NANOSECONDS", str(sleep)), "ptx")["k"][1, 64](
            gpu.zeros(32, np.int32)
        ).time()
        for sleep in (1000, 3000)
    ]
    cycles = 2000 * times[0].spec.clock_mhz / 1000
    assert times[1].cycles - times[0].cycles == pytest.approx(cycles, abs=4)
    assert times[1].pipeline
    assert times[1].pipeline.for_threads > times[1].pipeline.for_copies == 0


def test_phases_are_counted_by_block_and_barrier() -> None:
    """Two blocks; barrier 0 of the first goes through phases 0 to 4, of which the log has the last
    two bits. Two arrivals complete a phase; a wait has logged the phase after it."""
    rows = [  # block, barrier, phase, waits
        *[(0, 0, phase, False) for phase in (0, 0, 1, 1, 2, 2, 3, 3, 0)],
        (0, 0, 0, True),
        (1, 0, 0, False),
        (0, 8, 0, True),  # nothing came before
        (0, 8, 0, False),
        (0, 8, 1, True),
    ]
    block, barrier, phase, waits = (np.array(column) for column in zip(*rows, strict=True))
    event, needed = phases_of(block, barrier << 2 | phase, waits.astype(bool))
    assert event.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 4, 1, 0, 6, 6]
    assert needed.tolist() == [0] * 9 + [2] + [0] * 3 + [1]


def test_accesses_without_an_mbarrier_have_no_phase() -> None:
    none = np.full(3, -1)
    event, needed = phases_of(np.zeros(3, int), none, np.zeros(3, bool))
    assert not event.any()
    assert not needed.any()
