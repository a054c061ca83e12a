"""Answers of L2 to what an SM asked in the last quantum."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import fill_at, tag_at
from warploom.timing.engine.l1 import l1
from warploom.timing.engine.loads import look_again
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.phases import finish, land_at


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
