"""Models the load/store unit of an SM: serves memory instructions in order from shared memory,
constant memory and L1, and requests what L1 lacks from L2.

An instruction is a flight until its end is known.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import find_line, sector_times_at, tag_at, use_line
from warploom.timing.engine.l1 import charge_fills, count_sectors, l1, l1_cycles, l1_set
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.phases import extend_flight, finish_flight, request_phase
from warploom.timing.engine.prefetching import LAST_MISSED_BIT, prefetch
from warploom.timing.engine.requests import (
    NO_ENTRY,
    SectorRequest,
    add_waiter,
    allocate_mshr,
    check_request_space,
    find_open_store,
    merge_store,
    request_sectors,
    wait_for_line,
)
from warploom.timing.engine.waits import recheck_waits
from warploom.timing.work.costs import TICKS


@jitable
def serve_queue(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Serves accesses of the load/store unit's queue, in order, as long as the unit is free in the
    cycle `now` and has space for requests. An instruction whose accesses are all served frees its
    queue entry, and ends if no answer of L2 is missing; its scheduler may then issue another."""
    while sm[w.QUEUE_COUNT] > 0 and sm[w.LSU_FREE] <= now:
        queued = arrays.params[w.AT_QUEUE] + sm[w.QUEUE_HEAD] * w.Q_WORDS
        flight = sm[queued + w.Q_FLIGHT]
        warp = sm[flight + w.F_WARP]
        if not serve_access(arrays, sm, flight, warp, sm[queued + w.Q_ACCESS], now):
            return
        sm[queued + w.Q_ACCESS] += 1
        sm[queued + w.Q_ACCESSES_LEFT] -= 1
        sm[flight + w.F_OPEN_REQUESTS] -= 1
        # All accesses of the instruction have been served: its queue entry is free, though answers
        # may be missing.
        if sm[queued + w.Q_ACCESSES_LEFT] == 0:
            sm[w.QUEUE_HEAD] += 1
            if sm[w.QUEUE_HEAD] == arrays.params[w.SCHEDULERS] * arrays.params[w.LSU_QUEUE]:
                sm[w.QUEUE_HEAD] = 0
            sm[w.QUEUE_COUNT] -= 1
            scheduler = sm[warp + w.V_SCHEDULER]
            sm[scheduler + w.S_QUEUED] -= 1
            sm[warp + w.V_QUEUED] -= 1
            if sm[flight + w.F_OPEN_REQUESTS] == 0:
                finish_flight(arrays, sm, flight, now)
            elif sm[warp + w.V_QUEUED] == 0:
                recheck_waits(arrays, sm, warp, now)
            retry_issue(sm, scheduler, now)


@jitable
def retry_issue(sm: Words, scheduler: int, now: int) -> None:
    """Makes a scheduler that has ready warps try again in the cycle `now` to issue (S_NEXT), as
    queue entries or flights have become free."""
    if sm[scheduler + w.S_READY] > 0:
        sm[scheduler + w.S_NEXT] = min(sm[scheduler + w.S_NEXT], now)


@jitable
def serve_access(
    arrays: EngineArrays, sm: Words, flight: int, warp: int, access: int, now: int
) -> bool:
    """Serves one access of a flight: extends the flight to the end of an access to shared or
    constant memory, arrives at or waits for a phase of an mbarrier, or looks lines up in L1,
    requests what it lacks and calls the prefetcher, if there is one; occupies the unit for its
    cycles, to which fills of L1 add. Returns False if it has to wait for space for its requests."""
    access_offset = access * w.ACCESS_WORDS
    pattern = arrays.accesses[access_offset + w.A_PATTERN] * w.P_WORDS
    kind = arrays.patterns[pattern + w.P_KIND] & w.KIND
    wavefronts = arrays.patterns[pattern + w.P_WAVEFRONTS]
    # The issue was a cycle before: latencies count from there.
    start = now - 1
    if kind == w.SHARED_ACCESS:
        cycles = wavefronts * arrays.params[w.SHARED_WAVEFRONT_CYCLES]
        sm[w.SHARED_CYCLES] += cycles
        extra = arrays.patterns[pattern + w.P_CONFLICTS] * arrays.params[w.SHARED_WAVEFRONT_CYCLES]
        extend_flight(sm, flight, start + extra + arrays.params[w.LATENCY_SHARED])
    elif kind == w.MBARRIER_ACCESS:
        cycles = 0
        request_phase(arrays, sm, flight, access, now)
    elif kind == w.CONSTANT_ACCESS:
        cycles = wavefronts * arrays.params[w.CONSTANT_CYCLES]
        extra = cycles - arrays.params[w.CONSTANT_CYCLES]
        extend_flight(sm, flight, start + extra + arrays.params[w.LATENCY_CONSTANT])
    else:
        if not check_request_space(arrays, sm, arrays.patterns[pattern + w.P_LINES], start):
            return False
        number = sm[warp + w.V_WARP]
        base = arrays.warps[
            number * arrays.params[w.WARP_WORDS] + 1 + arrays.accesses[access_offset + w.A_SITE]
        ]
        line = (base + arrays.accesses[access_offset + w.A_DELTA]) >> w.LINE_BITS
        missed = request_lines(arrays, sm, flight, pattern, line, start)
        if arrays.params[w.PREFETCH] != 0 and arrays.patterns[pattern + w.P_KIND] & w.THROUGH_L1:
            prefetch(arrays, sm, flight, pattern, line, missed, start)
        cycles = (
            max(arrays.params[w.L1_REQUEST_CYCLES], l1_cycles(arrays, pattern))
            + sm[w.FILL_DEBT] // TICKS
        )
        # Only whole cycles are charged; the rest stays in the debt.
        sm[w.FILL_DEBT] %= TICKS
        sm[w.L1_CYCLES] += cycles
    sm[w.LSU_FREE] = now + cycles
    return True


@jitable
def request_lines(
    arrays: EngineArrays, sm: Words, flight: int, pattern: int, line: int, start: int
) -> int:
    """Looks the lines of an access up in L1, if it goes through L1, and requests from L2 the
    sectors that L1 lacks (else all); the flight waits for them and for sectors on their way. Stores
    invalidate sectors of L1 that they bypass, and partial ones are merged. `pattern` is the offset
    of the access's pattern, `line` the number of its base's line, `start` the cycle of the request.
    Returns a bit mask of the lines that lacked any sector; lines from the 63rd on share a bit."""
    missed = 0
    kind = arrays.patterns[pattern + w.P_KIND]
    first = arrays.patterns[pattern + w.P_LINES_AT]
    through = kind & w.THROUGH_L1 and arrays.params[w.L1_SETS] > 0
    if kind & w.TEXELS:
        extend_flight(sm, flight, start + arrays.params[w.LATENCY_TEXTURE])
    cache = l1(arrays, sm)
    for index in range(first, first + arrays.patterns[pattern + w.P_LINES]):
        line_number, sectors = (
            line + arrays.lines[2 * index],
            arrays.lines[2 * index + 1] & w.SECTOR_MASK,
        )
        entry, set_index = NO_ENTRY, 0
        unwritten = arrays.lines[2 * index + 1] & ~w.SECTOR_MASK
        if cache.sets > 0 and kind & (w.DROPS_L1 | w.THROUGH_L1):
            set_index = l1_set(arrays, sm, line_number)
        # A store that bypasses L1 invalidates the sectors that it writes.
        if kind & w.DROPS_L1 and arrays.params[w.L1_SETS] > 0:
            stale = find_line(cache, set_index, line_number)
            if stale >= 0:
                sm[tag_at(cache, stale)] &= ~sectors
        if through:
            entry = use_line(cache, set_index, line_number, start)
            tag = tag_at(cache, entry)
            missing = sectors & ~sm[tag]
            count_sectors(sm, sectors, missing)
            latency = arrays.params[w.LATENCY_TEXTURE if kind & w.TEXELS else w.LATENCY_L1]
            wait_for_line(
                arrays,
                sm,
                flight,
                sector_times_at(cache, entry),
                sectors & ~missing,
                start + latency,
            )
            # Sectors that are valid, or requested by an earlier access, need no request of their
            # own.
            sectors = missing
            sm[tag] |= missing
            if missing and arrays.params[w.FILL_TICKS]:
                charge_fills(arrays, sm, missing, start)
        # Partial stores of a warp to a line in one quantum are merged (see there for the evidence).
        open_store = (
            find_open_store(arrays, sm, sm[flight + w.F_WARP], line_number) if unwritten else -1
        )
        if open_store >= 0:
            merge_store(arrays, sm, open_store, sectors | unwritten)
            add_waiter(arrays, sm, flight, open_store)
        elif sectors:
            missed |= 1 << min(index - first, LAST_MISSED_BIT)
            passes = arrays.patterns[pattern + w.P_PASSES]
            mshr = allocate_mshr(arrays, sm)
            wanted = SectorRequest(line_number, sectors | unwritten, kind & w.KIND, passes)
            request_sectors(arrays, sm, flight, wanted, entry, mshr, start)
    return missed
