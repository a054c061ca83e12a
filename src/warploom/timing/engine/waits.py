"""The states of warps and how their cycles are accounted for; what a warp's next operation waits
for.

Every cycle of a resident warp goes to one state. Every cycle of a scheduler is an issue, or goes to
the reason for which most of its warps did not issue (the first of REASONS among equals).
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Machine, Words


@jitable
def close_gap(m: Words, s: int, now: int) -> None:
    """Account for a scheduler's cycles without an issue before `now`."""
    gap = now - m[s + w.S_FROM]
    if gap <= 0:
        return
    # The most of numbers that have the reason below their counts: without a branch for each.
    first = w.DISPATCH_STALL if m[s + w.S_WARPS + w.NOT_SELECTED] > 0 else w.NO_WARP
    most = w.REASON_MASK ^ first
    for state in range(w.NOT_SELECTED + 1, w.REASON_COUNT):
        count = m[s + w.S_WARPS + state]
        most = max(most, (count << w.REASON_BITS | (w.REASON_MASK ^ state)) * int(count > 0))
    m[s + w.S_STALLS + (w.REASON_MASK ^ most & w.REASON_MASK)] += gap
    m[s + w.S_FROM] = now


@jitable
def set_state(g: Machine, m: Words, warp: int, state: int, now: int) -> None:
    """Put a warp into this state from `now` on, before its current operation."""
    close_gap(m, m[warp + w.V_SCHEDULER], now)
    close_state(g, m, warp, now)
    count_as(m, warp, state)
    m[warp + w.V_WHY] = state
    m[warp + w.V_WHAT] = m[warp + w.V_OP]


@jitable
def count_as(m: Words, warp: int, state: int) -> None:
    """Count the warp in this state, at its scheduler."""
    counts = m[warp + w.V_SCHEDULER] + w.S_WARPS
    m[counts + m[warp + w.V_COUNTED]] -= 1
    m[counts + state] += 1
    m[warp + w.V_COUNTED] = state


@jitable
def close_state(g: Machine, m: Words, warp: int, now: int) -> None:
    """Account for a warp's cycles before `now`."""
    since = m[warp + w.V_SINCE]
    if now <= since:
        return
    g.totals[m[warp + w.V_WHAT] * w.REASON_COUNT + m[warp + w.V_WHY]] += now - since
    m[warp + w.V_SINCE] = now
    if g.p[w.EVENTS] > 0:
        note(g, m, warp, since, now)


@jitable
def note(g: Machine, m: Words, warp: int, since: int, until: int) -> None:
    """Note a warp's state for the timeline; where it was in it before, that goes on."""
    last = g.p[w.AT_EVENTS] + (m[warp + w.V_EVENT] - 1) * w.EVENT_WORDS
    why, what = m[warp + w.V_WHY], m[warp + w.V_WHAT]
    same = m[warp + w.V_EVENT] > 0 and m[last + w.E_STATE] == why and m[last + w.E_OP] == what
    if same and m[last + w.E_UNTIL] == since and why != w.SELECTED:
        m[last + w.E_UNTIL] = until
    elif m[w.EVENT_COUNT] < g.p[w.EVENTS]:
        at = g.p[w.AT_EVENTS] + m[w.EVENT_COUNT] * w.EVENT_WORDS
        m[at + w.E_SLOT] = (warp - g.p[w.AT_WARPS]) // w.V_WORDS
        m[at + w.E_WARP] = m[warp + w.V_WARP]
        m[at + w.E_STATE] = why
        m[at + w.E_SINCE] = since
        m[at + w.E_UNTIL] = until
        m[at + w.E_OP] = what
        m[w.EVENT_COUNT] += 1
        m[warp + w.V_EVENT] = m[w.EVENT_COUNT]


@jitable
def get_ready(m: Words, warp: int) -> None:
    """Make a warp one of the ready ones of its scheduler."""
    s = m[warp + w.V_SCHEDULER]
    m[warp + w.V_STATE] = w.READY
    m[m[warp + w.V_WAKE_AT]] = w.NEVER
    m[s + w.S_RING + m[s + w.S_READY]] = warp
    m[s + w.S_READY] += 1


@jitable
def stop_ready(m: Words, warp: int) -> None:
    """Make a warp no longer one of them, if it was."""
    if m[warp + w.V_STATE] != w.READY:
        return
    s = m[warp + w.V_SCHEDULER]
    m[s + w.S_READY] -= 1
    last = s + w.S_RING + m[s + w.S_READY]
    at = s + w.S_RING
    while m[at] != warp:
        at += 1
    m[at] = m[last]


@jitable
def needs_of(g: Machine, m: Words, warp: int, op: int) -> int:
    """Return when the last of the registers that an operation needs is ready, and why one waits for
    it."""
    base = m[warp + w.V_REGISTERS]
    row = op * w.OP_WORDS
    first = g.ops[row + w.OP_NEEDS_AT]
    latest = 0
    for place in range(first, first + g.ops[row + w.OP_NEEDS]):
        latest = max(latest, m[base + g.registers[place]])
    return int(latest)


@jitable
def settle(g: Machine, m: Words, warp: int, now: int, earliest: int, why: int) -> None:
    """After an issue, or when what a warp waited for has come: from `now` on it sleeps until its
    next operation can issue, `earliest` for the reason `why`; or it is ready."""
    op = m[warp + w.V_OP]
    m[warp + w.V_EARLIEST] = earliest
    need = needs_of(g, m, warp, op)
    wake = need >> w.REASON_BITS
    if need >= w.PENDING:
        sleep(g, m, warp, w.NEVER, need & w.REASON_MASK, now)
    elif g.ops[op * w.OP_WORDS + w.OP_KIND] == w.EXIT and m[warp + w.V_QUEUED] > 0:
        sleep(g, m, warp, w.NEVER, w.DRAIN, now)
    elif wake > earliest:
        sleep(g, m, warp, wake, need & w.REASON_MASK, now)
    elif earliest > now:
        sleep(g, m, warp, earliest, why, now)
    else:
        if m[warp + w.V_STATE] != w.READY:
            get_ready(m, warp)
        set_state(g, m, warp, w.NOT_SELECTED, now)


@jitable
def sleep(g: Machine, m: Words, warp: int, wake: int, why: int, now: int) -> None:
    """Put a warp to sleep from `now` until then."""
    s = m[warp + w.V_SCHEDULER]
    stop_ready(m, warp)
    m[warp + w.V_STATE] = w.ASLEEP
    m[m[warp + w.V_WAKE_AT]] = wake
    set_state(g, m, warp, why, now)
    m[s + w.S_WAKE] = min(m[s + w.S_WAKE], wake)
    m[s + w.S_NEXT] = min(m[s + w.S_NEXT], wake)
    if m[warp + w.V_ACTIVE] and why in (w.LONG_SCOREBOARD, w.BARRIER, w.MEMBAR, w.SLEEPING):
        m[warp + w.V_ACTIVE] = 0
        m[s + w.S_ACTIVE] -= 1


@jitable
def recheck(g: Machine, m: Words, warp: int, now: int) -> None:
    """Look whether a sleeping warp can go on, and when: a memory instruction of it is over, or left
    the queue.

    V_AWAITS is 0, or for a fence 1 + twice its cycles, or for copies 2 + twice the groups that may
    still be on their way; less than 0 where the warp waits for all that meet.
    """
    if m[warp + w.V_STATE] != w.ASLEEP or m[m[warp + w.V_WAKE_AT]] != w.NEVER:
        return
    if m[warp + w.V_WHY] == w.BARRIER:
        return
    awaits = m[warp + w.V_AWAITS]
    if awaits < 0:
        return
    if awaits == 0:
        settle(g, m, warp, now, max(now, m[warp + w.V_EARLIEST]), w.WAIT)
    elif m[warp + w.V_FLIGHTS] == 0:
        m[warp + w.V_AWAITS] = 0
        until = awaited(m, warp, awaits, now)
        why = w.MEMBAR if awaits & 1 else w.LONG_SCOREBOARD
        settle(g, m, warp, now, max(until, m[warp + w.V_EARLIEST]), why)


@jitable
def awaited(m: Words, warp: int, awaits: int, now: int) -> int:
    """Return when a fence or a wait for copies is over, once all is known."""
    if awaits & 1:
        return int(max(now, m[warp + w.V_ACK]) + (awaits >> 1))
    return ended(m, warp + w.V_GROUPS, m[warp + w.V_GROUP], (awaits >> 1) - 1, now)


@jitable
def ended(m: Words, ends: int, group: int, left: int, now: int) -> int:
    """Return when all groups before the open one have ended, but for the newest `left`; `ends` is
    where stands when each does."""
    until = now
    for back in range(left, w.GROUPS):
        number = group - 1 - back
        if number >= 0:
            until = max(until, m[ends + number % w.GROUPS])
    return int(until)
