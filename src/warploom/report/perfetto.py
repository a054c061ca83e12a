"""Modelled time as a trace for Perfetto (ui.perfetto.dev), in its own protobuf.

An SM has a track for each warp slot, on which a warp's states follow each other, as many tracks as
copies are in flight at a time, and counters for instructions per cycle and for occupancy. A
nanosecond of the trace is a cycle of the SM's clock.
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

from warploom.core.output_files import write_bytes
from warploom.timing.readings import CopyInFlight, StateInterval
from warploom.timing.result import Timing

SEQUENCE = 1
WINDOW = 64
"""Cycles over which a counter is an average."""

PROCESS, IPC, OCCUPANCY, SLOTS, COPIES = 1, 2, 3, 16, 1 << 12
"""The numbers of the tracks; those of the slots follow SLOTS, those of copies the last."""


def write_trace(timing: Timing, file: Path, sm: int = 0) -> int:
    """Writes what the warps of an SM did; gives how many states there were.

    The timing must have been asked for a timeline: `run.time(timeline=N)` keeps N states of each
    SM. Raises WarploomError where the file cannot be written.
    """
    states = timing.timeline(sm)
    made = _Writer(Trace())
    made.tracks(timing, sm, sorted({state.slot for state in states}))
    for state in states:
        made.state(state, timing)
    made.copies(timing, sm)
    made.counter(IPC, _issued(states))
    most = timing.device.max_warps_per_sm
    made.counter(OCCUPANCY, ((at, 100 * warps / most) for at, warps in _resident(states)))
    write_bytes(file, made.trace.SerializeToString())
    return len(states)


class _Writer:
    """Fills a trace with packets."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def tracks(self, timing: Timing, sm: int, slots: Sequence[int]) -> None:
        packet = self._packet(0)
        packet.track_descriptor.uuid = PROCESS
        packet.track_descriptor.process.pid = sm + 1
        name = f"SM {sm}: {timing.program.title} on {timing.device.name}, modelled (1 ns = 1 cycle)"
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
            self._track(SLOTS + slot, f"warp slot {slot}")

    def _track(self, number: int, name: str) -> None:
        packet = self._packet(0)
        packet.track_descriptor.uuid = number
        packet.track_descriptor.parent_uuid = PROCESS
        packet.track_descriptor.name = name

    def state(self, state: StateInterval, timing: Timing) -> None:
        """Writes a slice from when the state began to when it ended."""
        self._slice(SLOTS + state.slot, state.state.replace("_", " "), state, timing)

    def copies(self, timing: Timing, sm: int) -> None:
        """Writes a slice for each copy, on the first track that is free when it is issued."""
        ends: list[int] = []
        for copy in sorted(timing.copies(sm), key=lambda one: one.since):
            free = (track for track, end in enumerate(ends) if end <= copy.since)
            track = next(free, len(ends))
            if track == len(ends):
                ends.append(0)
                self._track(COPIES + track, f"copy in flight {track}")
            ends[track] = copy.until
            self._slice(COPIES + track, "copy", copy, timing)

    def _slice(
        self, track: int, name: str, span: StateInterval | CopyInFlight, timing: Timing
    ) -> None:
        packet = self._packet(span.since)
        event = packet.track_event
        event.type, event.track_uuid = TrackEvent.TYPE_SLICE_BEGIN, track
        event.name, event.categories[:] = name, ["modelled"]
        program = timing.program
        annotations = {
            "warp": span.warp,
            "instruction": program.opcode(span.instruction),
            "line": program.line(span.instruction),
        }
        for key, value in annotations.items():
            annotation = event.debug_annotations.add()
            annotation.name = key
            annotation.string_value = str(value)
        packet = self._packet(span.until)
        packet.track_event.type = TrackEvent.TYPE_SLICE_END
        packet.track_event.track_uuid = track

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


def _issued(states: Sequence[StateInterval]) -> list[tuple[int, float]]:
    """Issues per cycle, window by window."""
    issues = [state.since for state in states if state.state == "selected"]
    if not issues:
        return []
    counts = [0] * (max(issues) // WINDOW + 2)
    for at in issues:
        counts[at // WINDOW] += 1
    return [(number * WINDOW, count / WINDOW) for number, count in enumerate(counts)]


def _resident(states: Sequence[StateInterval]) -> list[tuple[int, int]]:
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
