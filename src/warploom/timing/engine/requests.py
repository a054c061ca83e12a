"""Keep what an SM asks of L2 in a quantum: requests, and the flights that wait for them."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import fill_at, mapped, place_of
from warploom.timing.engine.l1 import l1
from warploom.timing.engine.machine import Machine, Words, behind
from warploom.timing.engine.phases import land_at


@jitable
def has_queue_space(g: Machine, m: Words, lines: int, start: int) -> bool:
    """Returns whether so many requests can be made: they have places one after the other, and one
    is free again when its answer has come. If not, the unit tries again when it may be."""
    needed = min(lines, g.p[w.MSHRS])
    full = m[w.REQUEST_COUNT] + lines > g.p[w.REQUESTS]
    full = full or m[w.PAIR_COUNT] + 4 * lines > g.p[w.PAIRS]
    for ahead in range(needed):
        place = g.p[w.AT_MSHRS] + m[w.MSHR_HEAD] + ahead
        if m[w.MSHR_HEAD] + ahead >= g.p[w.MSHRS]:
            place -= g.p[w.MSHRS]
        if full or m[place] > start:
            m[w.LSU_FREE] = w.NEVER if full else max(m[place] + 1, start + 2)
            return False
    return True


@jitable
def next_mshr(g: Machine, m: Words) -> int:
    """Take the next place among the requests that L1 has on their way."""
    place = g.p[w.AT_MSHRS] + m[w.MSHR_HEAD]
    m[place] = w.NEVER
    m[w.MSHR_HEAD] += 1
    if m[w.MSHR_HEAD] == g.p[w.MSHRS]:
        m[w.MSHR_HEAD] = 0
    return int(place)


@jitable
def ask(
    g: Machine,
    m: Words,
    flight: int,
    line: int,
    sectors: int,
    kind: int,
    passes: int,
    entry: int,
    mshr: int,
    start: int,
) -> None:
    """Ask L2 for sectors of a line; a flight waits for the answer, or none (-1). The place of the
    request is at `mshr`."""
    number = m[w.REQUEST_COUNT]
    m[w.REQUEST_COUNT] += 1
    at = g.p[w.AT_REQUESTS] + number * w.R_WORDS
    m[at + w.R_TIME] = start
    m[at + w.R_LINE] = line
    m[at + w.R_SECTORS] = sectors
    m[at + w.R_KIND] = kind
    m[at + w.R_PASSES] = passes
    m[at + w.R_ENTRY] = entry
    if g.p[w.L2_SETS] > 0:
        m[at + w.R_SET] = l2_set(g, m, line)
    m[at + w.R_MSHR] = mshr
    if kind == w.STORE:
        m[at + w.R_WARP] = m[flight + w.F_WARP]
    if entry >= 0:
        fills = fill_at(l1(g, m), entry)
        for sector in range(w.SECTORS):
            if (sectors >> sector) & 1:
                m[fills + sector] = -1 - number
    if flight >= 0:
        pair(g, m, flight, number)


@jitable
def l2_set(g: Machine, m: Words, line: int) -> int:
    """Return the set of L2 to which a line belongs."""
    if g.p[w.L2_MAPS] == 0:
        return place_of(line, g.p[w.L2_SETS])
    own = behind(m, g.p[w.AT_OWN] + 3 * w.OWN_STRIDE)
    return mapped(g.p[w.L2_MAPS], line, g.p[w.L2_SETS], own)


@jitable
def pair(g: Machine, m: Words, flight: int, number: int) -> None:
    """Let a flight wait for the answer to a request of this quantum."""
    at = g.p[w.AT_PAIRS] + 2 * m[w.PAIR_COUNT]
    m[at] = flight
    m[at + 1] = number
    m[w.PAIR_COUNT] += 1
    m[flight + w.F_LEFT] += 1


@jitable
def await_line(g: Machine, m: Words, flight: int, fills: int, sectors: int, soonest: int) -> None:
    """Let a flight wait for sectors of a line that L1 has, or that are on their way to it."""
    for sector in range(w.SECTORS):
        if (sectors >> sector) & 1:
            fill = m[fills + sector]
            if fill < 0:
                pair(g, m, flight, -1 - fill)
            else:
                land_at(m, flight, max(soonest, fill))


@jitable
def earlier_store(g: Machine, m: Words, warp: int, line: int) -> int:
    """Returns the number of a warp's last store to a line among the requests of the quantum; -1 for
    none. An H100 writes 1.01 sectors of L2 for three stores of a warp that fill them together
    (particles of 12 bytes), but one for each warp that stores to a part (columns by rows)."""
    for number in range(m[w.REQUEST_COUNT] - 1, -1, -1):
        at = g.p[w.AT_REQUESTS] + number * w.R_WORDS
        if m[at + w.R_LINE] == line and m[at + w.R_KIND] == w.STORE and m[at + w.R_WARP] == warp:
            return number
    return -1


@jitable
def join_stores(g: Machine, m: Words, number: int, other: int) -> None:
    """Adds the sectors of a store to those of a request, bytes to those that it had of them."""
    at = g.p[w.AT_REQUESTS] + number * w.R_WORDS + w.R_SECTORS
    own, joined = m[at], (m[at] | other) & w.SECTOR_MASK
    for sector in range(w.SECTORS):
        place = w.SECTORS + w.LEFT_BITS * sector
        left = (own >> place & w.LEFT_MASK) + (other >> place & w.LEFT_MASK)
        if own >> sector & other >> sector & 1:
            left = max(0, left - w.SECTOR_BYTES)
        joined |= left << place
    m[at] = joined
