"""Moves warps of the timing model through their streams, from operation to operation and through
barriers, and starts and ends thread blocks on an SM."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.phases import clear_phases, release_phases
from warploom.timing.engine.waits import (
    charge_scheduler,
    remove_ready,
    schedule_warp,
    set_state,
    sleep,
)


@jitable
def enter_block(arrays: EngineArrays, sm: Words, warp: int) -> None:
    """Moves a warp to the first operation (up to V_OP_STOP), and the first access, of its current
    stream entry: one execution of a basic block."""
    entry = sm[warp + w.V_ENTRY] * w.ENTRY_WORDS
    block = arrays.entries[entry + w.ENTRY_BLOCK] * w.BLOCK_WORDS
    sm[warp + w.V_OP] = arrays.blocks[block + w.BLOCK_START]
    sm[warp + w.V_OP_STOP] = arrays.blocks[block + w.BLOCK_STOP]
    sm[warp + w.V_ACCESS] = arrays.entries[entry + w.ENTRY_ACCESS]


@jitable
def advance(arrays: EngineArrays, sm: Words, warp: int, now: int, earliest: int) -> None:
    """Moves a warp to its next operation, from the cycle `now` on, which does not issue before
    `earliest`; stores the slots that it has to issue (V_SLOTS_LEFT) and schedules it. A taken
    branch delays it by the latency of branches, or of an instruction fetch on a miss. Register
    copies on the way are made at once. At the end of its stream the warp ends."""
    reason = w.WAIT
    sm[warp + w.V_OP] += 1
    while True:
        while sm[warp + w.V_OP] >= sm[warp + w.V_OP_STOP]:
            stop = sm[warp + w.V_OP_STOP]
            sm[warp + w.V_ENTRY] += 1
            if sm[warp + w.V_ENTRY] >= sm[warp + w.V_ENTRY_STOP]:
                end_warp(arrays, sm, warp, now)
                return
            enter_block(arrays, sm, warp)
            # Falling through to the next basic block costs nothing; a taken branch does.
            if sm[warp + w.V_OP] != stop:
                earliest = max(earliest, now - 1 + arrays.params[w.LATENCY_BRANCH])
                reason = w.BRANCH_RESOLVING
                if not fetch_line(arrays, sm, warp):
                    earliest = max(earliest, now + arrays.params[w.LATENCY_FETCH])
                    reason = w.NO_INSTRUCTION
        op = sm[warp + w.V_OP]
        if op & ((1 << arrays.params[w.FETCH_LINE_BITS]) - 1) == 0:
            fetch_line(arrays, sm, warp)  # prefetches the line that follows
        if arrays.ops[op * w.OP_WORDS + w.OP_KIND] != w.COPY:
            break
        copy_registers(arrays, sm, warp, op)
        sm[warp + w.V_OP] += 1
    sm[warp + w.V_SLOTS_LEFT] = arrays.ops[op * w.OP_WORDS + w.OP_SLOTS]
    schedule_warp(arrays, sm, warp, now, earliest, reason)


@jitable
def fetch_line(arrays: EngineArrays, sm: Words, warp: int) -> bool:
    """Loads the line of the warp's next operation into the instruction cache of its scheduler,
    which is direct-mapped; returns whether the cache held it already."""
    line = sm[warp + w.V_OP] >> arrays.params[w.FETCH_LINE_BITS]
    number = (sm[warp + w.V_SCHEDULER] - arrays.params[w.AT_SCHEDULERS]) // w.S_WORDS
    cache = arrays.params[w.AT_FETCH] + number * arrays.params[w.FETCH_LINES]
    tag = cache + line % arrays.params[w.FETCH_LINES]
    hit = sm[tag] == line + 1
    sm[tag] = line + 1
    return bool(hit)


@jitable
def copy_registers(arrays: EngineArrays, sm: Words, warp: int, op: int) -> None:
    """Sets the ready times of a register copy's destinations to the latest of its sources'; a time
    that is not known yet (PENDING) is copied with the number of its flight."""
    base, op_offset, latest = sm[warp + w.V_REGISTERS], op * w.OP_WORDS, 0
    first = arrays.ops[op_offset + w.OP_NEEDS_AT]
    for index in range(first, first + arrays.ops[op_offset + w.OP_NEEDS]):
        # PENDING values exceed every packed cycle, so an unknown time wins.
        latest = max(latest, sm[base + arrays.registers[index]])
    first = arrays.ops[op_offset + w.OP_WRITES_AT]
    for index in range(first, first + arrays.ops[op_offset + w.OP_WRITES]):
        sm[base + arrays.registers[index]] = latest


# ---- barriers -----------------------------------------------------------------------------------


@jitable
def arrive_at_barrier(arrays: EngineArrays, sm: Words, warp: int, op: int, now: int) -> bool:
    """Counts the arrival of a warp at a barrier of its block by operation `op`, whose OP_AWAITED is
    how many warps it awaits (0: all live ones); the last arrival releases the barrier. Returns
    whether the warp has to wait there: not if it released the barrier or only arrives. If then all
    warps of the block wait, at different barriers, all are released."""
    op_offset, block = op * w.OP_WORDS, sm[warp + w.V_BLOCK]
    number = arrays.ops[op_offset + w.OP_BARRIER] % w.BARRIERS
    need = arrays.ops[op_offset + w.OP_AWAITED]
    waits = need >= 0
    # Arrivals without a wait have a negative number of warps.
    if not waits:
        need = -1 - need
    arrivals = block + w.B_ARRIVED + number
    sm[arrivals] += 1
    sm[block + w.B_WAITING] += int(waits)
    sm[warp + w.V_BARRIER] = number
    expected = need if need > 0 else sm[block + w.B_WARPS]
    if sm[arrivals] >= expected:
        sm[block + w.B_WAITING] -= int(waits)
        release_barrier(arrays, sm, block, number, now)
        return False
    if sm[block + w.B_WAITING] >= sm[block + w.B_WARPS]:
        # All wait at different barriers, as parts of diverged warps can: in the functional run they
        # went on.
        sm[block + w.B_WAITING] -= int(waits)
        for other in range(w.BARRIERS):
            release_barrier(arrays, sm, block, other, now)
        return False
    return bool(waits)


@jitable
def release_barrier(arrays: EngineArrays, sm: Words, block: int, number: int, now: int) -> None:
    """Wakes the warps that wait at barrier `number` of a block, after the latency of a barrier, and
    resets its arrivals."""
    sm[block + w.B_ARRIVED + number] = 0
    slot = (block - arrays.params[w.AT_BLOCKS]) // w.B_WORDS
    first = arrays.params[w.AT_WARPS] + slot * arrays.params[w.WARPS_PER_BLOCK] * w.V_WORDS
    for index in range(arrays.params[w.WARPS_PER_BLOCK]):
        warp = first + index * w.V_WORDS
        waits = sm[warp + w.V_STATE] == w.ASLEEP and sm[warp + w.V_REASON] == w.BARRIER
        if waits and sm[warp + w.V_BARRIER] == number and sm[sm[warp + w.V_WAKE_AT]] == w.NEVER:
            sm[block + w.B_WAITING] -= 1
            sleep(arrays, sm, warp, now + arrays.params[w.LATENCY_BARRIER], w.BARRIER, now)


@jitable
def release_after_exit(arrays: EngineArrays, sm: Words, block: int, now: int) -> None:
    """Releases all barriers of a block if all warps that are left wait at some, after a warp has
    ended."""
    if sm[block + w.B_WAITING] > 0 and sm[block + w.B_WAITING] >= sm[block + w.B_WARPS]:
        for number in range(w.BARRIERS):
            release_barrier(arrays, sm, block, number, now)


@jitable
def release_polling_warps(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Schedules the warps of this SM that have polled until all warps had polled (as in a grid's
    `sync()`), once another answer of L2, or of DRAM without an L2, can have arrived, and clears
    POLLING_DONE. First resumes instructions that wait for mbarriers, if blocks have any."""
    sm[w.POLLING_DONE] = 0
    if arrays.params[w.PHASES] > 0:
        release_phases(arrays, sm, now)
    ready = now + (
        arrays.params[w.LATENCY_L2]
        if arrays.params[w.L2_SETS] > 0
        else arrays.params[w.LATENCY_DRAM]
    )
    for slot in range(arrays.params[w.SLOTS]):
        warp = arrays.params[w.AT_WARPS] + slot * w.V_WORDS
        if sm[warp + w.V_STATE] == w.ASLEEP and sm[warp + w.V_PENDING_WAIT] < 0:
            sm[warp + w.V_PENDING_WAIT] = 0
            schedule_warp(
                arrays, sm, warp, now, max(ready, sm[warp + w.V_EARLIEST]), w.LONG_SCOREBOARD
            )


# ---- blocks -------------------------------------------------------------------------------------


@jitable
def end_warp(arrays: EngineArrays, sm: Words, warp: int, now: int) -> None:
    """Ends a warp: charges its cycles, removes it from its scheduler and frees its slot. With the
    last warp its block ends, which BLOCKS_DONE and LAST_DONE record; else barriers at which all
    others wait are released."""
    scheduler, block = sm[warp + w.V_SCHEDULER], sm[warp + w.V_BLOCK]
    account_residency(sm, now)
    # Charges the cycles of the warp up to now; the state itself is dropped in the next line.
    set_state(arrays, sm, warp, w.NOT_SELECTED, now)
    sm[scheduler + w.S_WARPS + w.NOT_SELECTED] -= 1
    remove_ready(sm, warp)
    if sm[warp + w.V_ACTIVE]:
        sm[scheduler + w.S_ACTIVE] -= 1
    sm[warp + w.V_STATE] = w.VACANT
    sm[sm[warp + w.V_WAKE_AT]] = w.NEVER
    sm[w.LIVE_WARPS] -= 1
    sm[block + w.B_WARPS] -= 1
    if sm[block + w.B_WARPS] == 0:
        sm[w.LIVE_BLOCKS] -= 1
        sm[w.BLOCKS_DONE] += 1
        sm[w.LAST_DONE] = now
    else:
        release_after_exit(arrays, sm, block, now)


@jitable
def launch_reserved(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Launches blocks that are reserved for this SM in its free slots."""
    for index in range(arrays.params[w.BLOCK_SLOTS]):
        if sm[w.RESERVED_COUNT] == 0:
            return
        slot_offset = arrays.params[w.AT_BLOCKS] + index * w.B_WORDS
        if sm[slot_offset + w.B_WARPS] == 0:
            launch_block(arrays, sm, slot_offset, now)


@jitable
def launch_block(arrays: EngineArrays, sm: Words, slot_offset: int, now: int) -> None:
    """Launches the next reserved block in a free slot, at offset `slot_offset`: takes its number
    out of the SM's ring buffer of reserved blocks, counts it and its warps as live, resets the
    slot's barriers and mbarrier phases, and places its warps."""
    head = sm[w.RESERVED_HEAD]
    number = sm[arrays.params[w.AT_RESERVED] + head]
    sm[w.RESERVED_HEAD] = (head + 1) % arrays.params[w.RESERVED]
    sm[w.RESERVED_COUNT] -= 1
    account_residency(sm, now)
    warps = arrays.params[w.WARPS_PER_BLOCK]
    sm[slot_offset + w.B_WARPS] = warps
    sm[slot_offset + w.B_WAITING] = 0
    # LAUNCHED counts warps; its value at the first one identifies the block.
    sm[slot_offset + w.B_NUMBER], sm[slot_offset + w.B_GRID] = sm[w.LAUNCHED], number
    clear_phases(arrays, sm, slot_offset)
    for barrier in range(w.BARRIERS):
        sm[slot_offset + w.B_ARRIVED + barrier] = 0
    first = (
        arrays.params[w.AT_WARPS]
        + (slot_offset - arrays.params[w.AT_BLOCKS]) // w.B_WORDS * warps * w.V_WORDS
    )
    sm[w.LIVE_BLOCKS] += 1
    sm[w.LIVE_WARPS] += warps
    for index in range(warps):
        place_warp(arrays, sm, first + index * w.V_WORDS, number * warps + index, slot_offset, now)


@jitable
def place_warp(
    arrays: EngineArrays, sm: Words, warp: int, number: int, block: int, now: int
) -> None:
    """Initialises a slot for warp `number` of the launch, at the first operation of its stream; it
    may issue after BLOCK_LAUNCH_CYCLES, and waits until then as NO_INSTRUCTION. Its registers are
    ready, its scheduler follows from the slot. `block`: the offset of its block's slot."""
    for word in range(w.V_WORDS):
        sm[warp + word] = 0
    slot = (warp - arrays.params[w.AT_WARPS]) // w.V_WORDS
    scheduler_number = slot % arrays.params[w.SCHEDULERS]
    scheduler = arrays.params[w.AT_SCHEDULERS] + scheduler_number * w.S_WORDS
    base = arrays.params[w.AT_READY] + slot * arrays.params[w.REGISTERS]
    sm[warp + w.V_SCHEDULER], sm[warp + w.V_REGISTERS] = scheduler, base
    sm[warp + w.V_WAKE_AT] = scheduler + w.S_WAKES + slot // arrays.params[w.SCHEDULERS]
    sm[sm[warp + w.V_WAKE_AT]] = w.NEVER
    sm[warp + w.V_UNITS] = (
        arrays.params[w.AT_UNITS] + scheduler_number * arrays.params[w.UNIT_COUNT]
    )
    for register in range(arrays.params[w.REGISTERS]):
        sm[base + register] = 0
    charge_scheduler(sm, scheduler, now)
    stream = arrays.warps[number * arrays.params[w.WARP_WORDS]] * w.STREAM_WORDS
    sm[warp + w.V_WARP] = number
    sm[warp + w.V_BLOCK] = block
    sm[warp + w.V_AGE] = sm[w.LAUNCHED]
    sm[w.LAUNCHED] += 1
    sm[warp + w.V_ENTRY] = arrays.streams[stream + w.STREAM_ENTRIES]
    sm[warp + w.V_ENTRY_STOP] = arrays.streams[stream + w.STREAM_STOP]
    sm[warp + w.V_SINCE] = now
    sm[warp + w.V_REASON] = sm[warp + w.V_COUNTED] = w.NO_INSTRUCTION
    sm[scheduler + w.S_WARPS + w.NO_INSTRUCTION] += 1
    enter_block(arrays, sm, warp)
    # `advance` makes the register copies at the start of the block, so it starts one before.
    sm[warp + w.V_OP] -= 1
    advance(arrays, sm, warp, now, earliest=now)
    # The stream may be empty.
    if sm[warp + w.V_STATE] != w.VACANT:
        sm[warp + w.V_EARLIEST] = now + arrays.params[w.BLOCK_LAUNCH_CYCLES]
        sleep(arrays, sm, warp, now + arrays.params[w.BLOCK_LAUNCH_CYCLES], w.NO_INSTRUCTION, now)


@jitable
def account_residency(sm: Words, now: int) -> None:
    """Adds the cycles from LIVE_SINCE to `now` to the counters of resident warps; called before
    their number changes."""
    passed = now - sm[w.LIVE_SINCE]
    if passed > 0:
        sm[w.ACTIVE_WARP_CYCLES] += passed * sm[w.LIVE_WARPS]
        if sm[w.LIVE_WARPS] > 0:
            sm[w.ACTIVE_CYCLES] += passed
        sm[w.LIVE_SINCE] = now
