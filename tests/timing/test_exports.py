"""Tests exports of modelled time: Perfetto's trace and the roofline agree with the timing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

import warploom as wl
from warploom.report.perfetto import IPC, OCCUPANCY, SLOTS, WINDOW, write_trace
from warploom.report.roofline import as_svg, as_text, roofline_of
from warploom.timing.result import Timing

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
N = 1 << 14


@pytest.fixture(scope="module")
def timing() -> Timing:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(N, np.float32), gpu.zeros(N, np.float32)
    run = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"][N // 128, 128](N, 2.0, x, y)
    return run.time(timeline=1 << 14)


def test_every_state_of_a_warp_is_a_slice(timing: Timing, tmp_path: Path) -> None:
    file = tmp_path / "saxpy.pftrace"
    states = timing.timeline(0)
    assert write_trace(timing, file) == len(states) > 0
    trace = Trace.FromString(file.read_bytes())
    begun = [p for p in trace.packet if p.track_event.type == TrackEvent.TYPE_SLICE_BEGIN]
    ended = [p for p in trace.packet if p.track_event.type == TrackEvent.TYPE_SLICE_END]
    output = {
        (p.timestamp, q.timestamp, p.track_event.track_uuid - SLOTS, p.track_event.name)
        for p, q in zip(begun, ended, strict=True)
    }
    assert output == {(s.since, s.until, s.slot, s.state.replace("_", " ")) for s in states}
    named = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet}
    assert {named[SLOTS + s.slot] for s in states} == {f"warp slot {s.slot}" for s in states}


def test_counters_add_up(timing: Timing, tmp_path: Path) -> None:
    """Issues per cycle times cycles are the issues; all warps have ended at the end."""
    file = tmp_path / "saxpy.pftrace"
    write_trace(timing, file)
    trace = Trace.FromString(file.read_bytes())

    def counter(track: int) -> list[float]:
        events = (p.track_event for p in trace.packet)
        return [
            e.double_counter_value
            for e in events
            if e.type == TrackEvent.TYPE_COUNTER and e.track_uuid == track
        ]

    selected = [s for s in timing.timeline(0) if s.state == "selected"]
    assert sum(counter(IPC)) * WINDOW == pytest.approx(len(selected))
    assert counter(OCCUPANCY)[-1] == 0
    assert 0 < max(counter(OCCUPANCY)) <= 100


def test_saxpy_does_one_operation_for_8_bytes_of_dram(timing: Timing) -> None:
    """It reads 8 bytes for each fused multiply-add, and what it writes stays in L2."""
    line = roofline_of(timing)
    assert line is not None
    assert line.arithmetic.name == "FP32"
    by_name = {point.memory.name: point for point in line.points}
    assert by_name["DRAM"].intensity == pytest.approx(1 / 8, rel=0.02)
    for point in line.points:
        assert point.roof == min(line.arithmetic.peak, point.intensity * point.memory.peak)
        assert point.rate <= point.roof * 1.001


def test_the_roofline_is_drawn(timing: Timing) -> None:
    line = roofline_of(timing)
    assert line is not None
    drawn = ElementTree.fromstring(as_svg(line))
    marks = [e for e in drawn.iter() if e.tag.endswith("circle")]
    assert len(marks) == len(line.points)
    text = as_text(line)
    assert "modelled" in text
    assert re.search(r"DRAM +0\.12\d* results/byte .* bound by memory", text)


def test_a_time_is_a_flat_row() -> None:
    gpu = wl.Device("v100", record=True)
    kernel = gpu.compile('extern "C" __global__ void one(int *x) { x[threadIdx.x] = 1; }')["one"]
    timing = kernel[2, 64](np.zeros(64, np.int32)).time(code="ptx")
    row = timing.to_dict()
    assert (row["kernel"], row["device"], row["blocks"]) == ("one", "v100", 2)
    assert row["cycles"] == timing.cycles
    assert {f"warp_state.{name}" for name in timing.warp_states} < set(row)
    assert json.loads(json.dumps(row)) == row
