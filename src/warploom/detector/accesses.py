"""Checks and records an access of a warp in the race detector: by runs of lanes if these are few,
else lane by lane.

    ld.global.f32 [a + 4 * tid]          one contiguous run of 32 lanes
    ld.global.f32 [a + 12 * tid]         one strided run
    ld.global.f32 [a + 4 * idx[tid]]     32 lanes, each in its own cell

Accesses that only agents make (copies of tensors, `tcgen05`, textures) are recorded by `tensor`.
"""

from __future__ import annotations

from typing import Any

from warploom.cost.atomics import lane_order
from warploom.detector.bounds import allocation_of_range, check_bounds
from warploom.detector.copy_completion import is_mbarrier, operate_mbarrier, signal_and_count_copy
from warploom.detector.knowledge import set_current_lane, set_current_thread
from warploom.detector.launches import block_has_waited
from warploom.detector.layout import (
    AGENT,
    ARRIVES,
    ASYNC,
    ATOMIC,
    BULK,
    COMPARES,
    COMPLETES,
    COPIES,
    GLOBAL,
    INIT,
    LOAD,
    MBARRIER,
    MEM,
    MOST_STRIDE,
    RACE,
    RELEASES,
    SHARED,
    STORE,
    STRONG,
)
from warploom.detector.lone_lanes import prefetch_records, record_lone_lane
from warploom.detector.memory_words import check_words, check_written, record_in_lines
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    ThreadKnowledge,
    TrackedAllocation,
    WarpKnowledge,
)
from warploom.detector.releases import acquire_by_read, release_by_write
from warploom.detector.shared_memory_owners import NO_BLOCK, select_memory, shared_key
from warploom.detector.touched import record_touched_lane
from warploom.simt.lane_counts import ALL_LANES, count_lanes, first_lane, jitable, last_lane
from warploom.simt.schedule_layout import Plan

MBARRIER_BYTES = 8
"""Bytes of an mbarrier; bulk copies move 16 at a time, so a store of 8 by one signals an
mbarrier."""

WORD = 4
"""Lanes of this many bytes and more may be missing in a run: a bit for each word shows which are
there."""

MOST_LANE_RUNS = 8
"""An access in more runs than this is recorded lane by lane."""


@jitable
def check_access(
    state: DetectorState, event: DetectorEvent, plan: Plan, memory: Any, addresses: Any, data: Any
) -> int:
    """Checks and records the access of a warp (an event): by runs of evenly spaced lanes
    (`record_runs`), or lane by lane (`record_lanes`). It goes by runs if the access is no atomic,
    and of global or shared memory; if its instruction has no flag but COPIES, that is, it is weak
    and no agent's; and if all threads of the block know that the previous launch has ended. With
    `exact` advances the warp's time if the instruction is strong, releases, or signals an mbarrier.
    `plan` has the schedule's words, `memory` the host's bytes, `data` the operands of all lanes.
    Returns the mask of lanes that may access memory: with MEM those that `record_runs` or
    `record_lanes` returns, else all of the event's."""
    lanes = event.lanes
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    state.current_space, state.current_size = event.space, event.size
    set_current_thread(state, event.warp << 5)
    weak = event.op != ATOMIC and flags & ~COPIES == 0
    if weak and event.space <= SHARED and block_has_waited(state):
        admitted = record_runs(state, event, plan, memory, addresses, data)
    else:
        admitted = record_lanes(state, event, plan, memory, addresses, data, lanes)
    # A new time: a thread that synchronizes with this access does not know later ones of the warp.
    if flags & (RELEASES | STRONG | ARRIVES | COMPLETES) and state.exact:
        WarpKnowledge(state, state.current_warp_at).time += 1
    return admitted if state.tools & MEM else lanes


@jitable
def record_runs(
    state: DetectorState, event: DetectorEvent, plan: Plan, memory: Any, addresses: Any, data: Any
) -> int:
    """Records a weak access of global or shared memory by runs of evenly spaced lanes: contiguous
    ones or, if these are more than MOST_LANE_RUNS, strided ones, or one that begins with the last
    lane if a full warp's addresses descend. Goes over to `record_lanes`, for all lanes, if strided
    runs are too many, too, or at the first run that is misaligned, not within one allocation, or
    stores to a CONSTANT or CLOSED one; the runs before that one stay recorded. Without `exact`,
    loads of several runs leave out redundant lanes (`without_repeats`). Returns the mask of lanes
    that may access memory: all of the event's, or what `record_lanes` returns."""
    lanes, retained, descending = event.lanes, event.lanes, 0
    heads = heads_of_contiguous_runs(addresses, lanes, event.size)
    contiguous = 1
    # More than one head: looks for lanes in fewer runs of another form.
    if heads & heads - 1:
        if state.exact == 0 and event.op == LOAD:
            # Reads of one address by many lanes are many heads; the retained ones may be few.
            retained = without_repeats(addresses, lanes)
            heads = heads_of_contiguous_runs(addresses, retained, event.size)
        if count_lanes(heads) > MOST_LANE_RUNS:
            descending = int(
                lanes == ALL_LANES and has_descending_addresses(addresses, event.size) != 0
            )
            contiguous = 0
            # One run of all lanes, whose first byte is the last lane's.
            heads = 1
            if descending == 0:
                heads = heads_of_strided_runs(addresses, retained, event.size)
    if count_lanes(heads) > MOST_LANE_RUNS:
        return int(record_lanes(state, event, plan, memory, addresses, data, lanes))
    while heads:
        following = heads & heads - 1
        # The lanes from the lowest head on, and below up to the next head.
        run = retained & -(heads & -heads)
        if following:
            run &= (following & -following) - 1
        lane, last = first_lane(heads) + 31 * descending, last_lane(run)
        steps_to_last = last - first_lane(heads)
        state.current_address = select_memory_of_access(state, event, addresses[lane])
        stride = event.size
        if steps_to_last and contiguous | descending == 0:
            stride = addresses[lane + 1] - addresses[lane]
        state.current_stride = -stride if descending else stride
        end = state.current_address + steps_to_last * stride + event.size
        allocation = TrackedAllocation(
            state, allocation_of_range(state, event, state.current_address, end)
        )
        if allocation.at < 0:
            return int(record_lanes(state, event, plan, memory, addresses, data, lanes))
        if allocation.at > 0:
            set_current_lane(state, (event.warp << 5) + lane)
            record_in_lines(
                state, event, memory, addresses, data, run >> first_lane(heads), end, allocation
            )
        heads = following
    return int(lanes)


@jitable
def without_repeats(addresses: Any, lanes: int) -> int:
    """Returns the mask `lanes` without each lane whose neighbors (one number below and above) are
    also active and load from the same address: those two make its read redundant
    (`cells.record_weak_read`)."""
    same = 0
    for lane in range(1, 32):
        same |= int(addresses[lane] == addresses[lane - 1]) << lane
    same &= lanes & lanes << 1  # as the lane before, which is among them
    return int(lanes & ~(same & same >> 1))


@jitable
def has_descending_addresses(addresses: Any, size: int) -> int:
    """Returns whether the address of each lane of a full warp is `size` bytes below that of the
    lane before."""
    differs = 0
    for lane in range(1, 32):
        differs |= addresses[lane] ^ addresses[lane - 1] - size
    return int(differs == 0)


@jitable
def heads_of_contiguous_runs(addresses: Any, lanes: int, size: int) -> int:
    """Returns a mask of the first lane of each run of active lanes that access contiguous bytes,
    `size` each. Lanes within a run may be missing, with a gap for their bytes, unless `size` is
    below a word."""
    heads, begin, before = 0, 0, -2
    for lane in range(32):
        if lanes >> lane & 1:
            # The address that lane 0 would have: equal in a contiguous run, whichever lanes are
            # missing.
            at = addresses[lane] - lane * size
            if before < 0 or at != begin or (size < WORD and before != lane - 1):
                heads |= 1 << lane
            begin, before = at, lane
    return heads


@jitable
def heads_of_strided_runs(addresses: Any, lanes: int, size: int) -> int:
    """Returns a mask of the first lane of each run of active lanes whose addresses rise by one
    stride, a multiple of `size` of at most MOST_STRIDE bytes, which the first two lanes of a run
    decide. No lane within a run is missing; a lane that fits none is a run of its own."""
    heads, stride, before = 0, 0, 0
    for lane in range(32):
        here = lanes >> lane & 1
        rise = addresses[lane] - addresses[lane - 1] if here and before else 0
        if stride == 0 and size <= rise <= MOST_STRIDE and rise % size == 0:
            stride = rise
        elif here and (stride == 0 or rise != stride):
            heads |= 1 << lane
            stride = 0
        before = here
    return heads


@jitable
def record_lanes(
    state: DetectorState,
    event: DetectorEvent,
    plan: Plan,
    memory: Any,
    addresses: Any,
    data: Any,
    lanes: int,
) -> int:
    """Records the access of the lanes in mask `lanes` one by one: an atomic in the order in which
    the machine executes its lanes (`lane_order`), others by lane number. With RACE, tries the fast
    path `record_lone_lane` first for each lane. A compare-and-swap that fails is recorded as a
    read. With neither RACE nor INIT only checks bounds. Returns the mask of lanes that
    `check_bounds` admits, and of those whose cluster lacks the block that they address: their fault
    stops the launch elsewhere."""
    # `swapped`: lanes that have written, whose values later compare-and-swaps of the event find.
    admitted, swapped, fast_allocation = 0, 0, TrackedAllocation(state, 0)
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    if state.tools & RACE:
        fast_allocation = TrackedAllocation(state, prefetch_records(state, event, addresses, lanes))
    # Packed as by `lane_order`: the first lane, and from bit 5 on the step to the next one; here 0,
    # 1.
    order = 1 << 5
    if event.op == ATOMIC:
        order = lane_order(addresses, lanes, plan, event.block)
    for step in range(32):
        lane = (order + step * (order >> 5)) % 32
        thread = (event.warp << 5) + lane
        if (
            fast_allocation.at
            and lanes >> lane & 1
            and record_lone_lane(state, event, data, addresses[lane], lane, thread, fast_allocation)
        ):
            admitted |= 1 << lane
        elif lanes >> lane & 1:
            set_current_lane(state, thread)
            state.current_address = select_memory_of_access(state, event, addresses[lane])
            if state.current_address == NO_BLOCK:
                admitted |= 1 << lane  # a fault, which stops the launch
                continue
            allocation = TrackedAllocation(state, check_bounds(state, event))
            if allocation.at >= 0:
                admitted |= 1 << lane
                if allocation.at > 0 and state.tools & (RACE | INIT):
                    writes = int(event.op != LOAD)
                    if flags & COMPARES:
                        at = state.current_base + state.current_address
                        writes = compare_succeeds(
                            event, memory, at, addresses, data, lane, swapped, order
                        )
                    swapped |= writes << lane
                    record_lane_access(
                        state, event, memory, addresses, data, lane, allocation, writes
                    )
    return int(admitted)


@jitable
def select_memory_of_access(state: DetectorState, event: DetectorEvent, address: int) -> int:
    """Selects the memory of a lane's access: of shared memory that of the block that owns it
    (`select_memory`). Returns the address in it; NO_BLOCK if the cluster has no such block. In
    other spaces selects nothing and returns the address unchanged."""
    return int(select_memory(state, event, address) if event.space == SHARED else address)


@jitable
def record_lane_access(
    state: DetectorState,
    event: DetectorEvent,
    memory: Any,
    addresses: Any,
    data: Any,
    lane: int,
    allocation: TrackedAllocation,
    writes: int,
) -> None:
    """Records the access of one lane, which is the current thread, at the current address, to
    memory that it may access. An operation on an mbarrier, or a copy's signal to one (BULK store of
    8 bytes; COMPLETES: an atomic on an mbarrier), is processed as that only. Any other is recorded
    as touched and, as its agent's if ASYNC, checked for unwritten bytes (INIT) and in shadow memory
    (RACE); with RACE and `exact` a strong one acquires if it is no store, and releases if it
    writes. `allocation` is the table row of its allocation, unused for shared memory; `writes` is 0
    for loads and for a compare-and-swap that fails."""
    at = state.current_address
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    key = at if event.space == GLOBAL else shared_key(state, at)
    completes = flags & BULK and event.op == STORE and event.size == MBARRIER_BYTES
    if flags & COMPLETES:
        completes = event.op == ATOMIC and is_mbarrier(state, key)
    if flags & MBARRIER or completes:
        word = read_host_word(memory, state.current_base + at)
        if flags & MBARRIER:
            operate_mbarrier(state, key, word, flags)
        else:
            signal_and_count_copy(state, key, word)
        return
    record_touched_lane(state, event, allocation, writes)
    if flags & ASYNC:
        state.current_agent, state.current_time = (
            AGENT,
            ThreadKnowledge(state, state.current_lane_at).copies,
        )
    if state.tools & INIT:
        check_written(state, event, flags, allocation)
    if state.tools & RACE:
        check_words(state, event, memory, addresses, data, lane, allocation, writes)
        if state.exact and flags & STRONG:
            if event.op != STORE:
                acquire_by_read(state, key, flags)
            if writes:
                release_by_write(state, key, flags, int(event.op == ATOMIC))


@jitable
def compare_succeeds(
    event: DetectorEvent,
    memory: Any,
    at: int,
    addresses: Any,
    data: Any,
    lane: int,
    swapped: int,
    order: int,
) -> int:
    """Returns whether a lane's compare-and-swap will store: its first operand, in `data`, equals
    the old value. That is in `memory` at byte `at` on the host or, if other lanes of the event have
    swapped at the same address (mask `swapped`), what the last of these in `order` (packed as by
    `lane_order`) stored."""
    size = event.size
    swapper = -1
    for step in range(32):
        compared = (order + step * (order >> 5)) % 32
        if swapped >> compared & 1 and addresses[compared] == addresses[lane]:
            swapper = compared
    for byte in range(size):
        old = memory[at + byte]
        if swapper >= 0:
            # `data` has the first operands of 32 lanes, then the new values.
            old = data[(32 + swapper) * size + byte]
        if old != data[lane * size + byte]:
            return 0
    return 1


@jitable
def read_host_word(memory: Any, address: int) -> int:
    """Returns the 64-bit little-endian word at an address of the host: signed in compiled code,
    unsigned in plain Python."""
    word = 0
    for byte in range(8):
        word |= int(memory[address + byte]) << 8 * byte
    return word
