"""Models a prefetcher of L1 in the timing model: requests the lines that a user's function
(`timing.policies.Prefetcher`) names for the lines of a load."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import find_line, tag_at, use_line
from warploom.timing.engine.l1 import l1, l1_set
from warploom.timing.engine.machine import EngineArrays, Words, call_user_function, offset_array
from warploom.timing.engine.requests import (
    NO_FLIGHT,
    ONE_PASS,
    SectorRequest,
    allocate_mshr,
    request_sectors,
)

MOST_PREFETCHED = 4
"""Lines that a prefetcher can name for one that is loaded, at most."""

LAST_MISSED_BIT = 62
"""In the mask of lines that L1 lacked, the bit for all lines from this number on."""

MOST_LINE = (1 << 48) - 1


@jitable
def prefetch(
    arrays: EngineArrays, sm: Words, flight: int, pattern: int, line: int, missed: int, start: int
) -> None:
    """Calls the user's prefetcher for each line of a load, up to MOST_PREFETCHED times until it
    names none, and requests the lines that it names at the cycle `start`. `pattern` is the offset
    of the load's pattern, `line` the number of its base's line, `missed` the bit mask of lines that
    L1 lacked."""
    slot = (sm[flight + w.F_WARP] - arrays.params[w.AT_WARPS]) // w.V_WORDS
    instruction = arrays.ops[sm[flight + w.F_OP] * w.OP_WORDS + w.OP_INSTRUCTION]
    words = offset_array(sm, arrays.params[w.AT_USER] + w.USER_PREFETCHER * w.USER_STRIDE)
    first = arrays.patterns[pattern + w.P_LINES_AT]
    for index in range(arrays.patterns[pattern + w.P_LINES]):
        line_number = line + arrays.lines[2 * (first + index)]
        missed_line = missed >> min(index, LAST_MISSED_BIT) & 1
        for nth in range(MOST_PREFETCHED):
            target = call_user_function(
                arrays.params[w.PREFETCH], line_number, missed_line, instruction, slot, nth, words
            )
            if target < 0 or not prefetch_line(arrays, sm, target, start):
                break


@jitable
def prefetch_line(arrays: EngineArrays, sm: Words, line: int, start: int) -> bool:
    """Requests the sectors of a line that L1 lacks, if any, at the cycle `start`, and counts the
    request in PREFETCHED; no flight waits for them. Returns True, also if L1 has all; False, and
    requests nothing, if no request is free, there is no L1, or the line number exceeds
    MOST_LINE."""
    cache = l1(arrays, sm)
    if arrays.params[w.L1_SETS] == 0 or line > MOST_LINE:
        return False
    set_index = l1_set(arrays, sm, line)
    present = find_line(cache, set_index, line)
    if present >= 0 and sm[tag_at(cache, present)] & w.SECTOR_MASK == w.SECTOR_MASK:
        return True
    busy = sm[arrays.params[w.AT_MSHRS] + sm[w.MSHR_HEAD]] > start
    if busy or sm[w.REQUEST_COUNT] + 1 > arrays.params[w.REQUESTS]:
        return False
    entry = use_line(cache, set_index, line, start)
    missing = w.SECTOR_MASK & ~sm[tag_at(cache, entry)]
    sm[tag_at(cache, entry)] |= missing
    sm[w.PREFETCHED] += 1
    mshr = allocate_mshr(arrays, sm)
    wanted = SectorRequest(line, missing, w.LOAD, ONE_PASS)
    request_sectors(arrays, sm, NO_FLIGHT, wanted, entry, mshr, start)
    return True
