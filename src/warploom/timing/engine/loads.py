"""Models the load/store unit of an SM: serves memory instructions in order from shared memory,
constant memory and L1, and requests what L1 lacks from L2.

An instruction is a flight until its end is known.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import find_line, sector_times_at, tag_at, use_line
from warploom.timing.engine.l1 import charge_fills, count_sectors, l1, l1_cycles, l1_set
from warploom.timing.engine.machine import EngineArrays
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
from warploom.timing.records import (
    Flight,
    QueueEntry,
    SchedulerState,
    SmState,
    TimedAccess,
    TimedPattern,
    TimedWarp,
    WarpSlot,
)
from warploom.timing.work.costs import TICKS


@jitable
def serve_queue(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Serves accesses of the load/store unit's queue, in order, as long as the unit is free in the
    cycle `now` and has space for requests. An instruction whose accesses are all served frees its
    queue entry, so that its scheduler may issue another; it ends here if no answer of L2 is
    missing. A warp that waited for its last entry to leave the queue, before its EXIT, is
    scheduled."""
    while sm.queue_count > 0 and sm.lsu_free <= now:
        queued = QueueEntry(sm, arrays.params.at_queue, sm.queue_head)
        flight = Flight(sm, queued.flight)
        warp = WarpSlot(sm, flight.warp)
        if not serve_access(arrays, sm, flight, warp, queued.access, now):
            return
        queued.access += 1
        queued.accesses_left -= 1
        flight.open_requests -= 1
        # All accesses of the instruction have been served: its queue entry is free, though answers
        # may be missing.
        if queued.accesses_left == 0:
            sm.queue_head += 1
            if sm.queue_head == arrays.params.schedulers * arrays.params.lsu_queue:
                sm.queue_head = 0
            sm.queue_count -= 1
            scheduler = SchedulerState(sm, warp.scheduler)
            scheduler.queued -= 1
            warp.queued -= 1
            if flight.open_requests == 0:
                finish_flight(arrays, sm, flight, now)
            elif warp.queued == 0:
                recheck_waits(arrays, sm, warp, now)
            retry_issue(scheduler, now)


@jitable
def retry_issue(scheduler: SchedulerState, now: int) -> None:
    """Makes a scheduler that has ready warps try again to issue in the cycle `now` (`next`), since
    queue entries or flights have become free. Nothing if it has none."""
    if scheduler.ready > 0:
        scheduler.next = min(scheduler.next, now)


@jitable
def serve_access(
    arrays: EngineArrays, sm: SmState, flight: Flight, warp: WarpSlot, access: int, now: int
) -> bool:
    """Serves one access of a flight (memory instruction in flight), as of the cycle before `now`.
    An access to shared or constant memory extends the flight to its end (latency plus conflicts).
    One to an mbarrier arrives at a phase or waits for it, which costs the unit no time. Any other
    requests lines (`request_lines`) and calls the user's prefetcher, if there is one and the access
    goes through L1. Occupies the load/store unit for the access's cycles (`lsu_free`), plus those
    of `fill_debt` where lines are requested, and counts those of shared memory (`shared_cycles`)
    and lines (`l1_cycles`). Returns True; False, serving nothing, if there is no space for its
    requests (`check_request_space`)."""
    timed_access = TimedAccess(arrays.accesses, 0, access)
    pattern = TimedPattern(arrays.patterns, 0, timed_access.pattern)
    kind = pattern.kind & w.KIND
    wavefronts = pattern.wavefronts
    # The issue was a cycle before: latencies count from there.
    start = now - 1
    if kind == w.SHARED_ACCESS:
        cycles = wavefronts * arrays.params.shared_wavefront_cycles
        sm.shared_cycles += cycles
        extra = pattern.conflicts * arrays.params.shared_wavefront_cycles
        extend_flight(flight, start + extra + arrays.params.latency_shared)
    elif kind == w.MBARRIER_ACCESS:
        cycles = 0
        request_phase(arrays, sm, flight, access, now)
    elif kind == w.CONSTANT_ACCESS:
        cycles = wavefronts * arrays.params.constant_cycles
        extra = cycles - arrays.params.constant_cycles
        extend_flight(flight, start + extra + arrays.params.latency_constant)
    else:
        if not check_request_space(arrays, sm, pattern.lines, start):
            return False
        number = warp.warp
        timed_warp = TimedWarp(arrays.warps, number * arrays.params.warp_words)
        base = timed_warp.bases[timed_access.site]
        line = (base + timed_access.delta) >> w.LINE_BITS
        missed = request_lines(arrays, sm, flight, pattern, line, start)
        if arrays.params.prefetch != 0 and pattern.kind & w.THROUGH_L1:
            prefetch(arrays, sm, flight, pattern, line, missed, start)
        cycles = (
            max(arrays.params.l1_request_cycles, l1_cycles(arrays, pattern)) + sm.fill_debt // TICKS
        )
        # Only whole cycles are charged; the rest stays in the debt.
        sm.fill_debt %= TICKS
        sm.l1_cycles += cycles
    sm.lsu_free = now + cycles
    return True


@jitable
def request_lines(
    arrays: EngineArrays, sm: SmState, flight: Flight, pattern: TimedPattern, line: int, start: int
) -> int:
    """Requests the lines of an access from L2; if it goes through L1, only the sectors that L1
    lacks, which get an entry in it. `flight` (the memory instruction) waits for these and for
    sectors already on their way. Hits and misses in L1 are counted; hits end after L1's latency, an
    access to texels not before the texture unit's. Space for requests must have been checked.
    Stores invalidate in L1 the sectors that they write past it; a partial store to a line that its
    warp has stored to in this quantum joins that request. `line` is the line's number of the
    access's base, `start` the cycle of the request. Returns a bit mask of the pattern's lines for
    which a request was made; lines from the 63rd on share a bit."""
    missed, kind, first = 0, pattern.kind, pattern.lines_at
    if kind & w.TEXELS:
        extend_flight(flight, start + arrays.params.latency_texture)
    cache = l1(arrays, sm)
    for index in range(first, first + pattern.lines):
        line_number = line + arrays.lines[2 * index]
        sectors = arrays.lines[2 * index + 1] & w.SECTOR_MASK
        unwritten = arrays.lines[2 * index + 1] & ~w.SECTOR_MASK
        entry = NO_ENTRY
        if cache.sets > 0 and kind & (w.DROPS_L1 | w.THROUGH_L1):
            set_index = l1_set(arrays, sm, line_number)
            # A store that bypasses L1 invalidates the sectors that it writes.
            if kind & w.DROPS_L1:
                stale = find_line(cache, set_index, line_number)
                if stale >= 0:
                    sm.words[tag_at(cache, stale)] &= ~sectors
            if kind & w.THROUGH_L1:
                entry = use_line(cache, set_index, line_number, start)
                latency = arrays.params.latency_l1
                if kind & w.TEXELS:
                    latency = arrays.params.latency_texture
                sectors = read_from_l1(arrays, sm, flight, entry, sectors, start, start + latency)
        # Partial stores of a warp to a line in one quantum are merged (see there for the evidence).
        open_store = find_open_store(arrays, sm, flight.warp, line_number) if unwritten else -1
        if open_store >= 0:
            merge_store(arrays, sm, open_store, sectors | unwritten)
            add_waiter(arrays, sm, flight, open_store)
        elif sectors:
            missed |= 1 << min(index - first, LAST_MISSED_BIT)
            passes = pattern.passes
            mshr = allocate_mshr(arrays, sm)
            wanted = SectorRequest(line_number, sectors | unwritten, kind & w.KIND, passes)
            request_sectors(arrays, sm, flight, wanted, entry, mshr, start)
    return missed


@jitable
def read_from_l1(
    arrays: EngineArrays, sm: SmState, flight: Flight, entry: int, sectors: int, start: int,
    earliest: int,
) -> int:  # fmt: skip
    """Makes a flight wait for those of the sectors in a mask that an entry of L1 has, or that an
    earlier access has requested, until the cycle `earliest` at least. Marks the other sectors as
    valid in the entry, charges their fill from the cycle `start` on, and returns them: the caller
    has to request them. Counts hits and misses."""
    cache = l1(arrays, sm)
    tag = tag_at(cache, entry)
    missing = sectors & ~sm.words[tag]
    count_sectors(sm, sectors, missing)
    times = sector_times_at(cache, entry)
    wait_for_line(arrays, sm, flight, times, sectors & ~missing, earliest)
    sm.words[tag] |= missing
    if missing and arrays.params.fill_ticks:
        charge_fills(arrays, sm, missing, start)
    return int(missing)
