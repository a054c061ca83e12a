"""Runs a warp scheduler of the timing model for a cycle: wakes warps, selects one by the policy,
and issues its operation."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.issue import blocked_until, issue
from warploom.timing.engine.machine import EngineArrays, call_user_function, offset_array
from warploom.timing.engine.waits import (
    charge_scheduler,
    charge_warp,
    count_as,
    make_ready,
    operands_ready,
    set_reason,
)
from warploom.timing.records import SchedulerState, SmState, TimedOperation, WarpSlot

MOST_RANK = 1 << 60


@jitable
def step_scheduler(arrays: EngineArrays, sm: SmState, number: int, now: int) -> None:
    """Runs scheduler `number` of an SM for the cycle `now`. If it may not issue yet (`free`), only
    sets `next`. Else wakes warps whose time has come, and issues an operation of the warp that the
    policy selects, if one can issue; with dual issue also a second one of that warp. Charges the
    cycles before to a stall reason; with an issue, also this cycle to it and the further ones of
    `issue_cycles` to dispatch stalls, and counts the eligible warps. Sets the states of ready warps
    (`charge_ready_warps`), and `next`, the next cycle in which the scheduler can change."""
    scheduler = SchedulerState(sm, arrays.params.at_schedulers, number)
    if scheduler.free > now:
        scheduler.next = scheduler.free
        return
    if scheduler.wake <= now:
        wake_warps(arrays, sm, scheduler, number, now)
    picked, eligible, later = choose_warp(arrays, sm, scheduler, now)
    if picked < 0:
        charge_scheduler(scheduler, now)
        charge_ready_warps(arrays, sm, scheduler, now, picked)
        scheduler.next = min(later, scheduler.wake)
        return
    charge_scheduler(scheduler, now)
    scheduler.issued += 1
    scheduler.accounted = now + 1
    # Where schedulers issue only every few cycles, the cycles between are dispatch stalls.
    if arrays.params.issue_cycles > 1:
        scheduler.stalls[w.DISPATCH_STALL] += arrays.params.issue_cycles - 1
        scheduler.accounted = now + arrays.params.issue_cycles
    scheduler.free = now + arrays.params.issue_cycles
    scheduler.next = scheduler.free
    sm.eligible += eligible
    charge_ready_warps(arrays, sm, scheduler, now, picked)
    set_reason(arrays, sm, WarpSlot(sm, picked), w.SELECTED, now)
    issue(arrays, sm, scheduler, WarpSlot(sm, picked), now)
    scheduler.last = picked
    if arrays.params.dispatch_width > 1:
        issue_together(arrays, sm, scheduler, WarpSlot(sm, picked), now)
    # Without ready warps nothing can change before one wakes.
    if scheduler.ready == 0:
        scheduler.next = max(scheduler.next, scheduler.wake)


@jitable
def wake_warps(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, number: int, now: int
) -> None:
    """Makes ready those sleeping warps of scheduler `number` whose wake-up time is not after `now`,
    and sets `wake` to the earliest of the others' (NEVER if there are none)."""
    # The schedulers have the slots in turn: slot i belongs to scheduler i modulo their number.
    first, schedulers = w.NEVER, arrays.params.schedulers
    for index in range((arrays.params.slots - number + schedulers - 1) // schedulers):
        time = scheduler.wakes[index]
        if time <= now:
            make_ready(sm, WarpSlot(sm, arrays.params.at_warps, index * schedulers + number))
        else:
            first = min(first, time)
    scheduler.wake = first


@jitable
def choose_warp(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, now: int
) -> tuple[int, int, int]:
    """Returns the offset of the ready warp that issues, the one of least rank among those that
    nothing blocks, of equal ones the next in turn (-1 for none); how many warps nothing blocks; and
    the first cycle in which a ready warp that is blocked now can issue (NEVER for none). Under
    TWO_LEVEL only warps in the active set issue, which others join if it has space; one that finds
    none counts as not blocked. Stores in each ready warp's `blocked_by` what blocks it,
    NOT_SELECTED if nothing does."""
    picked, best, turn, eligible, next_possible = -1, w.NEVER, w.NEVER, 0, w.NEVER
    policy = arrays.params.policy
    for index in range(scheduler.ready):
        warp = WarpSlot(sm, scheduler.ready_list[index])
        # The reason if nothing blocks the warp and another one is selected.
        warp.blocked_by = w.NOT_SELECTED
        until = blocked_until(arrays, sm, scheduler, warp, now)
        if until > now:
            next_possible = min(next_possible, until)
            continue
        eligible += 1
        if policy == w.TWO_LEVEL and not join_active_set(arrays, scheduler, warp):
            continue
        if policy == w.USER_DEFINED:
            priority = user_rank(arrays, sm, scheduler, warp, now)
            position = rank(scheduler, warp, w.LRR)
        else:
            priority, position = rank(scheduler, warp, policy), 0
        if priority < best or (priority == best and position < turn):
            picked, best, turn = warp.at, priority, position
    return picked, eligible, next_possible


@jitable
def rank(scheduler: SchedulerState, warp: WarpSlot, policy: int) -> int:
    """Returns the priority of a warp that can issue under one of the model's policies; the least
    goes first. For OLDEST it is the age; for GTO 0 for the warp that issued last, else the age plus
    1. For LRR and TWO_LEVEL it follows the slots: first those after the warp that issued last, then
    from the first slot on up to that warp itself."""
    last = scheduler.last
    if policy == w.OLDEST:
        return int(warp.age)
    # Greedy: the last warp goes on; else the oldest.
    if policy == w.GTO:
        return 0 if warp.at == last else int(warp.age + 1)
    # Warps in slots before the last one follow those behind it: the order is circular.
    return int(warp.at - last if warp.at > last else warp.at + w.NEVER // 2)


@jitable
def user_rank(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, warp: WarpSlot, now: int
) -> int:
    """Returns the priority, by the user's function, of a warp that can issue, limited to
    +-MOST_RANK so that it is below NEVER; the least goes first. The function receives the warp's
    slot, its age (the number of its launch on the SM), whether the scheduler issued from it last (1
    or 0), the index of its next instruction, the cycle, and the memory of user schedulers on this
    SM."""
    slot = (warp.at - arrays.params.at_warps) // WarpSlot.WORDS
    instruction = TimedOperation(arrays.ops, 0, warp.op).instruction
    last = int(scheduler.last == warp.at)
    words = offset_array(sm.words, arrays.params.at_user + w.USER_SCHEDULER * w.USER_STRIDE)
    arguments = slot, warp.age, last, instruction, now
    priority = call_user_function(arrays.params.rank, arguments, words)
    return int(min(max(priority, -MOST_RANK), MOST_RANK))


@jitable
def join_active_set(arrays: EngineArrays, scheduler: SchedulerState, warp: WarpSlot) -> bool:
    """Adds a warp to its scheduler's active set of the two-level policy if it is outside and the
    set has fewer than `active_warps` warps; returns whether it is now in the set."""
    if warp.active == 0 and scheduler.active < arrays.params.active_warps:
        warp.active = 1
        scheduler.active += 1
    return bool(warp.active != 0)


@jitable
def charge_ready_warps(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, now: int, picked: int
) -> None:
    """Sets the state of each ready warp, the picked one included, to its `blocked_by`, after
    charging the cycles before `now` to the state before; with a timeline also where it stays the
    same. If no warp issues (`picked` < 0), the scheduler counts the warps by these states from now
    on."""
    for index in range(scheduler.ready):
        warp = WarpSlot(sm, scheduler.ready_list[index])
        reason = warp.blocked_by
        # With a timeline every cycle is recorded; without one, cycles of one reason are charged
        # together when it changes.
        if warp.reason != reason or arrays.params.events > 0:
            charge_warp(arrays, sm, warp, now)
            warp.reason = reason
        if picked < 0 and warp.counted != reason:
            count_as(sm, warp, reason)


@jitable
def issue_together(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, warp: WarpSlot, now: int
) -> None:
    """Issues the next operation of the warp that has just issued, in the same cycle (dual issue).
    The warp must be ready and able to issue by the next cycle; the operation must be ALU or MEMORY,
    need no result that is not ready, and not be blocked (unit, register banks, queue). Otherwise
    does nothing."""
    if warp.state != w.READY or warp.slots_left == 0:
        return
    op = warp.op
    kind = TimedOperation(arrays.ops, 0, op).kind
    if kind != w.ALU and kind != w.MEMORY:
        return
    if warp.earliest > now + 1 or lacks_operands(arrays, sm, warp, op, now):
        return
    if blocked_until(arrays, sm, scheduler, warp, now) <= now:
        issue(arrays, sm, scheduler, warp, now)


@jitable
def lacks_operands(arrays: EngineArrays, sm: SmState, warp: WarpSlot, op: int, now: int) -> bool:
    """Returns whether an operation needs a register that is not ready in this cycle."""
    return bool(operands_ready(arrays, sm, warp, op) >> w.REASON_BITS > now)
