"""Runs a warp scheduler of the timing model for a cycle: wakes warps, selects one by the policy,
and issues its operation."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.issue import blocked_until, issue
from warploom.timing.engine.machine import EngineArrays, Words, call_user_function, offset_array
from warploom.timing.engine.waits import (
    charge_scheduler,
    charge_warp,
    count_as,
    make_ready,
    operands_ready,
    set_state,
)

POLICIES = ("lrr", "gto", "two-level", "oldest")
"""The scheduling policies of the model: loose round robin; greedy then oldest; round robin among a
few active warps, a set that a warp leaves when it waits long; oldest first."""
LRR, GTO, TWO_LEVEL, OLDEST, USER_DEFINED = range(len(POLICIES) + 1)
"""Numbers of the policies; USER_DEFINED is the user's function (`timing.policies`)."""

MOST_RANK = 1 << 60


@jitable
def step_scheduler(arrays: EngineArrays, sm: Words, number: int, now: int) -> None:
    """Runs scheduler `number` of an SM for the cycle `now`, if it may issue in it (S_FREE): wakes
    warps, and issues an operation of the warp that the policy selects, if one can issue (two with
    dual issue); charges the cycle to an issue or to a stall reason. Sets S_NEXT, the next cycle in
    which the scheduler can change."""
    scheduler = arrays.params[w.AT_SCHEDULERS] + number * w.S_WORDS
    if sm[scheduler + w.S_FREE] > now:
        sm[scheduler + w.S_NEXT] = sm[scheduler + w.S_FREE]
        return
    if sm[scheduler + w.S_WAKE] <= now:
        wake_warps(arrays, sm, scheduler, number, now)
    picked, eligible, later = choose_warp(arrays, sm, scheduler, now)
    if picked < 0:
        charge_scheduler(sm, scheduler, now)
        charge_ready_warps(arrays, sm, scheduler, now, picked)
        sm[scheduler + w.S_NEXT] = min(later, sm[scheduler + w.S_WAKE])
        return
    charge_scheduler(sm, scheduler, now)
    sm[scheduler + w.S_ISSUED] += 1
    sm[scheduler + w.S_ACCOUNTED] = now + 1
    # Where schedulers issue only every few cycles, the cycles between are dispatch stalls.
    if arrays.params[w.ISSUE_CYCLES] > 1:
        sm[scheduler + w.S_STALLS + w.DISPATCH_STALL] += arrays.params[w.ISSUE_CYCLES] - 1
        sm[scheduler + w.S_ACCOUNTED] = now + arrays.params[w.ISSUE_CYCLES]
    sm[scheduler + w.S_FREE] = now + arrays.params[w.ISSUE_CYCLES]
    sm[scheduler + w.S_NEXT] = sm[scheduler + w.S_FREE]
    sm[w.ELIGIBLE] += eligible
    charge_ready_warps(arrays, sm, scheduler, now, picked)
    set_state(arrays, sm, picked, w.SELECTED, now)
    issue(arrays, sm, scheduler, picked, now)
    sm[scheduler + w.S_LAST] = picked
    if arrays.params[w.DISPATCH_WIDTH] > 1:
        issue_together(arrays, sm, scheduler, picked, now)
    # Without ready warps nothing can change before one wakes.
    if sm[scheduler + w.S_READY] == 0:
        sm[scheduler + w.S_NEXT] = max(sm[scheduler + w.S_NEXT], sm[scheduler + w.S_WAKE])


@jitable
def wake_warps(arrays: EngineArrays, sm: Words, scheduler: int, number: int, now: int) -> None:
    """Makes those sleeping warps of scheduler `number` ready whose wake-up time has come, and sets
    S_WAKE to the earliest of the others'."""
    # The schedulers have the slots in turn: slot i belongs to scheduler i modulo their number.
    first, schedulers = w.NEVER, arrays.params[w.SCHEDULERS]
    for index in range((arrays.params[w.SLOTS] - number + schedulers - 1) // schedulers):
        time = sm[scheduler + w.S_WAKES + index]
        if time <= now:
            make_ready(sm, arrays.params[w.AT_WARPS] + (index * schedulers + number) * w.V_WORDS)
        else:
            first = min(first, time)
    sm[scheduler + w.S_WAKE] = first


@jitable
def choose_warp(arrays: EngineArrays, sm: Words, scheduler: int, now: int) -> tuple[int, int, int]:
    """Returns the ready warp that issues (-1 for none), the one of least rank among those that
    nothing blocks; how many warps could issue; and the first cycle in which a ready warp that is
    blocked now can issue. Stores each warp's reason in V_BLOCKED_BY."""
    picked, best, eligible, next_possible = -1, w.NEVER, 0, w.NEVER
    policy = arrays.params[w.POLICY]
    for index in range(sm[scheduler + w.S_READY]):
        warp = sm[scheduler + w.S_READY_LIST + index]
        # The reason if nothing blocks the warp and another one is selected.
        sm[warp + w.V_BLOCKED_BY] = w.NOT_SELECTED
        until = blocked_until(arrays, sm, scheduler, warp, now)
        if until > now:
            next_possible = min(next_possible, until)
            continue
        eligible += 1
        if policy == TWO_LEVEL and not join_active_set(arrays, sm, scheduler, warp):
            continue
        priority = (
            user_rank(arrays, sm, scheduler, warp, now)
            if policy == USER_DEFINED
            else rank(sm, scheduler, warp, policy)
        )
        if priority < best:
            picked, best = warp, priority
    return picked, eligible, next_possible


@jitable
def rank(sm: Words, scheduler: int, warp: int, policy: int) -> int:
    """Returns the priority of a warp that can issue by one of the model's policies; the least goes
    first: the age for OLDEST; under GTO 0 for the warp that issued last, else the age plus 1; under
    LRR and TWO_LEVEL the distance in slots after the warp that issued last, circularly."""
    last = sm[scheduler + w.S_LAST]
    if policy == OLDEST:
        return int(sm[warp + w.V_AGE])
    # Greedy: the last warp goes on; else the oldest.
    if policy == GTO:
        return 0 if warp == last else int(sm[warp + w.V_AGE] + 1)
    # Warps in slots before the last one follow those behind it: the order is circular.
    return int(warp - last if warp > last else warp + w.NEVER // 2)


@jitable
def user_rank(arrays: EngineArrays, sm: Words, scheduler: int, warp: int, now: int) -> int:
    """Returns the priority, by the user's function, of a warp that can issue, limited to
    +-MOST_RANK so that it is below NEVER; the least goes first."""
    slot = (warp - arrays.params[w.AT_WARPS]) // w.V_WORDS
    instruction = arrays.ops[sm[warp + w.V_OP] * w.OP_WORDS + w.OP_INSTRUCTION]
    last = int(sm[scheduler + w.S_LAST] == warp)
    words = offset_array(sm, arrays.params[w.AT_USER] + w.USER_SCHEDULER * w.USER_STRIDE)
    priority = call_user_function(
        arrays.params[w.RANK], slot, sm[warp + w.V_AGE], last, instruction, now, words
    )
    return int(min(max(priority, -MOST_RANK), MOST_RANK))


@jitable
def join_active_set(arrays: EngineArrays, sm: Words, scheduler: int, warp: int) -> bool:
    """Adds a warp to its scheduler's active set of the two-level policy if it is outside and the
    set has fewer than ACTIVE_WARPS; returns whether it is now in the set."""
    if sm[warp + w.V_ACTIVE] == 0 and sm[scheduler + w.S_ACTIVE] < arrays.params[w.ACTIVE_WARPS]:
        sm[warp + w.V_ACTIVE] = 1
        sm[scheduler + w.S_ACTIVE] += 1
    return bool(sm[warp + w.V_ACTIVE] != 0)


@jitable
def charge_ready_warps(
    arrays: EngineArrays, sm: Words, scheduler: int, now: int, picked: int
) -> None:
    """Stores for the ready warps that do not issue the reason of each (V_BLOCKED_BY), and charges
    the cycles before to the reason that it replaces. If no warp issues (`picked` < 0), the
    scheduler counts them by these reasons."""
    for index in range(sm[scheduler + w.S_READY]):
        warp = sm[scheduler + w.S_READY_LIST + index]
        reason = sm[warp + w.V_BLOCKED_BY]
        # With a timeline every cycle is recorded; without one, cycles of one reason are charged
        # together when it changes.
        if sm[warp + w.V_REASON] != reason or arrays.params[w.EVENTS] > 0:
            charge_warp(arrays, sm, warp, now)
            sm[warp + w.V_REASON] = reason
        if picked < 0 and sm[warp + w.V_COUNTED] != reason:
            count_as(sm, warp, reason)


@jitable
def issue_together(arrays: EngineArrays, sm: Words, scheduler: int, warp: int, now: int) -> None:
    """Issues the next instruction of the warp that has just issued in the same cycle (dual issue),
    if the warp is ready, and the instruction is arithmetic or a memory access, needs no result that
    is not ready, and finds its unit free."""
    if sm[warp + w.V_STATE] != w.READY or sm[warp + w.V_SLOTS_LEFT] == 0:
        return
    op = sm[warp + w.V_OP]
    kind = arrays.ops[op * w.OP_WORDS + w.OP_KIND]
    if kind != w.ALU and kind != w.MEMORY:
        return
    if sm[warp + w.V_EARLIEST] > now + 1 or lacks_operands(arrays, sm, warp, op, now):
        return
    if blocked_until(arrays, sm, scheduler, warp, now) <= now:
        issue(arrays, sm, scheduler, warp, now)


@jitable
def lacks_operands(arrays: EngineArrays, sm: Words, warp: int, op: int, now: int) -> bool:
    """Returns whether an operation needs a register that is not ready in this cycle."""
    return bool(operands_ready(arrays, sm, warp, op) >> w.REASON_BITS > now)
