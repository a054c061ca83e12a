"""Models the Tensor Memory Accelerator of an SM: copies in order, line by line, past L1."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.phases import extend_flight, finish_flight
from warploom.timing.engine.requests import NO_ENTRY, ONE_PASS, SectorRequest, request_sectors
from warploom.timing.work.costs import TICKS


@jitable
def enqueue_copy(arrays: EngineArrays, sm: Words, flight: int, access: int, count: int) -> None:
    """Appends a copy (`flight`) of `count` accesses, from number `access` of the stream on, to the
    ring buffer of the Tensor Memory Accelerator; `serve_copies` serves them."""
    slot = (sm[w.TMA_HEAD] + sm[w.TMA_COUNT]) % arrays.params[w.FLIGHTS]
    queued = arrays.params[w.AT_TMA] + slot * w.Q_WORDS
    sm[queued + w.Q_FLIGHT] = flight
    sm[queued + w.Q_ACCESS] = access
    sm[queued + w.Q_ACCESSES_LEFT] = count
    sm[w.TMA_COUNT] += 1


@jitable
def serve_copies(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Serves accesses of copies in the unit's queue, in order, as long as the unit is free in the
    cycle `now`; a copy whose accesses are all served and answered ends."""
    while sm[w.TMA_COUNT] > 0 and sm[w.TMA_FREE] <= now:
        queued = arrays.params[w.AT_TMA] + sm[w.TMA_HEAD] * w.Q_WORDS
        flight = sm[queued + w.Q_FLIGHT]
        if not request_copy(arrays, sm, flight, sm[queued + w.Q_ACCESS], now):
            return
        sm[queued + w.Q_ACCESS] += 1
        sm[queued + w.Q_ACCESSES_LEFT] -= 1
        sm[flight + w.F_OPEN_REQUESTS] -= 1
        if sm[queued + w.Q_ACCESSES_LEFT] == 0:
            sm[w.TMA_HEAD] = (sm[w.TMA_HEAD] + 1) % arrays.params[w.FLIGHTS]
            sm[w.TMA_COUNT] -= 1
            if sm[flight + w.F_OPEN_REQUESTS] == 0:
                finish_flight(arrays, sm, flight, now)


@jitable
def request_copy(arrays: EngineArrays, sm: Words, flight: int, access: int, now: int) -> bool:
    """Requests the lines of one access of a copy from L2, past L1, and occupies the unit for
    TMA_LINE_TICKS a line; returns False, and stops the unit until the next quantum, if the buffers
    of requests have no space for them."""
    access_offset = access * w.ACCESS_WORDS
    pattern = arrays.accesses[access_offset + w.A_PATTERN] * w.P_WORDS
    lines = arrays.patterns[pattern + w.P_LINES]
    # A copy has no miss status holding registers to wait for, only the buffers of the quantum.
    full = sm[w.REQUEST_COUNT] + lines > arrays.params[w.REQUESTS]
    if full or sm[w.PAIR_COUNT] + lines > arrays.params[w.PAIRS]:
        # `receive_answers` restarts the unit after the quantum.
        sm[w.TMA_FREE] = w.NEVER
        return False
    number = sm[flight + w.F_WARP_NUMBER]
    base = arrays.warps[
        number * arrays.params[w.WARP_WORDS] + 1 + arrays.accesses[access_offset + w.A_SITE]
    ]
    line = (base + arrays.accesses[access_offset + w.A_DELTA]) >> w.LINE_BITS
    first = arrays.patterns[pattern + w.P_LINES_AT]
    kind, spare_mshr = (
        arrays.patterns[pattern + w.P_KIND] & w.KIND,
        arrays.params[w.AT_MSHRS] + arrays.params[w.MSHRS],
    )
    # The copy issued a cycle before. It occupies no real register: a spare one takes the answer.
    for index in range(first, first + lines):
        line_number, sectors = line + arrays.lines[2 * index], arrays.lines[2 * index + 1]
        wanted = SectorRequest(line_number, sectors, kind, ONE_PASS)
        request_sectors(arrays, sm, flight, wanted, NO_ENTRY, spare_mshr, now - 1)
    # The access ends now at the earliest; answers extend the flight.
    extend_flight(sm, flight, now)
    cycles = max(1, lines * arrays.params[w.TMA_LINE_TICKS] // TICKS)
    sm[w.TMA_CYCLES] += cycles
    sm[w.TMA_FREE] = now + cycles
    return True
