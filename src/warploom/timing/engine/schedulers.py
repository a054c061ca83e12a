"""A scheduler's cycle: which of its warps are ready, which one the policy picks, and its issue."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.issue import blocked_until, issue
from warploom.timing.engine.machine import Machine, Words, behind, called
from warploom.timing.engine.waits import (
    close_gap,
    close_state,
    count_as,
    get_ready,
    needs_of,
    set_state,
)

POLICIES = ("lrr", "gto", "two-level", "oldest")
"""Loose round robin; greedy, then the oldest; round robin among a few active warps, which a warp
leaves when it waits long; always the oldest."""
LRR, GTO, TWO_LEVEL, OLDEST, OWN = range(len(POLICIES) + 1)
"""OWN: the user's (`timing.policies`)."""

MOST_RANK = 1 << 60


@jitable
def step(g: Machine, m: Words, number: int, now: int) -> None:
    """Step a scheduler by one cycle, in which something may happen."""
    s = g.p[w.AT_SCHEDULERS] + number * w.S_WORDS
    if m[s + w.S_FREE] > now:
        m[s + w.S_NEXT] = m[s + w.S_FREE]
        return
    if m[s + w.S_WAKE] <= now:
        wake(g, m, s, number, now)
    picked, eligible, later = choose(g, m, s, now)
    if picked < 0:
        close_gap(m, s, now)
        throttle(g, m, s, now, picked)
        m[s + w.S_NEXT] = min(later, m[s + w.S_WAKE])
        return
    close_gap(m, s, now)
    m[s + w.S_ISSUED] += 1
    m[s + w.S_FROM] = now + 1
    if g.p[w.ISSUE_CYCLES] > 1:
        m[s + w.S_STALLS + w.DISPATCH_STALL] += g.p[w.ISSUE_CYCLES] - 1
        m[s + w.S_FROM] = now + g.p[w.ISSUE_CYCLES]
    m[s + w.S_FREE] = now + g.p[w.ISSUE_CYCLES]
    m[s + w.S_NEXT] = m[s + w.S_FREE]
    m[w.ELIGIBLE] += eligible
    throttle(g, m, s, now, picked)
    set_state(g, m, picked, w.SELECTED, now)
    issue(g, m, s, picked, now)
    m[s + w.S_LAST] = picked
    if g.p[w.DISPATCH_WIDTH] > 1:
        issue_second(g, m, s, picked, now)
    if m[s + w.S_READY] == 0:
        m[s + w.S_NEXT] = max(m[s + w.S_NEXT], m[s + w.S_WAKE])


@jitable
def wake(g: Machine, m: Words, s: int, number: int, now: int) -> None:
    """Wake the warps whose time has come."""
    first, each = w.NEVER, g.p[w.SCHEDULERS]
    for place in range((g.p[w.SLOTS] - number + each - 1) // each):
        time = m[s + w.S_WAKES + place]
        if time <= now:
            get_ready(m, g.p[w.AT_WARPS] + (place * each + number) * w.V_WORDS)
        else:
            first = min(first, time)
    m[s + w.S_WAKE] = first


@jitable
def choose(g: Machine, m: Words, s: int, now: int) -> tuple[int, int, int]:
    """Return the warp that issues, -1 for none; how many could; and when one that cannot yet
    will."""
    picked, best, eligible, later = -1, w.NEVER, 0, w.NEVER
    policy = g.p[w.POLICY]
    for place in range(m[s + w.S_READY]):
        warp = m[s + w.S_RING + place]
        m[warp + w.V_TRY] = w.NOT_SELECTED
        until = blocked_until(g, m, s, warp, now)
        if until > now:
            later = min(later, until)
            continue
        eligible += 1
        if policy == TWO_LEVEL and not is_active(g, m, s, warp):
            continue
        key = own_rank(g, m, s, warp, now) if policy == OWN else rank(m, s, warp, policy)
        if key < best:
            picked, best = warp, key
    return picked, eligible, later


@jitable
def rank(m: Words, s: int, warp: int, policy: int) -> int:
    """Returns where a warp stands among those that can issue: the least goes first."""
    last = m[s + w.S_LAST]
    if policy == OLDEST:
        return int(m[warp + w.V_AGE])
    if policy == GTO:
        return 0 if warp == last else int(m[warp + w.V_AGE] + 1)
    return int(warp - last if warp > last else warp + w.NEVER // 2)


@jitable
def own_rank(g: Machine, m: Words, s: int, warp: int, now: int) -> int:
    """Return the same by the user's function."""
    slot = (warp - g.p[w.AT_WARPS]) // w.V_WORDS
    instruction = g.ops[m[warp + w.V_OP] * w.OP_WORDS + w.OP_INSTRUCTION]
    last = int(m[s + w.S_LAST] == warp)
    words = behind(m, g.p[w.AT_OWN])
    key = called(g.p[w.RANK], slot, m[warp + w.V_AGE], last, instruction, now, words)
    return int(min(max(key, -MOST_RANK), MOST_RANK))


@jitable
def is_active(g: Machine, m: Words, s: int, warp: int) -> bool:
    """Returns whether a warp is among the active ones; it becomes one where there is room."""
    if m[warp + w.V_ACTIVE] == 0 and m[s + w.S_ACTIVE] < g.p[w.ACTIVE_WARPS]:
        m[warp + w.V_ACTIVE] = 1
        m[s + w.S_ACTIVE] += 1
    return bool(m[warp + w.V_ACTIVE] != 0)


@jitable
def throttle(g: Machine, m: Words, s: int, now: int, picked: int) -> None:
    """Count the ready warps that do not issue, each with its reason."""
    for place in range(m[s + w.S_READY]):
        warp = m[s + w.S_RING + place]
        why = m[warp + w.V_TRY]
        if m[warp + w.V_WHY] != why or g.p[w.EVENTS] > 0:
            close_state(g, m, warp, now)
            m[warp + w.V_WHY] = why
        if picked < 0 and m[warp + w.V_COUNTED] != why:
            count_as(m, warp, why)


@jitable
def issue_second(g: Machine, m: Words, s: int, warp: int, now: int) -> None:
    """Issue the warp's next instruction with the one just issued, where it needs nothing of it and
    its unit takes it."""
    if m[warp + w.V_STATE] != w.READY or m[warp + w.V_LEFT] == 0:
        return
    op = m[warp + w.V_OP]
    kind = g.ops[op * w.OP_WORDS + w.OP_KIND]
    if kind != w.ALU and kind != w.MEMORY:
        return
    if m[warp + w.V_EARLIEST] > now + 1 or needs_later(g, m, warp, op, now):
        return
    if blocked_until(g, m, s, warp, now) <= now:
        issue(g, m, s, warp, now)


@jitable
def needs_later(g: Machine, m: Words, warp: int, op: int, now: int) -> bool:
    """Returns whether an operation needs what is not ready in this cycle."""
    return bool(needs_of(g, m, warp, op) >> w.REASON_BITS > now)
