"""Updates the states of warps and charges every cycle to one; computes what a warp's next operation
waits for.

Every cycle of a resident warp is charged to one state. Every cycle of a scheduler is an issue, or
is charged to the stall reason that most of its warps have (the first of REASONS among equals).
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.records import SchedulerState, SmState, TimedOperation, TimelineEvent, WarpSlot


@jitable
def charge_scheduler(scheduler: SchedulerState, now: int) -> None:
    """Charges a scheduler's cycles without an issue before `now` that have not been charged
    (`accounted`) to the stall reason that most of its warps have, the first of REASONS among
    equals. They are charged to a dispatch stall if all of its warps could issue, to "no_warp" if it
    has none."""
    cycles = now - scheduler.accounted
    if cycles <= 0:
        return
    default = w.DISPATCH_STALL if scheduler.warps[w.NOT_SELECTED] > 0 else w.NO_WARP
    # Packs each count above its complemented reason, so that one maximum finds the largest count
    # and, among equal ones, the first reason, without branches.
    # A count of 0: any reason that a warp has exceeds it.
    largest = w.REASON_MASK ^ default
    for state in range(w.NOT_SELECTED + 1, w.REASON_COUNT):
        count = scheduler.warps[state]
        largest = max(largest, (count << w.REASON_BITS | (w.REASON_MASK ^ state)) * int(count > 0))
    scheduler.stalls[w.REASON_MASK ^ largest & w.REASON_MASK] += cycles
    scheduler.accounted = now


@jitable
def set_reason(arrays: EngineArrays, sm: SmState, warp: WarpSlot, reason: int, now: int) -> None:
    """Puts a warp into the state `reason` (one of REASONS) from `now` on, before its current
    operation; charges its cycles, and its scheduler's, up to then to the state before. The slot's
    `state` (READY, ASLEEP) is the caller's."""
    charge_scheduler(SchedulerState(sm, warp.scheduler), now)
    charge_warp(arrays, sm, warp, now)
    count_as(sm, warp, reason)
    warp.reason = reason
    warp.charged_op = warp.op


@jitable
def count_as(sm: SmState, warp: WarpSlot, state: int) -> None:
    """Moves a warp, in its scheduler's counts of warps by state (`SchedulerState.warps`), from the
    state as which it was counted to `state`. Only what the scheduler counts changes, not the warp's
    own state and stall reason; no cycles are charged."""
    counts = warp.scheduler + SchedulerState.warps
    sm.words[counts + warp.counted] -= 1
    sm.words[counts + state] += 1
    warp.counted = state


@jitable
def charge_warp(arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int) -> None:
    """Charges a warp's cycles from `since` to `now` to its state (`reason`) and its operation
    (`charged_op`), in the totals and, if events are recorded, in the timeline; `since` becomes
    `now`."""
    since = warp.since
    if now <= since:
        return
    arrays.totals[warp.charged_op * w.REASON_COUNT + warp.reason] += now - since
    warp.since = now
    if arrays.params.events > 0:
        record_event(arrays, sm, warp, since, now)


@jitable
def charge_stall(arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int, until: int) -> None:
    """Charges a warp's cycles from `now` to `until`, in which the stall count of its last operation
    prevents it from issuing, to WAIT, whatever else it waits for: its next state begins then."""
    if until > now:
        set_reason(arrays, sm, warp, w.WAIT, now)
        charge_warp(arrays, sm, warp, until)


@jitable
def record_event(arrays: EngineArrays, sm: SmState, warp: WarpSlot, since: int, until: int) -> None:
    """Appends the interval from `since` to `until` of a warp's state (`reason`) to the timeline of
    its SM; extends the warp's last event instead if state and operation are the same and it follows
    directly, except for "selected". An interval that needs a new event is dropped if the timeline
    is full."""
    last_event = TimelineEvent(sm, arrays.params.at_events, warp.event - 1)
    reason, charged_op = warp.reason, warp.charged_op
    same = warp.event > 0 and last_event.state == reason and last_event.op == charged_op
    if same and last_event.until == since and reason != w.SELECTED:
        last_event.until = until
    elif sm.event_count < arrays.params.events:
        event = TimelineEvent(sm, arrays.params.at_events, sm.event_count)
        event.slot = (warp.at - arrays.params.at_warps) // WarpSlot.WORDS
        event.warp = warp.warp
        event.state = reason
        event.since = since
        event.until = until
        event.op = charged_op
        sm.event_count += 1
        warp.event = sm.event_count


@jitable
def make_ready(sm: SmState, warp: WarpSlot) -> None:
    """Adds a warp, which must not be in it, to the ready list of its scheduler (state READY), and
    clears its wake-up time (NEVER). The reason to which its cycles are charged stays."""
    scheduler = SchedulerState(sm, warp.scheduler)
    warp.state = w.READY
    sm.words[warp.wake_at] = w.NEVER
    scheduler.ready_list[scheduler.ready] = warp.at
    scheduler.ready += 1


@jitable
def remove_ready(sm: SmState, warp: WarpSlot) -> None:
    """Removes a warp from the ready list of its scheduler, if it is in it (READY); the caller
    changes its state."""
    if warp.state != w.READY:
        return
    scheduler = SchedulerState(sm, warp.scheduler)
    scheduler.ready -= 1
    # Moves the last warp of the list to the index of the removed one: order does not matter.
    last = scheduler.at + SchedulerState.ready_list + scheduler.ready
    slot = scheduler.at + SchedulerState.ready_list
    while sm.words[slot] != warp.at:
        slot += 1
    sm.words[slot] = sm.words[last]


@jitable
def operands_ready(arrays: EngineArrays, sm: SmState, warp: WarpSlot, op: int) -> int:
    """Returns the latest of the ready times of the registers that operation `op` of a warp needs,
    packed: the cycle shifted by REASON_BITS, plus the reason for waiting; PENDING or more if that
    cycle is not known, 0 if it needs none."""
    base = warp.registers
    operation = TimedOperation(arrays.ops, 0, op)
    first = operation.needs_at
    latest = 0
    for index in range(first, first + operation.needs):
        latest = max(latest, sm.words[base + arrays.registers[index]])
    return int(latest)


@jitable
def schedule_warp(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int, earliest: int, reason: int
) -> None:
    """Puts a warp to sleep until its next operation can issue, or makes it ready (NOT_SELECTED):
    after an issue, or when what it waited for has ended. It sleeps without a wake-up time if an
    operand's time is not known, or if before its EXIT an instruction of it is in the load/store
    queue (DRAIN). Otherwise it sleeps until the later of two cycles: that of its operands, with
    their stall reason, and `earliest`, with the stall reason `reason`. Stores `earliest` in the
    warp."""
    op = warp.op
    warp.earliest = earliest
    ready_state = operands_ready(arrays, sm, warp, op)
    wake = ready_state >> w.REASON_BITS
    if ready_state >= w.PENDING:
        sleep(arrays, sm, warp, w.NEVER, ready_state & w.REASON_MASK, now)
    # A warp ends only after its stores have left the queue (stall reason "drain").
    elif TimedOperation(arrays.ops, 0, op).kind == w.EXIT and warp.queued > 0:
        sleep(arrays, sm, warp, w.NEVER, w.DRAIN, now)
    elif wake > earliest:
        sleep(arrays, sm, warp, wake, ready_state & w.REASON_MASK, now)
    elif earliest > now:
        sleep(arrays, sm, warp, earliest, reason, now)
    else:
        if warp.state != w.READY:
            make_ready(sm, warp)
        set_reason(arrays, sm, warp, w.NOT_SELECTED, now)


@jitable
def sleep(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, wake: int, reason: int, now: int
) -> None:
    """Puts a warp to sleep (ASLEEP, no longer ready) from `now` until the cycle `wake` (NEVER:
    until an event), and into the state `reason`, to which its cycles are charged. Lowers the cycles
    in which its scheduler looks for work (`wake`, `next`) to `wake`. If the reason is a long wait
    (long scoreboard, barrier, membar, sleeping), also removes it from the two-level policy's active
    set."""
    scheduler = SchedulerState(sm, warp.scheduler)
    remove_ready(sm, warp)
    warp.state = w.ASLEEP
    sm.words[warp.wake_at] = wake
    set_reason(arrays, sm, warp, reason, now)
    scheduler.wake = min(scheduler.wake, wake)
    scheduler.next = min(scheduler.next, wake)
    # A long wait takes the warp out of the active set of the two-level policy.
    if warp.active and reason in (w.LONG_SCOREBOARD, w.BARRIER, w.MEMBAR, w.SLEEPING):
        warp.active = 0
        scheduler.active -= 1


@jitable
def recheck_waits(arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int) -> None:
    """Schedules a warp that sleeps without a wake-up time again (`schedule_warp`), after one of its
    memory instructions has ended or left the queue, never before its `earliest`. With
    `pending_wait` 0 it is scheduled whatever is in flight. At a fence or a wait for groups it is
    scheduled once the ends of what it awaits are known (`awaited_flights`), for its `wait_end`,
    with the stall reason MEMBAR or LONG_SCOREBOARD. Nothing for other warps, and for one at a
    barrier or polling.

    `pending_wait` is 0; or 1 + twice the cycles of a fence; or 4 + twice the groups of copies that
    may still be incomplete (-1: none, and the open group is awaited, too); or less than 0 for a
    warp that polls. It becomes 0 when a fence or group wait ends."""
    if warp.state != w.ASLEEP or sm.words[warp.wake_at] != w.NEVER:
        return
    # Only the barrier's release wakes the warp.
    if warp.reason == w.BARRIER:
        return
    pending_wait = warp.pending_wait
    if pending_wait < 0:
        return
    if pending_wait == 0:
        schedule_warp(arrays, sm, warp, now, max(now, warp.earliest), w.WAIT)
    elif awaited_flights(sm, warp, pending_wait) == 0:
        warp.pending_wait = 0
        until = wait_end(sm, warp, pending_wait, now)
        reason = w.MEMBAR if pending_wait & 1 else w.LONG_SCOREBOARD
        schedule_warp(arrays, sm, warp, now, max(until, warp.earliest), reason)


@jitable
def wait_end(sm: SmState, warp: WarpSlot, pending_wait: int, now: int) -> int:
    """Returns the cycle, at least `now`, in which a fence or a wait for groups of copies, packed as
    in `pending_wait` (`recheck_waits`), ends. A fence ends its cycles after the end of the warp's
    last memory instruction, a wait at the latest end of the groups that it awaits. All ends must be
    known."""
    if pending_wait & 1:
        return int(max(now, warp.last_end) + (pending_wait >> 1))
    return groups_end(sm, warp.at + WarpSlot.groups, warp.copy_group, (pending_wait >> 1) - 2, now)


@jitable
def awaited_flights(sm: SmState, warp: WarpSlot, pending_wait: int) -> int:
    """Returns how many flights with unknown ends a fence (all of the warp's) or a wait for groups
    of copies, packed as in `pending_wait` (`recheck_waits`), awaits."""
    if pending_wait & 1:
        return int(warp.flights)
    count, first = 0, min((pending_wait >> 1) - 2, w.GROUPS - 1)
    for age in range(first, max(first + 1, w.GROUPS - 1)):
        number = warp.copy_group - 1 - age
        if number >= 0:
            count += sm.words[warp.at + WarpSlot.groups + number % w.GROUPS] >> w.GROUP_END_BITS
    return int(count)


@jitable
def groups_end(sm: SmState, end_times: int, group: int, pending: int, now: int) -> int:
    """Returns the latest of `now` and the ends (cycles) of all groups before the open one (number
    `group`) but the newest `pending`, GROUPS - 1 at most: ends need not rise with the number.
    `end_times` is the offset of the ring buffer of the last GROUPS groups' ends."""
    until, first = now, min(pending, w.GROUPS - 1)
    # The word of the open group is that of the oldest one, too. Only a wait that leaves as many
    # open looks at it, as it may have copies of the open group.
    for age in range(first, max(first + 1, w.GROUPS - 1)):
        number = group - 1 - age
        if number >= 0:
            end = sm.words[end_times + number % w.GROUPS] & ((1 << w.GROUP_END_BITS) - 1)
            until = max(until, end)
    return int(until)
