"""The Tensor Memory Accelerator of an SM: copies one after the other, line by line, past L1."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.phases import finish, land_at
from warploom.timing.engine.requests import ask
from warploom.timing.work.costs import TICKS


@jitable
def enqueue(g: Machine, m: Words, flight: int, access: int, count: int) -> None:
    """Put a copy of so many accesses into the queue."""
    place = (m[w.TMA_HEAD] + m[w.TMA_COUNT]) % g.p[w.FLIGHTS]
    queued = g.p[w.AT_TMA] + place * w.Q_WORDS
    m[queued + w.Q_FLIGHT] = flight
    m[queued + w.Q_ACCESS] = access
    m[queued + w.Q_LEFT] = count
    m[w.TMA_COUNT] += 1


@jitable
def work_copies(g: Machine, m: Words, now: int) -> None:
    """Let the unit do what it can up to this cycle: one access after the other."""
    while m[w.TMA_COUNT] > 0 and m[w.TMA_FREE] <= now:
        queued = g.p[w.AT_TMA] + m[w.TMA_HEAD] * w.Q_WORDS
        flight = m[queued + w.Q_FLIGHT]
        if not move(g, m, flight, m[queued + w.Q_ACCESS], now):
            return
        m[queued + w.Q_ACCESS] += 1
        m[queued + w.Q_LEFT] -= 1
        m[flight + w.F_LEFT] -= 1
        if m[queued + w.Q_LEFT] == 0:
            m[w.TMA_HEAD] = (m[w.TMA_HEAD] + 1) % g.p[w.FLIGHTS]
            m[w.TMA_COUNT] -= 1
            if m[flight + w.F_LEFT] == 0:
                finish(g, m, flight, now)


@jitable
def move(g: Machine, m: Words, flight: int, access: int, now: int) -> bool:
    """Ask for the lines of an access; False where it has to wait for room among the requests."""
    at = access * w.ACCESS_WORDS
    pattern = g.accesses[at + w.A_PATTERN] * w.P_WORDS
    lines = g.patterns[pattern + w.P_LINES]
    full = m[w.REQUEST_COUNT] + lines > g.p[w.REQUESTS]
    if full or m[w.PAIR_COUNT] + lines > g.p[w.PAIRS]:
        m[w.TMA_FREE] = w.NEVER
        return False
    number = m[flight + w.F_NUMBER]
    base = g.warps[number * g.p[w.WARP_WORDS] + 1 + g.accesses[at + w.A_SITE]]
    line = (base + g.accesses[at + w.A_DELTA]) >> 7
    first = g.patterns[pattern + w.P_LINES_AT]
    kind, spare = g.patterns[pattern + w.P_KIND] & w.KIND, g.p[w.AT_MSHRS] + g.p[w.MSHRS]
    for place in range(first, first + lines):
        where, sectors = line + g.lines[2 * place], g.lines[2 * place + 1]
        ask(g, m, flight, where, sectors, kind, 1, -1, spare, now - 1)
    land_at(m, flight, now)
    cycles = max(1, lines * g.p[w.TMA_LINE_TICKS] // TICKS)
    m[w.TMA_CYCLES] += cycles
    m[w.TMA_FREE] = now + cycles
    return True
