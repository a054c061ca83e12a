"""Modelled time as a trace for Perfetto (ui.perfetto.dev), in its own protobuf.

An SM has a track for each warp slot, on which a warp's states follow each other, and counters for
instructions per cycle and for occupancy. A nanosecond of the trace is a cycle of the SM's clock.
Source: Perfetto, "Writing custom data to a trace" (track descriptors, track events, counters).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    CounterDescriptor,
    Trace,
    TracePacket,
    TrackEvent,
)

from warploom.timing.result import Timing, WarpState

SEQUENCE = 1
WINDOW = 64
"""Cycles over which a counter is an average."""

PROCESS, IPC, OCCUPANCY, SLOTS = 1, 2, 3, 16
"""The numbers of the tracks; those of the slots follow the last."""


def write_trace(timing: Timing, file: Path, sm: int = 0) -> int:
    """Write what the warps of an SM did; gives how many states there were.

    The timing must have been asked for a timeline: `run.time(timeline=N)` keeps N states of each
    SM. Raises OSError where the file cannot be written.
    """
    states = timing.timeline(sm)
    made = _Writer(Trace())
    made.tracks(timing, sm, sorted({state.slot for state in states}))
    for state in states:
        made.state(state, timing)
    made.counter(IPC, _issued(states))
    most = timing.device.max_warps_per_sm
    made.counter(OCCUPANCY, ((at, 100 * warps / most) for at, warps in _resident(states)))
    file.write_bytes(made.trace.SerializeToString())
    return len(states)


class _Writer:
    """Fills a trace with packets."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def tracks(self, timing: Timing, sm: int, slots: Sequence[int]) -> None:
        packet = self._packet(0)
        packet.track_descriptor.uuid = PROCESS
        packet.track_descriptor.process.pid = sm + 1
        name = f"SM {sm}: {timing.program.title} on {timing.device.name}, modelled (1 ns: 1 cycle)"
        packet.track_descriptor.process.process_name = name
        for track, name, unit in (
            (IPC, "Instructions per cycle", ""),
            (OCCUPANCY, "Occupancy", "%"),
        ):
            packet = self._packet(0)
            packet.track_descriptor.uuid = track
            packet.track_descriptor.parent_uuid = PROCESS
            packet.track_descriptor.name = name
            packet.track_descriptor.counter.CopyFrom(CounterDescriptor(unit_name=unit))
        for slot in slots:
            packet = self._packet(0)
            packet.track_descriptor.uuid = SLOTS + slot
            packet.track_descriptor.parent_uuid = PROCESS
            packet.track_descriptor.name = f"warp slot {slot}"

    def state(self, state: WarpState, timing: Timing) -> None:
        """Write a slice from when the state began to when it ended."""
        packet = self._packet(state.since)
        event = packet.track_event
        event.type, event.track_uuid = TrackEvent.TYPE_SLICE_BEGIN, SLOTS + state.slot
        event.name, event.categories[:] = state.state.replace("_", " "), ["modelled"]
        program = timing.program
        told = {
            "warp": state.warp,
            "instruction": program.instructions[state.instruction].operation.text,
            "line": program.line(state.instruction),
        }
        for name, value in told.items():
            annotation = event.debug_annotations.add()
            annotation.name = name
            annotation.string_value = str(value)
        packet = self._packet(state.until)
        packet.track_event.type = TrackEvent.TYPE_SLICE_END
        packet.track_event.track_uuid = SLOTS + state.slot

    def counter(self, track: int, values: Iterable[tuple[int, float]]) -> None:
        for at, value in values:
            packet = self._packet(at)
            packet.track_event.type, packet.track_event.track_uuid = TrackEvent.TYPE_COUNTER, track
            packet.track_event.double_counter_value = value

    def _packet(self, at: int) -> TracePacket:
        packet = self.trace.packet.add()
        packet.timestamp = at
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet


def _issued(states: Sequence[WarpState]) -> list[tuple[int, float]]:
    """Issues per cycle, window by window."""
    issues = [state.since for state in states if state.state == "selected"]
    if not issues:
        return []
    counts = [0] * (max(issues) // WINDOW + 2)
    for at in issues:
        counts[at // WINDOW] += 1
    return [(number * WINDOW, count / WINDOW) for number, count in enumerate(counts)]


def _resident(states: Sequence[WarpState]) -> list[tuple[int, int]]:
    """Returns the number of slots that have a warp, whenever that changes."""
    changes: dict[int, int] = {}
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for state in states:
        if state.state != "no_warp":
            key = state.slot, state.warp
            first, last = spans.get(key, (state.since, state.until))
            spans[key] = min(first, state.since), max(last, state.until)
    for first, last in spans.values():
        changes[first] = changes.get(first, 0) + 1
        changes[last] = changes.get(last, 0) - 1
    found: list[tuple[int, int]] = []
    resident = 0
    for at in sorted(changes):
        resident += changes[at]
        found.append((at, resident))
    return found
