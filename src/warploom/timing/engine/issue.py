"""Issues one operation of a warp in the timing model: checks its unit, banks and queue, and applies
the effects of its kind."""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.bulk import enqueue_copy
from warploom.timing.engine.flow import advance, arrive_at_barrier
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.phases import is_fenced, signal_after_products
from warploom.timing.engine.waits import groups_end, sleep, wait_end
from warploom.timing.work.costs import TICKS, UNITS

LSU, TEXTURE = UNITS.index("lsu"), UNITS.index("texture")
MIO_UNITS = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert", "shuffle", "lsu"))
"""Units that are fed by the memory input/output queue (MIO), as a bit mask."""


@jitable
def unit_at(arrays: EngineArrays, sm: Words, warp: int, unit: int) -> int:
    """Returns the offset of the word that holds the tick from which unit number `unit` is free:
    that of the warp's scheduler, or the one that all schedulers of the SM share
    (SHARED_UNITS_MASK)."""
    if (arrays.params[w.SHARED_UNITS_MASK] >> unit) & 1:
        return int(arrays.params[w.AT_UNITS] + unit)
    return int(sm[warp + w.V_UNITS] + unit)


@jitable
def blocked_until(arrays: EngineArrays, sm: Words, scheduler: int, warp: int, now: int) -> int:
    """Returns the first cycle in which a warp's operation can issue as far as its unit, the
    register file and the load/store queue are concerned: `now`, a later one, or NEVER where, for an
    access, the queue is full or no flight record is free. If it is not `now`, V_BLOCKED_BY gets the
    stall reason."""
    op_offset = sm[warp + w.V_OP] * w.OP_WORDS
    unit = arrays.ops[op_offset + w.OP_UNIT]
    free = sm[unit_at(arrays, sm, warp, unit)]
    # A unit that becomes free within this cycle accepts the operation: some units take a warp in
    # less than a cycle.
    if free >= (now + 1) * TICKS:
        sm[warp + w.V_BLOCKED_BY] = w.MATH_PIPE_THROTTLE
        if unit == TEXTURE:
            sm[warp + w.V_BLOCKED_BY] = w.TEX_THROTTLE
        elif (MIO_UNITS >> unit) & 1:
            sm[warp + w.V_BLOCKED_BY] = w.MIO_THROTTLE
            if unit == LSU and arrays.ops[op_offset + w.OP_OFF_CHIP]:
                sm[warp + w.V_BLOCKED_BY] = w.LG_THROTTLE
        return int(free // TICKS)
    read = banks_free_at(arrays, sm, scheduler, warp, op_offset, now)
    if read > now:
        sm[warp + w.V_BLOCKED_BY] = w.DISPATCH_STALL
        return read
    kind = arrays.ops[op_offset + w.OP_KIND]
    full = sm[scheduler + w.S_QUEUED] >= arrays.params[w.LSU_QUEUE] and kind != w.BULK
    if (full or sm[w.FREE_COUNT] == 0) and is_access(kind):
        sm[warp + w.V_BLOCKED_BY] = (
            w.LG_THROTTLE if arrays.ops[op_offset + w.OP_OFF_CHIP] else w.MIO_THROTTLE
        )
        if unit == TEXTURE:
            sm[warp + w.V_BLOCKED_BY] = w.TEX_THROTTLE
        # `retry_issue` lets the scheduler try again when one becomes free.
        return w.NEVER
    return now


@jitable
def bank_reads(
    arrays: EngineArrays, sm: Words, scheduler: int, warp: int, op_offset: int, bank: int
) -> int:
    """Returns how many registers of bank number `bank` of the register file a warp's operation (row
    at `op_offset`) reads, less those that the operand cache holds, if the warp also issued the
    scheduler's operation before."""
    reads = arrays.ops[op_offset + w.OP_READS] >> w.READ_BITS * bank
    mask = (1 << w.READ_BITS) - 1
    # OP_READS: READ_BITS for each bank, then READ_BITS for each bank of those cached.
    cached = reads >> w.READ_BITS * w.REGISTER_BANKS & mask
    return int((reads & mask) - cached * int(sm[scheduler + w.S_LAST] == warp))


@jitable
def banks_free_at(
    arrays: EngineArrays, sm: Words, scheduler: int, warp: int, op_offset: int, now: int
) -> int:
    """Returns the first cycle from `now` on in which a warp's operation (row at `op_offset`) can
    issue so that the banks of the scheduler's register file, after earlier reads, serve its reads
    within READ_WINDOW cycles."""
    until = now
    if arrays.ops[op_offset + w.OP_READS] != 0:
        for bank in range(w.REGISTER_BANKS):
            reads = bank_reads(arrays, sm, scheduler, warp, op_offset, bank)
            if reads > 0:
                until = max(until, sm[scheduler + w.S_BANKS + bank] + reads - w.READ_WINDOW)
    return int(until)


@jitable
def occupy_banks(
    arrays: EngineArrays, sm: Words, scheduler: int, warp: int, op_offset: int, now: int
) -> None:
    """Occupies the banks of the scheduler's register file for the reads of a warp's operation (row
    at `op_offset`), one cycle for each register of a bank, after the reads before."""
    if arrays.ops[op_offset + w.OP_READS] != 0:
        for bank in range(w.REGISTER_BANKS):
            bank_free = scheduler + w.S_BANKS + bank
            sm[bank_free] = max(sm[bank_free], now) + bank_reads(
                arrays, sm, scheduler, warp, op_offset, bank
            )


@jitable
def is_access(kind: int) -> bool:
    """Returns whether operations of this kind make accesses."""
    return kind == w.MEMORY or kind == w.POLL or kind == w.BULK


@jitable
def issue(arrays: EngineArrays, sm: Words, scheduler: int, warp: int, now: int) -> None:
    """Issues a warp's operation, or one of its slots if it has several, in this cycle: occupies the
    unit and the register banks, and counts the instruction. With its last slot, sets when its
    destination registers are ready, starts a flight if it accesses memory, and moves the warp
    on."""
    op = sm[warp + w.V_OP]
    op_offset = op * w.OP_WORDS
    unit = unit_at(arrays, sm, warp, arrays.ops[op_offset + w.OP_UNIT])
    sm[unit] = max(sm[unit], now * TICKS) + arrays.ops[op_offset + w.OP_INTERVAL]
    occupy_banks(arrays, sm, scheduler, warp, op_offset, now)
    sm[w.INSTRUCTIONS] += 1
    arrays.totals[arrays.params[w.OPERATIONS] * w.REASON_COUNT + op] += 1
    slots = arrays.ops[op_offset + w.OP_SLOTS]
    if sm[warp + w.V_SLOTS_LEFT] == slots:
        sm[warp + w.V_FIRST_ISSUE] = now
    sm[warp + w.V_SLOTS_LEFT] -= 1
    # Operations of several slots issue one slot every GAP cycles.
    if sm[warp + w.V_SLOTS_LEFT] > 0:
        wake = now + arrays.ops[op_offset + w.OP_GAP]
        sleep(arrays, sm, warp, max(wake, now + 1), w.WAIT, now + 1)
        return
    kind = arrays.ops[op_offset + w.OP_KIND]
    # A slot that issued late, as its unit was busy, delays the result by as much.
    delay = now - sm[warp + w.V_FIRST_ISSUE] - (slots - 1) * arrays.ops[op_offset + w.OP_GAP]
    done = sm[warp + w.V_FIRST_ISSUE] + arrays.ops[op_offset + w.OP_LATENCY] + max(delay, 0)
    if is_access(kind) and access_count(arrays, sm, warp, op_offset) > 0:
        done = start_flight(arrays, sm, scheduler, warp, op, now)
    else:
        done = max(done, now + 1) << w.REASON_BITS | arrays.ops[op_offset + w.OP_WAIT]
    base = sm[warp + w.V_REGISTERS]
    first = arrays.ops[op_offset + w.OP_WRITES_AT]
    for index in range(first, first + arrays.ops[op_offset + w.OP_WRITES]):
        sm[base + arrays.registers[index]] = done
    finish_issue(arrays, sm, warp, op_offset, kind, now)


@jitable
def finish_issue(
    arrays: EngineArrays, sm: Words, warp: int, op_offset: int, kind: int, now: int
) -> None:
    """Applies what follows an operation whose last slot has issued, by its kind: arrives at a
    barrier, opens the next group (COMMIT), sets when a matrix product's group ends, arrives at
    mbarriers (SIGNAL), counts a polling warp. Moves the warp to its next operation; unless that
    ended the warp, puts it to sleep where it has to wait: for a barrier, polling, a fence, groups,
    or `nanosleep`."""
    waits = False
    if kind == w.BLOCK_BARRIER:
        waits = arrive_at_barrier(arrays, sm, warp, op_offset // w.OP_WORDS, now)
    elif kind == w.COMMIT:
        if arrays.ops[op_offset + w.OP_OF_PRODUCTS]:
            open_group(sm, warp + w.V_PRODUCT, warp + w.V_PRODUCTS)
        else:
            open_group(sm, warp + w.V_GROUP, warp + w.V_GROUPS)
    elif kind == w.PRODUCT:
        unit = unit_at(arrays, sm, warp, arrays.ops[op_offset + w.OP_UNIT])
        group = warp + w.V_PRODUCTS + sm[warp + w.V_PRODUCT] % w.GROUPS
        sm[group] = max(sm[group], sm[unit] // TICKS + arrays.ops[op_offset + w.OP_LATENCY])
    elif kind == w.SIGNAL:
        signal_after_products(arrays, sm, warp, access_count(arrays, sm, warp, op_offset), now)
    elif kind == w.POLL:
        sm[w.POLLING_WARPS] += 1
        sm[warp + w.V_PENDING_WAIT] = -1
    # The warp may end here, and its slot may be empty after this call.
    advance(arrays, sm, warp, now + 1, now + max(1, arrays.ops[op_offset + w.OP_STALL]))
    if sm[warp + w.V_STATE] == w.VACANT:
        return
    if waits:
        sleep(arrays, sm, warp, w.NEVER, w.BARRIER, now + 1)
    elif kind == w.BLOCK_BARRIER and arrays.ops[op_offset + w.OP_AWAITED] >= 0:
        delay_warp(arrays, sm, warp, now + arrays.params[w.LATENCY_BARRIER], w.BARRIER, now + 1)
    elif kind == w.POLL:
        sleep(arrays, sm, warp, w.NEVER, w.LONG_SCOREBOARD, now + 1)
    elif kind == w.SLEEP:
        until = now + arrays.ops[op_offset + w.OP_CYCLES]
        delay_warp(arrays, sm, warp, until, w.SLEEPING, now + 1)
    elif kind == w.WAIT_GROUP and arrays.ops[op_offset + w.OP_OF_PRODUCTS]:
        pending, group = arrays.ops[op_offset + w.OP_STILL_OPEN], sm[warp + w.V_PRODUCT]
        until = groups_end(sm, warp + w.V_PRODUCTS, group, pending, now + 1)
        delay_warp(arrays, sm, warp, until, w.WAIT, now + 1)
    elif kind == w.FENCE or kind == w.WAIT_GROUP:
        # Packed so that `recheck_waits` can tell fences (odd) from group waits (even, from 2 on).
        if kind == w.FENCE:
            pending_wait = 1 + 2 * arrays.ops[op_offset + w.OP_CYCLES]
        else:
            pending_wait = 2 + 2 * arrays.ops[op_offset + w.OP_STILL_OPEN]
        sm[warp + w.V_PENDING_WAIT] = pending_wait
        reason = w.MEMBAR if kind == w.FENCE else w.LONG_SCOREBOARD
        if sm[warp + w.V_FLIGHTS] > 0:
            sleep(arrays, sm, warp, w.NEVER, reason, now + 1)
        else:
            sm[warp + w.V_PENDING_WAIT] = 0
            delay_warp(arrays, sm, warp, wait_end(sm, warp, pending_wait, now + 1), reason, now + 1)


@jitable
def open_group(sm: Words, number: int, ends: int) -> None:
    """Opens the next group of asynchronous copies or matrix products, without an end yet:
    increments the word at offset `number`, and clears the group's place in the ring buffer of
    GROUPS ends at offset `ends`."""
    sm[number] += 1
    sm[ends + sm[number] % w.GROUPS] = 0


@jitable
def delay_warp(
    arrays: EngineArrays, sm: Words, warp: int, until: int, reason: int, now: int
) -> None:
    """Keeps a warp from issuing before the cycle `until` (V_EARLIEST): puts it to sleep with that
    reason, unless it sleeps longer anyway."""
    sm[warp + w.V_EARLIEST] = max(sm[warp + w.V_EARLIEST], until)
    awake = sm[warp + w.V_STATE] == w.READY
    if until > now and (awake or sm[sm[warp + w.V_WAKE_AT]] < until):
        sleep(arrays, sm, warp, until, reason, now)


@jitable
def access_count(arrays: EngineArrays, sm: Words, warp: int, op_offset: int) -> int:
    """Returns how many accesses of the warp's stream belong to the instruction that it issues
    (operation at `op_offset`): those from its next access on that name the instruction, within the
    current basic block."""
    stop = arrays.entries[(sm[warp + w.V_ENTRY] + 1) * w.ENTRY_WORDS + w.ENTRY_ACCESS]
    access, count = sm[warp + w.V_ACCESS], 0
    instruction = arrays.ops[op_offset + w.OP_INSTRUCTION]
    while access + count < stop:
        if arrays.accesses[(access + count) * w.ACCESS_WORDS + w.A_INSTRUCTION] != instruction:
            break
        count += 1
    return count


@jitable
def start_flight(
    arrays: EngineArrays, sm: Words, scheduler: int, warp: int, op: int, now: int
) -> int:
    """Creates the record of a memory instruction in flight and appends it to the queue of the
    load/store unit or (BULK) of the Tensor Memory Accelerator; moves the warp past its accesses.
    The flight notes the warp's open group of copies (NEVER if it joins none), and counts in
    V_FLIGHTS if fences wait for it. A record must be free, and the queue not be full. Returns the
    packed value that its destination registers get (PENDING, flight's number, and the stall reason:
    long scoreboard off chip, else short)."""
    op_offset = op * w.OP_WORDS
    count = access_count(arrays, sm, warp, op_offset)
    sm[w.FREE_COUNT] -= 1
    flight_number = sm[arrays.params[w.AT_FREE] + sm[w.FREE_COUNT]]
    flight = arrays.params[w.AT_FLIGHTS] + flight_number * w.F_WORDS
    # Prefetches the warp's base addresses, which are needed when its accesses are served.
    prefetch(arrays.warps, sm[warp + w.V_WARP] * arrays.params[w.WARP_WORDS])
    sm[flight + w.F_WARP] = warp
    sm[flight + w.F_OP] = op
    sm[flight + w.F_END] = 0
    sm[flight + w.F_OPEN_REQUESTS] = count
    sm[flight + w.F_AGE] = sm[warp + w.V_AGE]
    # A group of copies ends with its last copy.
    joins = arrays.ops[op_offset + w.OP_JOINS_GROUP]
    sm[flight + w.F_GROUP] = sm[warp + w.V_GROUP] if joins else w.NEVER
    sm[flight + w.F_ARRIVALS] = sm[flight + w.F_NEXT] = 0
    sm[flight + w.F_BLOCK_NUMBER] = sm[sm[warp + w.V_BLOCK] + w.B_NUMBER]
    sm[flight + w.F_WARP_NUMBER] = sm[warp + w.V_WARP]
    sm[flight + w.F_SINCE] = now
    first = sm[warp + w.V_ACCESS]
    sm[flight + w.F_FIRST], sm[flight + w.F_COUNT] = first, count
    sm[warp + w.V_ACCESS] += count
    sm[warp + w.V_FLIGHTS] += int(is_fenced(arrays, op_offset))
    off_chip = arrays.ops[op_offset + w.OP_OFF_CHIP]
    reason = w.LONG_SCOREBOARD if off_chip else w.SHORT_SCOREBOARD
    # Copies do not go through the load/store unit.
    if arrays.ops[op_offset + w.OP_KIND] == w.BULK:
        enqueue_copy(arrays, sm, flight, first, count)
        return int(w.PENDING | flight_number << w.REASON_BITS | reason)
    capacity = arrays.params[w.SCHEDULERS] * arrays.params[w.LSU_QUEUE]
    slot = sm[w.QUEUE_HEAD] + sm[w.QUEUE_COUNT]
    slot -= capacity if slot >= capacity else 0
    queued = arrays.params[w.AT_QUEUE] + slot * w.Q_WORDS
    sm[queued + w.Q_FLIGHT] = flight
    sm[queued + w.Q_ACCESS] = first
    sm[queued + w.Q_ACCESSES_LEFT] = count
    sm[w.QUEUE_COUNT] += 1
    sm[scheduler + w.S_QUEUED] += 1
    sm[warp + w.V_QUEUED] += 1
    return int(w.PENDING | flight_number << w.REASON_BITS | reason)
