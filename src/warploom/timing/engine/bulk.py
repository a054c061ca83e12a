"""Models the Tensor Memory Accelerator of an SM: copies in order, line by line, past L1."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.engine.phases import extend_flight, finish_flight
from warploom.timing.engine.requests import NO_ENTRY, ONE_PASS, SectorRequest, request_sectors
from warploom.timing.records import (
    Flight,
    QueueEntry,
    SmState,
    TimedAccess,
    TimedPattern,
    TimedWarp,
)
from warploom.timing.work.costs import TICKS


@jitable
def enqueue_copy(
    arrays: EngineArrays, sm: SmState, flight_at: int, access: int, count: int
) -> None:
    """Appends the copy of the flight (memory instruction in flight) at offset `flight_at` to the
    ring buffer of the Tensor Memory Accelerator, with the `count` accesses of the record from
    number `access` on; `serve_copies` serves them."""
    slot = (sm.tma_head + sm.tma_count) % arrays.params.flights
    queued = QueueEntry(sm, arrays.params.at_tma, slot)
    queued.flight = flight_at
    queued.access = access
    queued.accesses_left = count
    sm.tma_count += 1


@jitable
def serve_copies(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Serves accesses of the copies in the Tensor Memory Accelerator's queue, in order, as long as
    the unit is free in the cycle `now` and the buffers have space for requests (`request_copy`). A
    copy whose accesses are all served leaves the queue; it ends here only if no answer of L2 is
    missing, else with its last answer."""
    while sm.tma_count > 0 and sm.tma_free <= now:
        queued = QueueEntry(sm, arrays.params.at_tma, sm.tma_head)
        flight = Flight(sm, queued.flight)
        if not request_copy(arrays, sm, flight, queued.access, now):
            return
        queued.access += 1
        queued.accesses_left -= 1
        flight.open_requests -= 1
        if queued.accesses_left == 0:
            sm.tma_head = (sm.tma_head + 1) % arrays.params.flights
            sm.tma_count -= 1
            if flight.open_requests == 0:
                finish_flight(arrays, sm, flight, now)


@jitable
def request_copy(arrays: EngineArrays, sm: SmState, flight: Flight, access: int, now: int) -> bool:
    """Requests the lines of one access of a bulk copy from L2, past L1, and occupies the Tensor
    Memory Accelerator for `tma_line_ticks` a line, at least a cycle, counted in `tma_cycles`;
    `flight`, the copy, ends no earlier than `now`. Returns True; False, with nothing requested and
    the unit stopped until the next quantum, if the buffers of requests have no space for all
    lines."""
    timed_access = TimedAccess(arrays.accesses, 0, access)
    pattern = TimedPattern(arrays.patterns, 0, timed_access.pattern)
    lines = pattern.lines
    # A copy has no miss status holding registers to wait for, only the buffers of the quantum.
    full = sm.request_count + lines > arrays.params.requests
    if full or sm.pair_count + lines > arrays.params.pairs:
        # `receive_answers` restarts the unit after the quantum.
        sm.tma_free = w.NEVER
        return False
    number = flight.warp_number
    timed_warp = TimedWarp(arrays.warps, number * arrays.params.warp_words)
    base = timed_warp.bases[timed_access.site]
    line = (base + timed_access.delta) >> w.LINE_BITS
    first = pattern.lines_at
    kind, spare_mshr = (pattern.kind & w.KIND, arrays.params.at_mshrs + arrays.params.mshrs)
    # The copy issued a cycle before. It occupies no real register: a spare one takes the answer.
    for index in range(first, first + lines):
        line_number, sectors = line + arrays.lines[2 * index], arrays.lines[2 * index + 1]
        wanted = SectorRequest(line_number, sectors, kind, ONE_PASS)
        request_sectors(arrays, sm, flight, wanted, NO_ENTRY, spare_mshr, now - 1)
    # The access ends now at the earliest; answers extend the flight.
    extend_flight(flight, now)
    cycles = max(1, lines * arrays.params.tma_line_ticks // TICKS)
    sm.tma_cycles += cycles
    sm.tma_free = now + cycles
    return True
