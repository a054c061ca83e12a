"""Moves warps of the timing model through their streams, from operation to operation and through
barriers, and starts and ends thread blocks on an SM."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import clear_record
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.engine.phases import clear_phases, release_phases
from warploom.timing.engine.waits import (
    charge_scheduler,
    charge_stall,
    remove_ready,
    schedule_warp,
    set_reason,
    sleep,
)
from warploom.timing.records import (
    BlockOperations,
    BlockSlot,
    SchedulerState,
    SmState,
    StreamEntry,
    TimedOperation,
    TimedWarp,
    WarpSlot,
    WarpStream,
)


@jitable
def enter_block(arrays: EngineArrays, warp: WarpSlot) -> None:
    """Sets a warp's next operation (`op`), the end of the basic block's operations (`op_stop`) and
    its next access, from its current stream entry, which is one execution of a basic block."""
    entry = StreamEntry(arrays.entries, 0, warp.entry)
    block = BlockOperations(arrays.blocks, 0, entry.block)
    warp.op = block.start
    warp.op_stop = block.stop
    warp.access = entry.access


@jitable
def advance(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int, stalled: int, resolved: int
) -> None:
    """Moves a warp past its operation to the next one, in the cycle `now`, stores how many slots
    that has to issue (`slots_left`), and puts the warp to sleep or makes it ready
    (`schedule_warp`), so that it issues no earlier than in the cycles `stalled`, by the stall count
    of its operation, and `resolved`, if that is a branch; what is later has the stall reason WAIT
    or BRANCH_RESOLVING. A jump (the next basic block does not follow in the code) delays it by
    `latency_branch` or, if the instruction cache misses, at least `latency_fetch`, with
    BRANCH_RESOLVING or NO_INSTRUCTION as stall reason. Register copies (COPY) on the way are made
    at once. At the end of its stream the warp ends (`end_warp`)."""
    reason = w.WAIT if resolved <= stalled else w.BRANCH_RESOLVING
    earliest = max(stalled, resolved)
    warp.op += 1
    while True:
        while warp.op >= warp.op_stop:
            stop = warp.op_stop
            warp.entry += 1
            if warp.entry >= warp.entry_stop:
                end_warp(arrays, sm, warp, now)
                return
            enter_block(arrays, warp)
            if warp.op != stop:
                earliest = max(earliest, now - 1 + arrays.params.latency_branch)
                reason = w.BRANCH_RESOLVING
                if not fetch_line(arrays, sm, warp):
                    earliest = max(earliest, now + arrays.params.latency_fetch)
                    reason = w.NO_INSTRUCTION
        op = warp.op
        if op & ((1 << arrays.params.fetch_line_bits) - 1) == 0:
            fetch_line(arrays, sm, warp)  # prefetches the line that follows
        if TimedOperation(arrays.ops, 0, op).kind != w.COPY:
            break
        copy_registers(arrays, sm, warp, op)
        warp.op += 1
    warp.slots_left = TimedOperation(arrays.ops, 0, op).slots
    charge_stall(arrays, sm, warp, now, stalled)
    schedule_warp(arrays, sm, warp, now, earliest, reason)


@jitable
def fetch_line(arrays: EngineArrays, sm: SmState, warp: WarpSlot) -> bool:
    """Loads the line of the warp's next operation into the instruction cache of its scheduler,
    which is direct-mapped; returns whether the cache held it already. The caller charges the
    miss."""
    line = warp.op >> arrays.params.fetch_line_bits
    number = (warp.scheduler - arrays.params.at_schedulers) // SchedulerState.WORDS
    cache = arrays.params.at_fetch + number * arrays.params.fetch_lines
    tag = cache + line % arrays.params.fetch_lines
    hit = sm.words[tag] == line + 1
    sm.words[tag] = line + 1
    return bool(hit)


@jitable
def copy_registers(arrays: EngineArrays, sm: SmState, warp: WarpSlot, op: int) -> None:
    """Sets the ready times of the registers that a copy (operation `op`, COPY) writes to the latest
    of those that it reads; 0 if it reads none. Packed times are compared, so one that is not known
    yet (PENDING) is the latest, and the copies get the number of its flight (memory instruction),
    too."""
    base, operation, latest = warp.registers, TimedOperation(arrays.ops, 0, op), 0
    first = operation.needs_at
    for index in range(first, first + operation.needs):
        # PENDING values exceed every packed cycle, so an unknown time wins.
        latest = max(latest, sm.words[base + arrays.registers[index]])
    first = operation.writes_at
    for index in range(first, first + operation.writes):
        sm.words[base + arrays.registers[index]] = latest


# ---- barriers -----------------------------------------------------------------------------------


@jitable
def arrive_at_barrier(arrays: EngineArrays, sm: SmState, warp: WarpSlot, op: int, now: int) -> bool:
    """Counts the arrival of a warp at a barrier of its block by operation `op`, stores the
    barrier's number in the warp, and releases the barrier if that is the last arrival. The
    operation's `awaited` is how many warps the barrier awaits (0: all of the block that have not
    ended), of an arrival that does not wait -1 less that number. Returns whether the warp has to
    wait: not if it released the barrier or only arrives. If all warps of the block then wait, at
    different barriers, all barriers are released, and the result is False."""
    operation, block = TimedOperation(arrays.ops, 0, op), BlockSlot(sm, warp.block)
    number = operation.barrier % w.BARRIERS
    need = operation.awaited
    waits = need >= 0
    if not waits:
        need = -1 - need
    arrivals = block.at + BlockSlot.arrived + number
    sm.words[arrivals] += 1
    block.waiting += int(waits)
    warp.barrier = number
    expected = need if need > 0 else block.warps
    if sm.words[arrivals] >= expected:
        block.waiting -= int(waits)
        release_barrier(arrays, sm, block, number, now)
        return False
    if block.waiting >= block.warps:
        # All wait at different barriers, as parts of diverged warps can: in the functional run they
        # went on.
        block.waiting -= int(waits)
        for other in range(w.BARRIERS):
            release_barrier(arrays, sm, block, other, now)
        return False
    return bool(waits)


@jitable
def release_barrier(
    arrays: EngineArrays, sm: SmState, block: BlockSlot, number: int, now: int
) -> None:
    """Resets the arrivals at barrier `number` of a block, and makes the warps that wait there sleep
    until `latency_barrier` after `now`, still with stall reason BARRIER, but no longer counted in
    `block.waiting`. The arriving warp, which is not asleep yet, is the caller's."""
    block.arrived[number] = 0
    slot = (block.at - arrays.params.at_blocks) // BlockSlot.WORDS
    first = arrays.params.at_warps + slot * arrays.params.warps_per_block * WarpSlot.WORDS
    for index in range(arrays.params.warps_per_block):
        warp = WarpSlot(sm, first, index)
        waits = warp.state == w.ASLEEP and warp.reason == w.BARRIER
        if waits and warp.barrier == number and sm.words[warp.wake_at] == w.NEVER:
            block.waiting -= 1
            sleep(arrays, sm, warp, now + arrays.params.latency_barrier, w.BARRIER, now)


@jitable
def release_after_exit(arrays: EngineArrays, sm: SmState, block: BlockSlot, now: int) -> None:
    """Releases all barriers of a block if each of its warps waits at one, after a warp has ended;
    nothing otherwise."""
    if block.waiting > 0 and block.waiting >= block.warps:
        for number in range(w.BARRIERS):
            release_barrier(arrays, sm, block, number, now)


@jitable
def release_polling_warps(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Schedules all warps of this SM that wait after polling memory (`pending_wait` < 0): they
    issue no earlier than one more latency of L2 (DRAM without an L2) after `now`. Clears
    `polling_done`, which the host sets once all warps have polled (as in a grid's `sync()`) or
    nothing else can go on; so flights that wait for mbarriers are resumed as well, complete or not
    (`release_phases`)."""
    sm.polling_done = 0
    if arrays.params.phases > 0:
        release_phases(arrays, sm, now)
    ready = now + (
        arrays.params.latency_l2 if arrays.params.l2_sets > 0 else arrays.params.latency_dram
    )
    for slot in range(arrays.params.slots):
        warp = WarpSlot(sm, arrays.params.at_warps, slot)
        if warp.state == w.ASLEEP and warp.pending_wait < 0:
            warp.pending_wait = 0
            schedule_warp(arrays, sm, warp, now, max(ready, warp.earliest), w.LONG_SCOREBOARD)


# ---- blocks -------------------------------------------------------------------------------------


@jitable
def end_warp(arrays: EngineArrays, sm: SmState, warp: WarpSlot, now: int) -> None:
    """Ends a warp: charges its cycles, removes it from its scheduler's lists and counts, and makes
    its slot VACANT. If it is the last of its block, the block ends: `live_blocks` falls,
    `blocks_done` rises, `last_done` is `now`; else barriers are released if all warps left wait at
    some."""
    scheduler, block = SchedulerState(sm, warp.scheduler), BlockSlot(sm, warp.block)
    account_residency(sm, now)
    # Charges the cycles of the warp up to now; the state itself is dropped in the next line.
    set_reason(arrays, sm, warp, w.NOT_SELECTED, now)
    scheduler.warps[w.NOT_SELECTED] -= 1
    remove_ready(sm, warp)
    if warp.active:
        scheduler.active -= 1
    warp.state = w.VACANT
    sm.words[warp.wake_at] = w.NEVER
    sm.live_warps -= 1
    block.warps -= 1
    if block.warps == 0:
        sm.live_blocks -= 1
        sm.blocks_done += 1
        sm.last_done = now
    else:
        release_after_exit(arrays, sm, block, now)


@jitable
def launch_reserved(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Launches blocks that are reserved for this SM, in order, in its free slots (no live warps),
    until either run out, or until the next one can be launched only later (`next_launch`)."""
    for index in range(sm.block_slots):
        if sm.reserved_count == 0 or sm.next_launch > now:
            return
        block = BlockSlot(sm, arrays.params.at_blocks, index)
        if block.warps == 0:
            launch_block(arrays, sm, block, now)
            if sm.launched >= sm.block_slots * arrays.params.warps_per_block:
                sm.next_launch = now + arrays.params.block_cycles


@jitable
def launch_block(arrays: EngineArrays, sm: SmState, block: BlockSlot, now: int) -> None:
    """Launches the next reserved block in the free slot `block`. Removes its grid number from the
    SM's ring buffer of reserved blocks; counts it and its warps as live, after the residency so far
    has been accounted; resets the slot's barriers and mbarrier phases; and starts its warps.
    `block.launch_number`, which identifies this launch in the slot, is how many warps the SM had
    launched before; `block.grid` is the block's number in the grid. With `blocks_in_turn`, and if
    the number of its warps is a multiple of that of the schedulers, the block begins at the
    scheduler after the one at which the SM's previous block began."""
    head = sm.reserved_head
    number = sm.words[arrays.params.at_reserved + head]
    sm.reserved_head = (head + 1) % arrays.params.reserved
    sm.reserved_count -= 1
    account_residency(sm, now)
    warps = arrays.params.warps_per_block
    block.warps = warps
    block.waiting = 0
    # `launched` counts warps; its value at the first one identifies the block.
    block.launch_number, block.grid = sm.launched, number
    clear_phases(arrays, sm, block.at)
    for barrier in range(w.BARRIERS):
        block.arrived[barrier] = 0
    first = (
        arrays.params.at_warps
        + (block.at - arrays.params.at_blocks) // BlockSlot.WORDS * warps * WarpSlot.WORDS
    )
    sm.live_blocks += 1
    sm.live_warps += warps
    schedulers = arrays.params.schedulers
    turns = arrays.params.blocks_in_turn > 0 and warps % schedulers == 0
    turn = sm.launched // warps % schedulers if turns else 0
    for index in range(warps):
        slot = WarpSlot(sm, first, (turn + index) % warps)
        start_warp(arrays, sm, slot, number * warps + index, block.at, now)


@jitable
def start_warp(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, number: int, block: int, now: int
) -> None:
    """Initializes a slot for warp `number` of the launch, at the first operation of its stream; it
    sleeps as NO_INSTRUCTION and issues no earlier than `block_launch_cycles` after `now`; if its
    stream is empty, it ends at once. Its registers are ready; its scheduler, whose cycles so far
    are charged first, is the slot's number modulo the schedulers; its age is how many warps the SM
    had `launched` before, a count that this advances. `block`: the offset of its block's slot."""
    clear_record(warp)
    slot = (warp.at - arrays.params.at_warps) // WarpSlot.WORDS
    scheduler_number = slot % arrays.params.schedulers
    scheduler = SchedulerState(sm, arrays.params.at_schedulers, scheduler_number)
    base = arrays.params.at_ready + slot * arrays.params.registers
    warp.scheduler, warp.registers = scheduler.at, base
    warp.wake_at = scheduler.at + SchedulerState.wakes + slot // arrays.params.schedulers
    sm.words[warp.wake_at] = w.NEVER
    warp.units = arrays.params.at_units + scheduler_number * arrays.params.unit_count
    for register in range(arrays.params.registers):
        sm.words[base + register] = 0
    charge_scheduler(scheduler, now)
    timed_warp = TimedWarp(arrays.warps, number * arrays.params.warp_words)
    stream = WarpStream(arrays.streams, 0, timed_warp.stream)
    warp.warp = number
    warp.block = block
    warp.age = sm.launched
    sm.launched += 1
    warp.entry = stream.entries
    warp.entry_stop = stream.stop
    warp.since = now
    warp.reason = warp.counted = w.NO_INSTRUCTION
    scheduler.warps[w.NO_INSTRUCTION] += 1
    enter_block(arrays, warp)
    # `advance` makes the register copies at the start of the block, so it starts one before.
    warp.op -= 1
    advance(arrays, sm, warp, now, stalled=now, resolved=now)
    # The stream may be empty.
    if warp.state != w.VACANT:
        warp.earliest = now + arrays.params.block_launch_cycles
        sleep(arrays, sm, warp, warp.earliest, w.NO_INSTRUCTION, now)
        # A block that takes another's place is not resident until it begins; one that begins with
        # the launch is, and waits for its first instructions.
        if now > 0:
            warp.since = warp.earliest
            sm.active_warp_cycles -= arrays.params.block_launch_cycles


@jitable
def account_residency(sm: SmState, now: int) -> None:
    """Adds the cycles from `live_since` to `now`, times the live warps, to `active_warp_cycles`,
    and the cycles themselves to `active_cycles` if a warp is live; sets `live_since` to `now`.
    Called before the number of live warps changes."""
    passed = now - sm.live_since
    if passed > 0:
        sm.active_warp_cycles += passed * sm.live_warps
        if sm.live_warps > 0:
            sm.active_cycles += passed
        sm.live_since = now
