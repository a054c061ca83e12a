"""Models a prefetcher of L1 in the timing model: requests the lines that a user's function
(`timing.policies.Prefetcher`) names for the lines of a load."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import find_line, tag_at, use_line
from warploom.timing.engine.l1 import l1, l1_set
from warploom.timing.engine.machine import EngineArrays, call_user_function, offset_array
from warploom.timing.engine.requests import (
    NO_FLIGHT,
    ONE_PASS,
    SectorRequest,
    allocate_mshr,
    request_sectors,
)
from warploom.timing.records import Flight, SmState, TimedOperation, TimedPattern, WarpSlot

MOST_PREFETCHED = 4
"""Lines that a prefetcher can name for one that is loaded, at most."""

LAST_MISSED_BIT = 62
"""In the mask of lines that L1 lacked, the bit for all lines from this number on."""

MOST_LINE = (1 << 48) - 1


@jitable
def prefetch(
    arrays: EngineArrays,
    sm: SmState,
    flight: Flight,
    pattern: TimedPattern,
    line: int,
    missed: int,
    start: int,
) -> None:
    """Calls the user's prefetcher for each line of an access through L1, with `nth` 0, 1, ... up to
    MOST_PREFETCHED times, until it names none (a result below 0) or a line cannot be requested, and
    requests the lines that it names at the cycle `start` (`prefetch_line`). `pattern` is the
    access's, `line` the number of its base's line, `missed` the bit mask of the pattern's lines
    that were requested from L2; lines from the 63rd on share a bit."""
    slot = (flight.warp - arrays.params.at_warps) // WarpSlot.WORDS
    instruction = TimedOperation(arrays.ops, 0, flight.op).instruction
    words = offset_array(sm.words, arrays.params.at_user + w.USER_PREFETCHER * w.USER_STRIDE)
    first = pattern.lines_at
    for index in range(pattern.lines):
        line_number = line + arrays.lines[2 * (first + index)]
        missed_line = missed >> min(index, LAST_MISSED_BIT) & 1
        for nth in range(MOST_PREFETCHED):
            arguments = line_number, missed_line, instruction, slot, nth
            target = call_user_function(arrays.params.prefetch, arguments, words)
            if target < 0 or not prefetch_line(arrays, sm, target, start):
                break


@jitable
def prefetch_line(arrays: EngineArrays, sm: SmState, line: int, start: int) -> bool:
    """Requests the sectors of a line that L1 lacks, if any, at the cycle `start`, and counts the
    request in `prefetched`; no flight waits for them. Returns True, also if L1 has all or has
    requested them; False, requesting nothing, if no MSHR or no space for a request is free, there
    is no L1, or the line's number exceeds MOST_LINE."""
    cache = l1(arrays, sm)
    if arrays.params.l1_sets == 0 or line > MOST_LINE:
        return False
    set_index = l1_set(arrays, sm, line)
    present = find_line(cache, set_index, line)
    if present >= 0 and sm.words[tag_at(cache, present)] & w.SECTOR_MASK == w.SECTOR_MASK:
        return True
    busy = sm.words[arrays.params.at_mshrs + sm.mshr_head] > start
    if busy or sm.request_count + 1 > arrays.params.requests:
        return False
    entry = use_line(cache, set_index, line, start)
    missing = w.SECTOR_MASK & ~sm.words[tag_at(cache, entry)]
    sm.words[tag_at(cache, entry)] |= missing
    sm.prefetched += 1
    mshr = allocate_mshr(arrays, sm)
    wanted = SectorRequest(line, missing, w.LOAD, ONE_PASS)
    request_sectors(arrays, sm, Flight(sm, NO_FLIGHT), wanted, entry, mshr, start)
    return True
