"""Keeps the states of warps and charges every cycle to one; computes what a warp's next operation
waits for.

Every cycle of a resident warp is charged to one state. Every cycle of a scheduler is an issue, or
is charged to the stall reason that most of its warps have (the first of REASONS among equals).
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays, Words


@jitable
def charge_scheduler(sm: Words, scheduler: int, now: int) -> None:
    """Charges a scheduler's cycles without an issue before `now` to the stall reason that most of
    its warps have; to a dispatch stall if all of them could issue, to "no_warp" if there is none.
    Nothing if these cycles have been charged."""
    cycles = now - sm[scheduler + w.S_ACCOUNTED]
    if cycles <= 0:
        return
    default = w.DISPATCH_STALL if sm[scheduler + w.S_WARPS + w.NOT_SELECTED] > 0 else w.NO_WARP
    # Packs each count above its complemented reason, so that one maximum finds the largest count
    # and, among equal ones, the first reason, without branches.
    # A count of 0: any reason that a warp has exceeds it.
    largest = w.REASON_MASK ^ default
    for state in range(w.NOT_SELECTED + 1, w.REASON_COUNT):
        count = sm[scheduler + w.S_WARPS + state]
        largest = max(largest, (count << w.REASON_BITS | (w.REASON_MASK ^ state)) * int(count > 0))
    sm[scheduler + w.S_STALLS + (w.REASON_MASK ^ largest & w.REASON_MASK)] += cycles
    sm[scheduler + w.S_ACCOUNTED] = now


@jitable
def set_state(arrays: EngineArrays, sm: Words, warp: int, state: int, now: int) -> None:
    """Puts a warp into a state from `now` on, before its current operation; charges its cycles, and
    its scheduler's, up to then to the state before."""
    charge_scheduler(sm, sm[warp + w.V_SCHEDULER], now)
    charge_warp(arrays, sm, warp, now)
    count_as(sm, warp, state)
    sm[warp + w.V_REASON] = state
    sm[warp + w.V_CHARGED_OP] = sm[warp + w.V_OP]


@jitable
def count_as(sm: Words, warp: int, state: int) -> None:
    """Counts a warp in the state `state` among its scheduler's warps (S_WARPS), instead of in the
    state before. Charges no cycles."""
    counts = sm[warp + w.V_SCHEDULER] + w.S_WARPS
    sm[counts + sm[warp + w.V_COUNTED]] -= 1
    sm[counts + state] += 1
    sm[warp + w.V_COUNTED] = state


@jitable
def charge_warp(arrays: EngineArrays, sm: Words, warp: int, now: int) -> None:
    """Charges a warp's cycles before `now` to its state and its operation, in the totals and, if
    events are recorded, in the timeline."""
    since = sm[warp + w.V_SINCE]
    if now <= since:
        return
    arrays.totals[sm[warp + w.V_CHARGED_OP] * w.REASON_COUNT + sm[warp + w.V_REASON]] += now - since
    sm[warp + w.V_SINCE] = now
    if arrays.params[w.EVENTS] > 0:
        record_event(arrays, sm, warp, since, now)


@jitable
def record_event(arrays: EngineArrays, sm: Words, warp: int, since: int, until: int) -> None:
    """Appends the interval from `since` to `until` of a warp's state to the timeline of its SM;
    extends the warp's last event instead if state and operation are the same and it follows
    directly, except for "selected". Dropped if the timeline is full."""
    last_event = arrays.params[w.AT_EVENTS] + (sm[warp + w.V_EVENT] - 1) * w.EVENT_WORDS
    reason, charged_op = sm[warp + w.V_REASON], sm[warp + w.V_CHARGED_OP]
    same = (
        sm[warp + w.V_EVENT] > 0
        and sm[last_event + w.E_STATE] == reason
        and sm[last_event + w.E_OP] == charged_op
    )
    if same and sm[last_event + w.E_UNTIL] == since and reason != w.SELECTED:
        sm[last_event + w.E_UNTIL] = until
    elif sm[w.EVENT_COUNT] < arrays.params[w.EVENTS]:
        event = arrays.params[w.AT_EVENTS] + sm[w.EVENT_COUNT] * w.EVENT_WORDS
        sm[event + w.E_SLOT] = (warp - arrays.params[w.AT_WARPS]) // w.V_WORDS
        sm[event + w.E_WARP] = sm[warp + w.V_WARP]
        sm[event + w.E_STATE] = reason
        sm[event + w.E_SINCE] = since
        sm[event + w.E_UNTIL] = until
        sm[event + w.E_OP] = charged_op
        sm[w.EVENT_COUNT] += 1
        sm[warp + w.V_EVENT] = sm[w.EVENT_COUNT]


@jitable
def make_ready(sm: Words, warp: int) -> None:
    """Adds a warp to the ready list of its scheduler (state READY), and clears its wake-up time.
    Its stall reason stays."""
    scheduler = sm[warp + w.V_SCHEDULER]
    sm[warp + w.V_STATE] = w.READY
    sm[sm[warp + w.V_WAKE_AT]] = w.NEVER
    sm[scheduler + w.S_READY_LIST + sm[scheduler + w.S_READY]] = warp
    sm[scheduler + w.S_READY] += 1


@jitable
def remove_ready(sm: Words, warp: int) -> None:
    """Removes a warp from the ready list of its scheduler, if it is in it."""
    if sm[warp + w.V_STATE] != w.READY:
        return
    scheduler = sm[warp + w.V_SCHEDULER]
    sm[scheduler + w.S_READY] -= 1
    # Moves the last warp of the list to the place of the removed one: order does not matter.
    last = scheduler + w.S_READY_LIST + sm[scheduler + w.S_READY]
    slot = scheduler + w.S_READY_LIST
    while sm[slot] != warp:
        slot += 1
    sm[slot] = sm[last]


@jitable
def operands_ready(arrays: EngineArrays, sm: Words, warp: int, op: int) -> int:
    """Returns the latest of the ready times of the registers that an operation needs, packed: the
    cycle shifted by REASON_BITS, plus the reason for waiting; PENDING or more if that cycle is not
    known, 0 if it needs none."""
    base = sm[warp + w.V_REGISTERS]
    op_offset = op * w.OP_WORDS
    first = arrays.ops[op_offset + w.OP_NEEDS_AT]
    latest = 0
    for index in range(first, first + arrays.ops[op_offset + w.OP_NEEDS]):
        latest = max(latest, sm[base + arrays.registers[index]])
    return int(latest)


@jitable
def schedule_warp(
    arrays: EngineArrays, sm: Words, warp: int, now: int, earliest: int, reason: int
) -> None:
    """Puts a warp to sleep until its next operation can issue, or makes it ready: after an issue,
    or when what it waited for has ended. It sleeps until its operands are ready; before its EXIT,
    until its stores have left the queue; else until the cycle `earliest` with the stall reason
    `reason`."""
    op = sm[warp + w.V_OP]
    sm[warp + w.V_EARLIEST] = earliest
    ready_state = operands_ready(arrays, sm, warp, op)
    wake = ready_state >> w.REASON_BITS
    if ready_state >= w.PENDING:
        sleep(arrays, sm, warp, w.NEVER, ready_state & w.REASON_MASK, now)
    # A warp ends only after its stores have left the queue (stall reason "drain").
    elif arrays.ops[op * w.OP_WORDS + w.OP_KIND] == w.EXIT and sm[warp + w.V_QUEUED] > 0:
        sleep(arrays, sm, warp, w.NEVER, w.DRAIN, now)
    elif wake > earliest:
        sleep(arrays, sm, warp, wake, ready_state & w.REASON_MASK, now)
    elif earliest > now:
        sleep(arrays, sm, warp, earliest, reason, now)
    else:
        if sm[warp + w.V_STATE] != w.READY:
            make_ready(sm, warp)
        set_state(arrays, sm, warp, w.NOT_SELECTED, now)


@jitable
def sleep(arrays: EngineArrays, sm: Words, warp: int, wake: int, reason: int, now: int) -> None:
    """Puts a warp to sleep from `now` until the cycle `wake` (NEVER: until an event), for a reason;
    a long wait takes it out of the two-level policy's active set."""
    scheduler = sm[warp + w.V_SCHEDULER]
    remove_ready(sm, warp)
    sm[warp + w.V_STATE] = w.ASLEEP
    sm[sm[warp + w.V_WAKE_AT]] = wake
    set_state(arrays, sm, warp, reason, now)
    sm[scheduler + w.S_WAKE] = min(sm[scheduler + w.S_WAKE], wake)
    sm[scheduler + w.S_NEXT] = min(sm[scheduler + w.S_NEXT], wake)
    # A long wait takes the warp out of the active set of the two-level policy.
    if sm[warp + w.V_ACTIVE] and reason in (w.LONG_SCOREBOARD, w.BARRIER, w.MEMBAR, w.SLEEPING):
        sm[warp + w.V_ACTIVE] = 0
        sm[scheduler + w.S_ACTIVE] -= 1


@jitable
def recheck_waits(arrays: EngineArrays, sm: Words, warp: int, now: int) -> None:
    """Schedules a warp that sleeps without a wake-up time again, after one of its memory
    instructions has ended or left the queue. Nothing for other warps, for one at a barrier or
    polling, and for one whose fence or group wait still lacks the end of an instruction.

    V_PENDING_WAIT is 0; or 1 + twice the cycles of a fence; or 2 + twice the groups of copies that
    may still be incomplete; or less than 0 for a warp that polls."""
    if sm[warp + w.V_STATE] != w.ASLEEP or sm[sm[warp + w.V_WAKE_AT]] != w.NEVER:
        return
    # Only the barrier's release wakes the warp.
    if sm[warp + w.V_REASON] == w.BARRIER:
        return
    pending_wait = sm[warp + w.V_PENDING_WAIT]
    if pending_wait < 0:
        return
    if pending_wait == 0:
        schedule_warp(arrays, sm, warp, now, max(now, sm[warp + w.V_EARLIEST]), w.WAIT)
    elif sm[warp + w.V_FLIGHTS] == 0:
        sm[warp + w.V_PENDING_WAIT] = 0
        until = wait_end(sm, warp, pending_wait, now)
        reason = w.MEMBAR if pending_wait & 1 else w.LONG_SCOREBOARD
        schedule_warp(arrays, sm, warp, now, max(until, sm[warp + w.V_EARLIEST]), reason)


@jitable
def wait_end(sm: Words, warp: int, pending_wait: int, now: int) -> int:
    """Returns the cycle, at least `now`, in which a fence or a wait for groups of copies, packed as
    in V_PENDING_WAIT, ends: a fence its cycles after the end of the warp's last memory instruction,
    a wait with the last of the groups that it awaits. All ends must be known."""
    if pending_wait & 1:
        return int(max(now, sm[warp + w.V_LAST_END]) + (pending_wait >> 1))
    return groups_end(sm, warp + w.V_GROUPS, sm[warp + w.V_GROUP], (pending_wait >> 1) - 1, now)


@jitable
def groups_end(sm: Words, end_times: int, group: int, pending: int, now: int) -> int:
    """Returns the cycle, at least `now`, in which all groups before the open one (number `group`)
    have ended, but for the newest `pending`; `end_times` is the offset of the ring buffer of their
    ends."""
    until = now
    for age in range(pending, w.GROUPS):
        number = group - 1 - age
        # Groups older than the ring buffer have ended.
        if number >= 0:
            until = max(until, sm[end_times + number % w.GROUPS])
    return int(until)
