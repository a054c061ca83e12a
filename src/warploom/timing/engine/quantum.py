"""The loop of the engine: one SM through one quantum, and what all share after it."""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.answers import take_answers
from warploom.timing.engine.bulk import work_copies
from warploom.timing.engine.flow import count_live, launch_reserved, part
from warploom.timing.engine.levels import serve_requests
from warploom.timing.engine.loads import work_queue
from warploom.timing.engine.machine import Machine, Words, behind
from warploom.timing.engine.phases import take_notes
from warploom.timing.engine.schedulers import step
from warploom.timing.engine.waits import close_gap, close_state

MOST_FETCHED = 6144
"""Words of an SM at most, for code may have many registers."""


def run_sms(
    p: Words,
    ops: Words,
    registers: Words,
    blocks: Words,
    streams: Words,
    entries: Words,
    accesses: Words,
    patterns: Words,
    lines: Words,
    warps: Words,
    totals: Words,
    sms: Words,
    chosen: Words,
    count: int,
    stop: int,
    ends: int,
) -> int:
    """Run the first `count` of the chosen SMs up to the cycle `stop`, `sms` the states of all; or,
    where the launch is over or looked at then (`ends`), account for everything before it."""
    g = Machine(
        p, ops, registers, blocks, streams, entries, accesses, patterns, lines, warps, totals
    )
    for index in range(count):
        m = behind(sms, chosen[index] * p[w.SM_WORDS])
        if index + 1 < count:
            fetch_sm(p, behind(sms, chosen[index + 1] * p[w.SM_WORDS]))
        if ends:
            finish_sm(g, m, stop)
        else:
            run_sm(g, m, stop)
    return 0


@jitable
def fetch_sm(p: Words, m: Words) -> None:
    """Fetch the SM that is the next one: ask the host for its warps, schedulers and registers, and
    for the answers that it gets. All SMs are more than the host's nearest caches hold."""
    for place in range(0, min(p[w.AT_MSHRS], MOST_FETCHED), w.LINE):
        prefetch(m, place)
    first = p[w.AT_REQUESTS]
    for place in range(first, first + m[w.REQUEST_COUNT] * w.R_WORDS, w.LINE):
        prefetch(m, place)


@jitable
def run_sm(g: Machine, m: Words, stop: int) -> None:
    """Run an SM up to the cycle `stop`."""
    now = m[w.NOW]
    take_answers(g, m, now)
    if m[w.TOLD_COUNT] > 0:
        take_notes(g, m, now)
    if m[w.MET] != 0:
        part(g, m, now)
    while now < stop:
        if m[w.RESERVED_COUNT] > 0 and m[w.LIVE_BLOCKS] < g.p[w.BLOCK_SLOTS]:
            launch_reserved(g, m, now)
        now = run_cycle(g, m, now, stop)
    m[w.NOW] = stop
    count_live(m, stop)


@jitable
def run_cycle(g: Machine, m: Words, now: int, stop: int) -> int:
    """Returns what happens in a cycle; gives the next one in which something can."""
    if m[w.QUEUE_COUNT] > 0 and m[w.LSU_FREE] <= now:
        work_queue(g, m, now)
    if m[w.TMA_COUNT] > 0 and m[w.TMA_FREE] <= now:
        work_copies(g, m, now)
    blocks = m[w.LIVE_BLOCKS]
    later = stop
    for number in range(g.p[w.SCHEDULERS]):
        s = g.p[w.AT_SCHEDULERS] + number * w.S_WORDS
        if m[s + w.S_NEXT] <= now:
            step(g, m, number, now)
    for number in range(g.p[w.SCHEDULERS]):
        later = min(later, m[g.p[w.AT_SCHEDULERS] + number * w.S_WORDS + w.S_NEXT])
    if m[w.QUEUE_COUNT] > 0:
        later = min(later, m[w.LSU_FREE])
    if m[w.TMA_COUNT] > 0:
        later = min(later, m[w.TMA_FREE])
    if m[w.LIVE_BLOCKS] < blocks and m[w.RESERVED_COUNT] > 0:
        later = now + 1
    return int(max(now + 1, later))


@jitable
def finish_sm(g: Machine, m: Words, stop: int) -> None:
    """Account for everything in an SM before the cycle `stop`."""
    for number in range(g.p[w.SCHEDULERS]):
        close_gap(m, g.p[w.AT_SCHEDULERS] + number * w.S_WORDS, stop)
    for slot in range(g.p[w.SLOTS]):
        warp = g.p[w.AT_WARPS] + slot * w.V_WORDS
        if m[warp + w.V_STATE] != w.NOT_THERE:
            close_state(g, m, warp, stop)
    count_live(m, stop)


def serve_all(p: Words, sms: Words, m: Words, start: int, stop: int) -> int:
    """Answer the requests of all SMs from cycle `start` to `stop`."""
    return serve_requests(p, sms, m, start, stop)
