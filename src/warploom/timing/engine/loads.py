"""The load/store unit of an SM: memory instructions in order, shared memory, L1, and what goes on
to L2. An instruction is a flight until it is known when it ends."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import fill_at, find_line, tag_at, use_line
from warploom.timing.engine.l1 import charge_fills, count_sectors, l1, l1_cycles, l1_set
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.phases import finish, land_at, request_phase
from warploom.timing.engine.prefetching import prefetch
from warploom.timing.engine.requests import (
    ask,
    await_line,
    earlier_store,
    has_queue_space,
    join_stores,
    next_mshr,
    pair,
)
from warploom.timing.engine.waits import recheck
from warploom.timing.work.costs import TICKS


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
        request_phase(g, m, flight, access, now)
    elif kind == w.CONSTANT_ACCESS:
        cycles = wavefronts * g.p[w.CONSTANT_CYCLES]
        extra = cycles - g.p[w.CONSTANT_CYCLES]
        land_at(m, flight, start + extra + g.p[w.LATENCY_CONSTANT])
    else:
        if not has_queue_space(g, m, g.patterns[pattern + w.P_LINES], start):
            return False
        number = m[warp + w.V_WARP]
        base = g.warps[number * g.p[w.WARP_WORDS] + 1 + g.accesses[at + w.A_SITE]]
        line = (base + g.accesses[at + w.A_DELTA]) >> 7
        missed = request_lines(g, m, flight, pattern, line, start)
        if g.p[w.PREFETCH] != 0 and g.patterns[pattern + w.P_KIND] & w.THROUGH_L1:
            prefetch(g, m, flight, pattern, line, missed, start)
        cycles = max(g.p[w.L1_REQUEST_CYCLES], l1_cycles(g, pattern)) + m[w.FILL_DEBT] // TICKS
        m[w.FILL_DEBT] %= TICKS
        m[w.L1_CYCLES] += cycles
    m[w.LSU_FREE] = now + cycles
    return True


@jitable
def request_lines(g: Machine, m: Words, flight: int, pattern: int, line: int, start: int) -> int:
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
                charge_fills(g, m, missing, start)
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
