"""The load/store unit of an SM: memory instructions in order, shared memory, L1, and what goes on
to L2. An instruction is a flight until it is known when it ends."""

from __future__ import annotations

from warploom.rules.distinct import jitable
from warploom.timing import words as w
from warploom.timing.caches import (
    Cache,
    fill_at,
    find_line,
    mapped,
    place_of,
    tag_at,
    use_line,
)
from warploom.timing.costs import TICKS, UNITS
from warploom.timing.machine import Machine, Words, behind, called
from warploom.timing.phases import finish, land_at, reach_phase
from warploom.timing.waits import recheck

MOST_PREFETCHED = 4
"""So many lines may a prefetcher name for one that is loaded."""

MOST_LINE = (1 << 48) - 1

SLOWED = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert"))
"""Units whose results may come by the way that fills of L1 take."""


@jitable
def work_queue(g: Machine, m: Words, now: int) -> None:
    """Let the unit do what it can up to this cycle: one access after the other."""
    while m[w.QUEUE_COUNT] > 0 and m[w.LSU_FREE] <= now:
        queued = g.p[w.AT_QUEUE] + m[w.QUEUE_HEAD] * w.Q_WORDS
        flight = m[queued + w.Q_FLIGHT]
        warp = m[flight + w.F_WARP]
        if not serve_access(g, m, flight, warp, m[queued + w.Q_ACCESS], now):
            return
        m[queued + w.Q_ACCESS] += 1
        m[queued + w.Q_LEFT] -= 1
        m[flight + w.F_LEFT] -= 1
        if m[queued + w.Q_LEFT] == 0:
            m[w.QUEUE_HEAD] += 1
            if m[w.QUEUE_HEAD] == g.p[w.SCHEDULERS] * g.p[w.LSU_QUEUE]:
                m[w.QUEUE_HEAD] = 0
            m[w.QUEUE_COUNT] -= 1
            s = m[warp + w.V_SCHEDULER]
            m[s + w.S_QUEUED] -= 1
            m[warp + w.V_QUEUED] -= 1
            if m[flight + w.F_LEFT] == 0:
                finish(g, m, flight, now)
            elif m[warp + w.V_QUEUED] == 0:
                recheck(g, m, warp, now)
            look_again(m, s, now)


@jitable
def look_again(m: Words, s: int, now: int) -> None:
    """Look again whether there is room for what the ready warps of a scheduler wait for."""
    if m[s + w.S_READY] > 0:
        m[s + w.S_NEXT] = min(m[s + w.S_NEXT], now)


@jitable
def serve_access(g: Machine, m: Words, flight: int, warp: int, access: int, now: int) -> bool:
    """Serve one access; False where it has to wait for room among the requests."""
    at = access * w.ACCESS_WORDS
    pattern = g.accesses[at + w.A_PATTERN] * w.P_WORDS
    kind = g.patterns[pattern + w.P_KIND] & w.KIND
    wavefronts = g.patterns[pattern + w.P_WAVEFRONTS]
    start = now - 1
    if kind == w.SHARED_ACCESS:
        cycles = wavefronts * g.p[w.SHARED_WAVEFRONT_CYCLES]
        m[w.SHARED_CYCLES] += cycles
        extra = g.patterns[pattern + w.P_EXTRA] * g.p[w.SHARED_WAVEFRONT_CYCLES]
        land_at(m, flight, start + extra + g.p[w.LATENCY_SHARED])
    elif kind == w.NOTHING:
        cycles = 0
        reach_phase(g, m, flight, access, now)
    elif kind == w.CONSTANT_ACCESS:
        cycles = wavefronts * g.p[w.CONSTANT_CYCLES]
        extra = cycles - g.p[w.CONSTANT_CYCLES]
        land_at(m, flight, start + extra + g.p[w.LATENCY_CONSTANT])
    else:
        if not room_for(g, m, g.patterns[pattern + w.P_LINES], start):
            return False
        number = m[warp + w.V_WARP]
        base = g.warps[number * g.p[w.WARP_WORDS] + 1 + g.accesses[at + w.A_SITE]]
        line = (base + g.accesses[at + w.A_DELTA]) >> 7
        missed = reach_lines(g, m, flight, pattern, line, start)
        if g.p[w.PREFETCH] != 0 and g.patterns[pattern + w.P_KIND] & w.THROUGH_L1:
            prefetch(g, m, flight, pattern, line, missed, start)
        cycles = max(g.p[w.L1_REQUEST_CYCLES], l1_cycles(g, pattern))
        m[w.L1_CYCLES] += cycles
    m[w.LSU_FREE] = now + cycles
    return True


@jitable
def l1_cycles(g: Machine, pattern: int) -> int:
    """Returns how long an access takes L1: its wavefronts, or of a load where banks are known the
    most of what its tags, its banks and its way to the registers take."""
    if g.p[w.L1_LINES] == 0 or g.patterns[pattern + w.P_BANKS] == 0:
        return int(g.patterns[pattern + w.P_WAVEFRONTS] * g.p[w.L1_WAVEFRONT_CYCLES])
    lines = g.patterns[pattern + w.P_LINES]
    tags = (lines + g.p[w.L1_LINES] - 1) // g.p[w.L1_LINES]
    words = g.patterns[pattern + w.P_SIZE] * g.p[w.L1_WORD_CYCLES]
    return int(max(tags, g.patterns[pattern + w.P_BANKS], words))


@jitable
def room_for(g: Machine, m: Words, lines: int, start: int) -> bool:
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
def reach_lines(g: Machine, m: Words, flight: int, pattern: int, line: int, start: int) -> int:
    """Reach the lines of an access: those sectors that L1 has not go on to L2. Returns which lines
    had some of those, a bit for each of the first."""
    missed = 0
    kind = g.patterns[pattern + w.P_KIND]
    first = g.patterns[pattern + w.P_LINES_AT]
    through = kind & w.THROUGH_L1 and g.p[w.L1_SETS] > 0
    if kind & w.TEXELS:
        land_at(m, flight, start + g.p[w.LATENCY_TEXTURE])
    cache = l1(g, m)
    for place in range(first, first + g.patterns[pattern + w.P_LINES]):
        number, sectors = line + g.lines[2 * place], g.lines[2 * place + 1] & w.SECTOR_MASK
        entry, own, left = -1, 0, g.lines[2 * place + 1] & ~w.SECTOR_MASK
        if cache.sets > 0 and kind & (w.DROPS_L1 | w.THROUGH_L1):
            own = l1_set(g, m, number)
        if kind & w.DROPS_L1 and g.p[w.L1_SETS] > 0:
            known = find_line(cache, own, number)
            if known >= 0:
                m[tag_at(cache, known)] &= ~sectors
        if through:
            entry = use_line(cache, own, number, start)
            tag = tag_at(cache, entry)
            missing = sectors & ~m[tag]
            count_sectors(m, sectors, missing)
            latency = g.p[w.LATENCY_TEXTURE if kind & w.TEXELS else w.LATENCY_L1]
            await_line(g, m, flight, fill_at(cache, entry), sectors & ~missing, start + latency)
            sectors = missing
            m[tag] |= missing
            if missing and g.p[w.FILL_TICKS]:
                delay_results(g, m, missing, start)
        earlier = earlier_store(g, m, m[flight + w.F_WARP], number) if left else -1
        if earlier >= 0:
            join_stores(g, m, earlier, sectors | left)
            pair(g, m, flight, earlier)
        elif sectors:
            missed |= 1 << min(place - first, 62)
            passes = g.patterns[pattern + w.P_PASSES]
            mshr = next_mshr(g, m)
            ask(g, m, flight, number, sectors | left, kind & w.KIND, passes, entry, mshr, start)
    return missed


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


@jitable
def delay_results(g: Machine, m: Words, missing: int, start: int) -> None:
    """Let sectors that L1 gets take the way of the results of special functions: units of these
    that have something to do are busy for longer."""
    ticks = 0
    for sector in range(w.SECTORS):
        ticks += ((missing >> sector) & 1) * g.p[w.FILL_TICKS]
    for s in range(g.p[w.SCHEDULERS]):
        for unit in range(len(UNITS)):
            at = g.p[w.AT_UNITS] + s * g.p[w.UNIT_COUNT] + unit
            if (SLOWED >> unit) & 1 and m[at] > start * TICKS:
                m[at] += ticks


@jitable
def prefetch(
    g: Machine, m: Words, flight: int, pattern: int, line: int, missed: int, start: int
) -> None:
    """Ask for the lines that the user's prefetcher names for each line of a load."""
    slot = (m[flight + w.F_WARP] - g.p[w.AT_WARPS]) // w.V_WORDS
    instruction = g.ops[m[flight + w.F_OP] * w.OP_WORDS + w.OP_INSTRUCTION]
    words = behind(m, g.p[w.AT_OWN] + w.OWN_ROOM)
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


@jitable
def l1(g: Machine, m: Words) -> Cache:
    """Return the L1 of an SM."""
    own = g.p[w.L1_REPLACES], g.p[w.AT_L1_OWN]
    return Cache(m, g.p[w.AT_L1], g.p[w.L1_SETS], g.p[w.L1_WAYS], own[0], own[1])


@jitable
def l1_set(g: Machine, m: Words, line: int) -> int:
    """Return the set of L1 to which a line belongs."""
    if g.p[w.L1_MAPS] == 0:
        return place_of(line, g.p[w.L1_SETS])
    own = behind(m, g.p[w.AT_OWN] + 2 * w.OWN_ROOM)
    return mapped(g.p[w.L1_MAPS], line, g.p[w.L1_SETS], own)


@jitable
def l2_set(g: Machine, m: Words, line: int) -> int:
    """Return the set of L2 to which a line belongs."""
    if g.p[w.L2_MAPS] == 0:
        return place_of(line, g.p[w.L2_SETS])
    own = behind(m, g.p[w.AT_OWN] + 3 * w.OWN_ROOM)
    return mapped(g.p[w.L2_MAPS], line, g.p[w.L2_SETS], own)


@jitable
def count_sectors(m: Words, sectors: int, missing: int) -> None:
    """Count the hits and misses of L1."""
    for sector in range(w.SECTORS):
        if (missing >> sector) & 1:
            m[w.L1_MISS_SECTORS] += 1
        elif (sectors >> sector) & 1:
            m[w.L1_HIT_SECTORS] += 1


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
def pair(g: Machine, m: Words, flight: int, number: int) -> None:
    """Let a flight wait for the answer to a request of this quantum."""
    at = g.p[w.AT_PAIRS] + 2 * m[w.PAIR_COUNT]
    m[at] = flight
    m[at + 1] = number
    m[w.PAIR_COUNT] += 1
    m[flight + w.F_LEFT] += 1


@jitable
def take_answers(g: Machine, m: Words, now: int) -> None:
    """Take the answers to all requests of the last quantum: flights end."""
    cache = l1(g, m)
    for number in range(m[w.REQUEST_COUNT]):
        at = g.p[w.AT_REQUESTS] + number * w.R_WORDS
        fill = m[at + w.R_FILL]
        m[m[at + w.R_MSHR]] = fill
        entry = m[at + w.R_ENTRY]
        if entry >= 0 and m[tag_at(cache, entry)] >> w.TAG_BITS == m[at + w.R_LINE] + 1:
            fills = fill_at(cache, entry)
            for sector in range(w.SECTORS):
                if m[fills + sector] == -1 - number:
                    m[fills + sector] = fill
    for index in range(m[w.PAIR_COUNT]):
        at = g.p[w.AT_PAIRS] + 2 * index
        flight = m[at]
        land_at(m, flight, m[g.p[w.AT_REQUESTS] + m[at + 1] * w.R_WORDS + w.R_FILL])
        m[flight + w.F_LEFT] -= 1
        if m[flight + w.F_LEFT] == 0:
            finish(g, m, flight, now)
    if m[w.LSU_FREE] >= w.NEVER:
        m[w.LSU_FREE] = now
    if m[w.TMA_FREE] >= w.NEVER:
        m[w.TMA_FREE] = now
    for number in range(g.p[w.SCHEDULERS]):
        look_again(m, g.p[w.AT_SCHEDULERS] + number * w.S_WORDS, now)  # flights are free again
    m[w.REQUEST_COUNT] = 0
    m[w.PAIR_COUNT] = 0
