"""Prefetches: lines that a user's function names for those that a load misses or reaches."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import find_line, tag_at, use_line
from warploom.timing.engine.l1 import l1, l1_set
from warploom.timing.engine.machine import Machine, Words, behind, called
from warploom.timing.engine.requests import ask, next_mshr

MOST_PREFETCHED = 4
"""So many lines may a prefetcher name for one that is loaded."""

MOST_LINE = (1 << 48) - 1


@jitable
def prefetch(
    g: Machine, m: Words, flight: int, pattern: int, line: int, missed: int, start: int
) -> None:
    """Ask for the lines that the user's prefetcher names for each line of a load."""
    slot = (m[flight + w.F_WARP] - g.p[w.AT_WARPS]) // w.V_WORDS
    instruction = g.ops[m[flight + w.F_OP] * w.OP_WORDS + w.OP_INSTRUCTION]
    words = behind(m, g.p[w.AT_OWN] + w.OWN_STRIDE)
    first = g.patterns[pattern + w.P_LINES_AT]
    for place in range(g.patterns[pattern + w.P_LINES]):
        number = line + g.lines[2 * (first + place)]
        late = missed >> min(place, 62) & 1
        for nth in range(MOST_PREFETCHED):
            wanted = called(g.p[w.PREFETCH], number, late, instruction, slot, nth, words)
            if wanted < 0 or not prefetch_line(g, m, wanted, start):
                break


@jitable
def prefetch_line(g: Machine, m: Words, line: int, start: int) -> bool:
    """Ask for what L1 has not of a line; False where there is no room for a request."""
    cache = l1(g, m)
    if g.p[w.L1_SETS] == 0 or line > MOST_LINE:
        return False
    place = l1_set(g, m, line)
    known = find_line(cache, place, line)
    if known >= 0 and m[tag_at(cache, known)] & w.SECTOR_MASK == w.SECTOR_MASK:
        return True
    busy = m[g.p[w.AT_MSHRS] + m[w.MSHR_HEAD]] > start
    if busy or m[w.REQUEST_COUNT] + 1 > g.p[w.REQUESTS]:
        return False
    entry = use_line(cache, place, line, start)
    missing = w.SECTOR_MASK & ~m[tag_at(cache, entry)]
    m[tag_at(cache, entry)] |= missing
    m[w.PREFETCHED] += 1
    ask(g, m, -1, line, missing, w.LOAD, 1, entry, next_mshr(g, m), start)
    return True
