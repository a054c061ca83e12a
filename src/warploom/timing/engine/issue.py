"""Issues one operation of a warp in the timing model: checks its unit, banks and queue, and applies
the effects of its kind."""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.bulk import enqueue_copy
from warploom.timing.engine.flow import advance, arrive_at_barrier
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.engine.phases import is_fenced, signal_after_products
from warploom.timing.engine.waits import awaited_flights, groups_end, sleep, wait_end
from warploom.timing.records import (
    BlockSlot,
    Flight,
    QueueEntry,
    SchedulerState,
    SmState,
    StreamEntry,
    TimedAccess,
    TimedOperation,
    WarpSlot,
)
from warploom.timing.work.costs import TICKS, UNITS

LSU, TEXTURE = UNITS.index("lsu"), UNITS.index("texture")
MIO_UNITS = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert", "shuffle", "lsu"))
"""Units that are fed by the memory input/output queue (MIO), as a bit mask."""


@jitable
def unit_at(arrays: EngineArrays, warp: WarpSlot, unit: int) -> int:
    """Returns the offset of the word that holds the tick from which unit number `unit` is free: the
    word of the warp's scheduler, or, if all schedulers of the SM share one unit
    (`shared_units_mask`), that of the SM's first scheduler."""
    if (arrays.params.shared_units_mask >> unit) & 1:
        return int(arrays.params.at_units + unit)
    return int(warp.units + unit)


@jitable
def blocked_until(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, warp: WarpSlot, now: int
) -> int:
    """Returns the first cycle in which a warp's operation can issue as far as units are concerned:
    `now` if it can. Otherwise it is when its unit is free, else when the register banks are. For an
    access it is NEVER if the scheduler's share of the load/store queue is full (BULK does not use
    it) or no flight record is free. If it is not `now`, sets `warp.blocked_by` to the stall reason:
    the throttle of the unit (math pipe, texture, MIO; LG for accesses off chip) or, of banks,
    DISPATCH_STALL. PRODUCT, which is asynchronous, does not wait for its unit."""
    operation = TimedOperation(arrays.ops, 0, warp.op)
    unit = operation.unit
    free = sm.words[unit_at(arrays, warp, unit)]
    # A unit that becomes free within this cycle accepts the operation: some units take a warp in
    # less than a cycle. Asynchronous products queue there (PTX ISA, "wgmma.mma_async").
    if free >= (now + 1) * TICKS and operation.kind != w.PRODUCT:
        warp.blocked_by = w.MATH_PIPE_THROTTLE
        if unit == TEXTURE:
            warp.blocked_by = w.TEX_THROTTLE
        elif (MIO_UNITS >> unit) & 1:
            warp.blocked_by = w.MIO_THROTTLE
            if unit == LSU and operation.off_chip:
                warp.blocked_by = w.LG_THROTTLE
        return int(free // TICKS)
    read = banks_free_at(scheduler, warp.at, operation, now)
    if read > now:
        warp.blocked_by = w.DISPATCH_STALL
        return read
    kind = operation.kind
    full = scheduler.queued >= arrays.params.lsu_queue and kind != w.BULK
    if (full or sm.free_count == 0) and is_access(kind):
        warp.blocked_by = w.LG_THROTTLE if operation.off_chip else w.MIO_THROTTLE
        if unit == TEXTURE:
            warp.blocked_by = w.TEX_THROTTLE
        # `retry_issue` lets the scheduler try again when one becomes free.
        return w.NEVER
    return now


@jitable
def bank_reads(
    scheduler: SchedulerState, warp_at: int, operation: TimedOperation, bank: int
) -> int:
    """Returns how many registers of bank number `bank` of the register file an operation reads,
    less those in the operand cache, which count only if the warp at offset `warp_at` also issued
    its scheduler's last operation."""
    reads = operation.reads >> w.READ_BITS * bank
    mask = (1 << w.READ_BITS) - 1
    # `reads`: READ_BITS for each bank, then READ_BITS for each bank of those cached.
    cached = reads >> w.READ_BITS * w.REGISTER_BANKS & mask
    return int((reads & mask) - cached * int(scheduler.last == warp_at))


@jitable
def banks_free_at(
    scheduler: SchedulerState, warp_at: int, operation: TimedOperation, now: int
) -> int:
    """Returns the first cycle from `now` on in which an operation of the warp at offset `warp_at`
    can issue so that each bank of the scheduler's register file, after earlier reads, serves its
    reads within READ_WINDOW cycles; `now` if it reads none."""
    until = now
    if operation.reads != 0:
        for bank in range(w.REGISTER_BANKS):
            reads = bank_reads(scheduler, warp_at, operation, bank)
            if reads > 0:
                until = max(until, scheduler.banks[bank] + reads - w.READ_WINDOW)
    return int(until)


@jitable
def occupy_banks(
    sm: SmState, scheduler: SchedulerState, warp_at: int, operation: TimedOperation, now: int
) -> None:
    """Occupies the banks of the scheduler's register file (`scheduler.banks`) for the reads of an
    operation of the warp at offset `warp_at`: one cycle for each register of a bank, from `now` on
    or after earlier reads."""
    if operation.reads != 0:
        for bank in range(w.REGISTER_BANKS):
            bank_free = scheduler.at + SchedulerState.banks + bank
            sm.words[bank_free] = max(sm.words[bank_free], now) + bank_reads(
                scheduler, warp_at, operation, bank
            )


@jitable
def is_access(kind: int) -> bool:
    """Returns whether operations of this kind make accesses in a flight: MEMORY, POLL and BULK.
    SIGNAL, whose accesses are arrivals at mbarriers, needs none."""
    return kind == w.MEMORY or kind == w.POLL or kind == w.BULK


@jitable
def issue(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, warp: WarpSlot, now: int
) -> None:
    """Issues one slot of a warp's operation, which nothing may block (`blocked_until`), in this
    cycle: occupies the unit and the register banks, and counts one in `sm.instructions` and in the
    operation's total. If the operation has further slots, the warp sleeps for its `gap`. With the
    last slot, sets when its destination registers are ready: PENDING if it makes accesses, for
    which it starts a flight. Then applies the effects of its kind and moves the warp on
    (`finish_issue`)."""
    op = warp.op
    operation = TimedOperation(arrays.ops, 0, op)
    unit = unit_at(arrays, warp, operation.unit)
    sm.words[unit] = max(sm.words[unit], now * TICKS) + operation.interval
    occupy_banks(sm, scheduler, warp.at, operation, now)
    sm.instructions += 1
    arrays.totals[arrays.params.operations * w.REASON_COUNT + op] += 1
    slots = operation.slots
    if warp.slots_left == slots:
        warp.first_issue = now
    warp.slots_left -= 1
    # Operations of several slots issue one slot every GAP cycles.
    if warp.slots_left > 0:
        wake = now + operation.gap
        sleep(arrays, sm, warp, max(wake, now + 1), w.WAIT, now + 1)
        return
    # A slot that issued late, as its unit was busy, delays the result by as much.
    delay = now - warp.first_issue - (slots - 1) * operation.gap
    done = warp.first_issue + operation.latency + max(delay, 0)
    if is_access(operation.kind) and access_count(arrays, warp, operation) > 0:
        done = start_flight(arrays, sm, scheduler, warp, op, now)
    else:
        done = max(done, now + 1) << w.REASON_BITS | operation.wait
    base = warp.registers
    first = operation.writes_at
    for index in range(first, first + operation.writes):
        sm.words[base + arrays.registers[index]] = done
    finish_issue(arrays, sm, warp, operation, now)


@jitable
def finish_issue(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, operation: TimedOperation, now: int
) -> None:
    """Applies what follows an operation whose last slot has issued (`apply_effect`), moves the warp
    to its next operation and, unless that ended the warp, puts it to sleep where it has to wait
    (`hold_warp`)."""
    waits = apply_effect(arrays, sm, warp, operation, now)
    stalled = now + max(1, operation.stall)
    resolved = now + operation.cycles if operation.kind == w.BRANCH else stalled
    # The warp may end here, and its slot may be empty after this call.
    advance(arrays, sm, warp, now + 1, stalled, resolved)
    if warp.state != w.VACANT:
        hold_warp(arrays, sm, warp, operation, waits, now)


@jitable
def apply_effect(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, operation: TimedOperation, now: int
) -> bool:
    """Applies the effect of an operation by its kind: arrives at a barrier, opens the next group
    (COMMIT), extends the group's end by a matrix product (PRODUCT), arrives at mbarriers (SIGNAL),
    counts a polling warp. Returns whether the warp waits for others at a barrier."""
    kind = operation.kind
    if kind == w.BLOCK_BARRIER:
        return arrive_at_barrier(arrays, sm, warp, operation.at // TimedOperation.WORDS, now)
    if kind == w.COMMIT:
        if operation.of_products:
            open_group(sm, warp.at + WarpSlot.product_group)
        else:
            open_group(sm, warp.at + WarpSlot.copy_group)
    elif kind == w.PRODUCT:
        unit = unit_at(arrays, warp, operation.unit)
        group = warp.at + WarpSlot.products + warp.product_group % w.GROUPS
        sm.words[group] = max(sm.words[group], sm.words[unit] // TICKS + operation.latency)
        if operation.closes_group:
            open_group(sm, warp.at + WarpSlot.product_group)
    elif kind == w.SIGNAL:
        signal_after_products(arrays, sm, warp, access_count(arrays, warp, operation), now)
    elif kind == w.POLL:
        sm.polling_warps += 1
        warp.pending_wait = -1
    return False


@jitable
def hold_warp(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, operation: TimedOperation, waits: bool,
    now: int,
) -> None:  # fmt: skip
    """Puts a warp to sleep where an operation makes it wait: at a barrier until that is released
    (`waits`), or for `latency_barrier` if the warp released it; at a poll until all warps have
    polled. At a fence or a wait for groups of copies it sleeps until the ends of the awaited
    flights are known (`pending_wait`), then for the fence's cycles or until the groups' ends. At a
    wait for groups of products it sleeps until their ends, at a `nanosleep` for its cycles."""
    kind = operation.kind
    if waits:
        sleep(arrays, sm, warp, w.NEVER, w.BARRIER, now + 1)
    elif kind == w.BLOCK_BARRIER and operation.awaited >= 0:
        delay_warp(arrays, sm, warp, now + arrays.params.latency_barrier, w.BARRIER, now + 1)
    elif kind == w.POLL:
        sleep(arrays, sm, warp, w.NEVER, w.LONG_SCOREBOARD, now + 1)
    elif kind == w.SLEEP:
        delay_warp(arrays, sm, warp, now + operation.cycles, w.SLEEPING, now + 1)
    elif kind == w.WAIT_GROUP and operation.of_products:
        pending, group = operation.still_open, warp.product_group
        until = groups_end(sm, warp.at + WarpSlot.products, group, pending, now + 1)
        delay_warp(arrays, sm, warp, until, w.WAIT, now + 1)
    elif kind == w.FENCE or kind == w.WAIT_GROUP:
        # Packed so that `recheck_waits` can distinguish fences (odd) from group waits (even, 2 on).
        pending_wait, reason = 4 + 2 * operation.still_open, w.LONG_SCOREBOARD
        if kind == w.FENCE:
            pending_wait, reason = 1 + 2 * operation.cycles, w.MEMBAR
        warp.pending_wait = pending_wait
        if awaited_flights(sm, warp, pending_wait) > 0:
            sleep(arrays, sm, warp, w.NEVER, reason, now + 1)
        else:
            warp.pending_wait = 0
            delay_warp(arrays, sm, warp, wait_end(sm, warp, pending_wait, now + 1), reason, now + 1)


@jitable
def open_group(sm: SmState, number: int) -> None:
    """Opens the next group of asynchronous copies or matrix products: increments the number of the
    open group, the word at offset `number`. Its word in the ring buffer of GROUPS ends stays that
    of the group which had it before, which a wait for older groups still awaits."""
    sm.words[number] += 1


@jitable
def delay_warp(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, until: int, reason: int, now: int
) -> None:
    """Prevents a warp from issuing before the cycle `until`: raises `earliest` to it and, if that
    is after `now`, puts a warp that is ready, or would wake before, to sleep until then for that
    reason."""
    warp.earliest = max(warp.earliest, until)
    awake = warp.state == w.READY
    if until > now and (awake or sm.words[warp.wake_at] < until):
        sleep(arrays, sm, warp, until, reason, now)


@jitable
def access_count(arrays: EngineArrays, warp: WarpSlot, operation: TimedOperation) -> int:
    """Returns how many accesses of the warp's stream the operation that it issues makes: those from
    its next access (`warp.access`) on that name the operation's instruction, up to the end of its
    stream entry."""
    stop = StreamEntry(arrays.entries, 0, warp.entry + 1).access
    access, count = warp.access, 0
    instruction = operation.instruction
    while access + count < stop:
        if TimedAccess(arrays.accesses, 0, access + count).instruction != instruction:
            break
        count += 1
    return count


@jitable
def start_flight(
    arrays: EngineArrays, sm: SmState, scheduler: SchedulerState, warp: WarpSlot, op: int, now: int
) -> int:
    """Allocates a free flight record for a memory instruction that issues, and appends it to the
    queue of the load/store unit, where its warp and scheduler count it (`queued`), or (BULK) of the
    Tensor Memory Accelerator; moves the warp past its accesses. The flight stores the warp's open
    group of copies (NEVER if it joins none); it counts in the warp's `flights`, which fences await,
    unless it is a bulk copy outside of groups. A record must be free, and the queue not be full.
    Returns the packed value that the destination registers get: PENDING, the flight's number, and
    the stall reason (long scoreboard if off chip, else short)."""
    operation = TimedOperation(arrays.ops, 0, op)
    count = access_count(arrays, warp, operation)
    sm.free_count -= 1
    flight_number = sm.words[arrays.params.at_free + sm.free_count]
    flight = Flight(sm, arrays.params.at_flights, flight_number)
    # Prefetches the warp's base addresses, which are needed when its accesses are served.
    prefetch(arrays.warps, warp.warp * arrays.params.warp_words)
    flight.warp = warp.at
    flight.op = op
    flight.end = 0
    flight.open_requests = count
    flight.age = warp.age
    # A group of copies ends with its last copy.
    joins = operation.joins_group
    flight.group = warp.copy_group if joins else w.NEVER
    if joins:
        sm.words[warp.at + WarpSlot.groups + warp.copy_group % w.GROUPS] += 1 << w.GROUP_END_BITS
    flight.arrivals = flight.next = 0
    flight.block_number = BlockSlot(sm, warp.block).launch_number
    flight.warp_number = warp.warp
    flight.since = now
    first = warp.access
    flight.first, flight.count = first, count
    warp.access += count
    warp.flights += int(is_fenced(operation))
    off_chip = operation.off_chip
    reason = w.LONG_SCOREBOARD if off_chip else w.SHORT_SCOREBOARD
    # Copies do not go through the load/store unit.
    if operation.kind == w.BULK:
        enqueue_copy(arrays, sm, flight.at, first, count)
        return int(w.PENDING | flight_number << w.REASON_BITS | reason)
    capacity = arrays.params.schedulers * arrays.params.lsu_queue
    slot = sm.queue_head + sm.queue_count
    slot -= capacity if slot >= capacity else 0
    queued = QueueEntry(sm, arrays.params.at_queue, slot)
    queued.flight = flight.at
    queued.access = first
    queued.accesses_left = count
    sm.queue_count += 1
    scheduler.queued += 1
    warp.queued += 1
    return int(w.PENDING | flight_number << w.REASON_BITS | reason)
