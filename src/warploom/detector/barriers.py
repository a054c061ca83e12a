"""Processes barriers of a block and of a warp in the race detector: what threads know of each other
after them.

`bar.sync 0` of all threads begins an interval of the block, for which nothing else is written.
`bar.sync 1, 64` joins the vector clocks of the threads that arrive, in the barrier's record, and
each thread that leaves joins that. `bar.warp.sync` does the same for lanes of a warp; of all lanes,
a time (`synced`) is enough.

Reports, for the tool `sync`, barriers that threads skip: they end without executing them, though
they execute the code after them. A barrier does not wait for threads that have exited, so a launch
with such a mistake ends. Threads that exit before a barrier, as CUDA allows, do not execute the
code after it (`layout.PASSED_BY_ALL`).

Source: PTX ISA, "Parallel Synchronization and Communication: bar, barrier, bar.warp.sync".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import (
    add_to_clock,
    current_clock,
    current_set,
    has_clock,
    join_clocks,
    learn_set,
)
from warploom.detector.cluster_barriers import learn_cluster_barrier
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    K_OTHER_BARRIER,
    K_SKIPPED,
    OF_ALL,
    OF_CLUSTER,
    PASSED_BY_ALL,
    SYNC,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import report
from warploom.detector.records import (
    BarrierShadow,
    DetectorEvent,
    DetectorState,
    InstructionSite,
    ResidentBlock,
    ThreadKnowledge,
    WarpKnowledge,
)
from warploom.simt.lane_counts import count_lanes, first_lane, jitable


@jitable
def report_skips(state: DetectorState, slot: ResidentBlock, block: int) -> None:
    """Reports the first thread of block number `block`, whose state is `slot`, that has
    not arrived at the barrier of all threads at which others have (`report_skip`). In lockstep this
    includes lanes of a warp of which others have arrived: hardware counts the warp whole, and PTX
    leaves such a barrier undefined. Nothing if none has arrived, all have, or without SYNC. Called
    when the next interval begins or the block has ended."""
    barrier = slot.barrier_line - 1
    if barrier < 0 or state.tools & SYNC == 0:
        return
    for warp in range(state.warps):
        own_warp = WarpKnowledge(state, slot.at + state.slot_warps, warp)
        arrived = own_warp.arrived if own_warp.interval == slot.interval else 0
        count = min(state.block_threads - (warp << 5), 32)
        missing = ((1 << count) - 1) & ~arrived
        if missing:
            own = state.current_block
            state.current_block = block
            partial = int(state.lockstep != 0 and arrived != 0)
            report_skip(state, barrier, (warp << 5) + first_lane(missing), partial)
            state.current_block = own
            return


@jitable
def report_skip(state: DetectorState, barrier: int, thread: int, partial: int) -> None:
    """Reports (K_SKIPPED) that thread `thread` of block `current_block` has skipped a barrier
    (`barrier`: its instruction), if all threads execute the code after that (PASSED_BY_ALL) and
    SYNC is on. `partial` is 1 if other lanes of its warp, which arrives as a whole, executed it.
    The current instruction and thread are as before afterwards."""
    passed = state.words[state.sites_at + barrier * InstructionSite.WORDS] & PASSED_BY_ALL
    if state.tools & SYNC and passed:
        instruction, current = state.current_instruction, state.current_thread
        state.current_instruction, state.current_thread = barrier, thread
        # No other instruction or thread (-1), and no address or size.
        report(state, K_SKIPPED, -1, -1, 0, 0, partial)
        state.current_instruction, state.current_thread = instruction, current


@jitable
def barrier_at(state: DetectorState, number: int) -> int:
    """Returns the index in the state of the record of named barrier `number` of the current block:
    a head, then two vector clocks, for even and odd generations."""
    return int(
        state.current_slot
        + state.slot_barriers
        + number * (BarrierShadow.WORDS + 2 * state.clock_words)
    )


@jitable
def arrive_at_barrier(state: DetectorState, event: DetectorEvent, waits: int) -> None:
    """Processes the arrival of an event's lanes at `bar.sync` (`waits` 1: they are marked as
    waiting, and `leave_barrier` is called at their next event) or `bar.arrive` (0). If barriers are
    `aligned`, a `bar.sync` of all threads (`count` 0, or 32 for each warp or more) is counted by
    `pass_aligned_barrier` and nothing else. Else counts the arrivals (at a barrier of some threads,
    32 in lockstep; the first of a generation clears its record), checks a barrier of `count` 0
    (`check_barrier_line`) and advances the warp's time. With `exact` also adds what each lane knows
    to the block, or to the record of a barrier of some threads."""
    warp, lanes, awaited = event.warp, event.lanes, event.count
    own_warp = WarpKnowledge(state, state.current_slot + state.slot_warps, warp)
    all_threads = awaited == 0 or awaited >= state.warps * 32
    left = lanes
    if all_threads and waits and state.aligned:
        pass_aligned_barrier(event, own_warp)
        return
    if all_threads:
        record_arrivals(state, warp, lanes)
    if state.exact == 0:
        # Nothing is joined without vector clocks: it is enough that the lanes wait.
        own_warp.waiting |= lanes * waits
        left = 0
    # Two generations are kept, by parity: threads of the last one may still have to leave, and to
    # read its record, while those of the next one arrive. A thread of the generation before that,
    # with no event since, reads the record of the present one. It learns no less from that: warps
    # that use the barrier again are ordered after one that has left it, and know what that knew.
    # It may learn more, so that a race of its next accesses with theirs is missed.
    if not all_threads and BarrierShadow(state, barrier_at(state, event.number)).arrived == 0:
        clear_generation(state, BarrierShadow(state, barrier_at(state, event.number)))
    while left:
        set_current_thread(state, (warp << 5) + first_lane(left))
        left &= left - 1
        if all_threads:
            arrive_at_block_barrier(state)
        else:
            arrive_at_named_barrier(state, event.number)
        if waits:
            own_warp.waiting |= 1 << (state.current_thread & 31)
            ThreadKnowledge(state, state.current_lane_at).waits = 1 + (
                OF_ALL if all_threads else event.number
            )
    if awaited == 0:
        check_barrier_line(state, event)
    if not all_threads:
        # In lockstep a warp arrives as a whole, whichever lanes are on.
        arrived = 32 if state.lockstep else count_lanes(lanes)
        count_named_arrivals(
            BarrierShadow(state, barrier_at(state, event.number)), arrived, awaited
        )
    own_warp.time += 1


@jitable
def pass_aligned_barrier(event: DetectorEvent, own_warp: WarpKnowledge) -> None:
    """Processes a barrier that all threads of the block execute (`aligned`): collects the lanes of
    the warp that have arrived. When all live lanes have, counts the barrier as passed, which begins
    the warp's next interval."""
    own_warp.arrived |= event.lanes
    if own_warp.arrived == event.existing:
        own_warp.arrived = 0
        own_warp.passed += 1


@jitable
def record_arrivals(state: DetectorState, warp: int, lanes: int) -> None:
    """Adds lanes of a warp (not 0) to those that have arrived at the barrier of all threads in this
    interval (`arrived`, emptied first if of an earlier one), which `report_skips` and
    `leave_barrier` read. The first lane's thread becomes the current one."""
    set_current_thread(state, (warp << 5) + first_lane(lanes))
    own_warp = WarpKnowledge(state, state.current_warp_at)
    if own_warp.interval != state.current_interval:
        own_warp.interval = state.current_interval
        own_warp.arrived = 0
    own_warp.arrived |= lanes


@jitable
def check_barrier_line(state: DetectorState, event: DetectorEvent) -> None:
    """Records the instruction of a barrier of all threads for the first lanes that arrive; for
    later ones at another instruction, sets `not_aligned`, and reports it (SYNC) if that is in
    another source line."""
    block = ResidentBlock(state, state.current_slot)
    recorded = block.barrier_line
    if recorded == 0:
        block.barrier_line = event.instruction + 1
        return
    if recorded - 1 == event.instruction:
        return
    state.not_aligned = 1
    line = InstructionSite(state, state.sites_at, event.instruction).line
    if state.tools & SYNC and InstructionSite(state, state.sites_at, recorded - 1).line != line:
        state.current_instruction = event.instruction
        # No other thread (-1), and no address, size or detail.
        report(state, K_OTHER_BARRIER, recorded - 1, -1, 0, 0, 0)


@jitable
def arrive_at_block_barrier(state: DetectorState) -> None:
    """Processes the arrival of the current thread at a barrier of all threads: stores the interval
    in which it has arrived (`generation`). Adds what it knows of other blocks to `next_set` of the
    block, and what it knows of agents to the words after `block_agent_words`; `begin_interval`
    makes both known to all threads. Knowledge of the block's own threads is not needed: the
    interval orders their accesses."""
    block = ResidentBlock(state, state.current_slot)
    holder = ThreadKnowledge(state, state.current_holder_at)
    ThreadKnowledge(state, state.current_lane_at).generation = state.current_interval
    if holder.set_stamp == state.current_interval + 1:
        block.next_set = join_sets(state, block.next_set, current_set(state))
    if holder.agent_stamp:
        join_agent_words(
            state, block_agent_words(state) + state.agents, current_clock(state) + state.threads
        )


@jitable
def arrive_at_named_barrier(state: DetectorState, number: int) -> None:
    """Adds what the current thread knows to the record of a barrier of some threads: to the clock
    and block set of the present generation, whose number is stored in `generation` for
    `leave_barrier`."""
    barrier = BarrierShadow(state, barrier_at(state, number))
    generation = barrier.generation
    ThreadKnowledge(state, state.current_lane_at).generation = generation
    add_to_clock(state, barrier.at + BarrierShadow.WORDS + (generation & 1) * state.clock_words)
    set_at = barrier.at + BarrierShadow.set + (generation & 1)
    state.words[set_at] = join_sets(state, state.words[set_at], current_set(state))


@jitable
def count_named_arrivals(barrier: BarrierShadow, arrived: int, awaited: int) -> None:
    """Counts `arrived` threads at a barrier of some threads. When `awaited` have arrived, sets the
    count to 0 and begins the next generation."""
    barrier.arrived += arrived
    if barrier.arrived >= awaited:
        barrier.arrived = 0
        barrier.generation += 1


@jitable
def clear_generation(state: DetectorState, barrier: BarrierShadow) -> None:
    """Clears the clock and block set of the present generation in a barrier's record: an earlier
    generation of the same parity has left its values there."""
    odd = barrier.generation & 1
    barrier.set[odd] = 0
    clock = barrier.at + BarrierShadow.WORDS + odd * state.clock_words
    for word in range(state.clock_words):
        state.words[clock + word] = 0


@jitable
def leave_barrier(state: DetectorState, warp: int, lanes: int) -> None:
    """Lets lanes of a warp that waited at a barrier (`waiting`) continue, at their next event. The
    first lane to leave the barrier of all threads, at which it arrived in the present interval,
    begins the block's next interval. With `exact`, a lane that leaves a barrier of some threads, or
    of the cluster, learns what the other threads have added to that barrier."""
    own_warp = WarpKnowledge(state, state.current_slot + state.slot_warps, warp)
    left = own_warp.waiting & lanes
    own_warp.waiting &= ~lanes
    if state.exact == 0:
        interval = ResidentBlock(state, state.current_slot).interval
        # The first warp to leave begins the interval; the others find it begun.
        if own_warp.interval == interval and own_warp.arrived & left:
            begin_interval(state)
        return
    while left:
        set_current_thread(state, (warp << 5) + first_lane(left))
        left &= left - 1
        barrier = ThreadKnowledge(state, state.current_lane_at).waits - 1
        generation = ThreadKnowledge(state, state.current_lane_at).generation
        if barrier == OF_ALL:
            if generation == state.current_interval:
                begin_interval(state)
        elif barrier == OF_CLUSTER:
            learn_cluster_barrier(state, generation)
        else:
            barrier_record = BarrierShadow(state, barrier_at(state, barrier))
            join_clocks(
                state,
                current_clock(state),
                barrier_record.at + BarrierShadow.WORDS + (generation & 1) * state.clock_words,
            )
            learn_set(state, barrier_record.set[generation & 1])


@jitable
def begin_interval(state: DetectorState) -> None:
    """Begins the block's next interval (stretch between barriers of all threads): reports barriers
    that threads have skipped, forgets the barrier's instruction (`barrier_line`), and, with
    `exact`, makes known to all threads what any of them knew of other blocks and of agents on
    arrival."""
    block = ResidentBlock(state, state.current_slot)
    report_skips(state, block, state.current_block)
    block.interval += 1
    block.barrier_line = 0
    if state.exact == 0:
        return
    # What any thread knew of other blocks before the barrier, all threads know after it.
    block.set = join_sets(state, block.set, block.next_set)
    block.next_set = 0
    join_agent_words(state, block_agent_words(state), block_agent_words(state) + state.agents)


@jitable
def sync_warp(state: DetectorState, event: DetectorEvent, masks: Any) -> None:
    """Processes `bar.warp.sync`: splits the event's lanes into groups (the lowest lane in none yet,
    and those in none yet that its mask in `masks` names), and joins what each group knows
    (`join_lanes`). For each group, passes to `report_skip` the first live lane that the mask names
    and that does not execute the barrier, except in lockstep."""
    left = event.lanes
    while left:
        named, lane = masks[first_lane(left)], left & -left
        # A lane that the mask names, and that does not execute the barrier, has skipped it.
        missing = named & event.existing & ~event.lanes
        if missing and state.lockstep == 0:
            report_skip(state, event.instruction, (event.warp << 5) + first_lane(missing), 0)
        join_lanes(state, event, named & left | lane, int(event.existing & ~named == 0))
        left &= ~(named | lane)


@jitable
def join_lanes(state: DetectorState, event: DetectorEvent, lanes: int, all_lanes: int) -> None:
    """Lets each of the lanes know what any of them knows (joins their clocks and block sets), and
    advances the warp's time. If they are all live lanes of the warp (`all_lanes`), `synced` becomes
    that time; nothing is joined then if none knows more than barriers and warps imply
    (`any_clock`)."""
    first_thread = event.warp << 5
    if all_lanes and not any_clock(state, first_thread, lanes):
        set_current_thread(state, first_thread)
        WarpKnowledge(state, state.current_warp_at).time += 1
        WarpKnowledge(state, state.current_warp_at).synced = WarpKnowledge(
            state, state.current_warp_at
        ).time
        return
    # A scratch record before those of the barriers.
    barrier = BarrierShadow(
        state, barrier_at(state, 0) - (BarrierShadow.WORDS + 2 * state.clock_words)
    )
    for word in range(BarrierShadow.WORDS + state.clock_words):
        state.words[barrier.at + word] = 0
    # First collects what all lanes know in the scratch record, then gives each lane the result.
    for part in range(2):
        left = lanes
        while left:
            set_current_thread(state, first_thread + first_lane(left))
            left &= left - 1
            if part == 0:
                add_to_clock(state, barrier.at + BarrierShadow.WORDS)
                barrier.set[0] = join_sets(state, barrier.set[0], current_set(state))
            else:
                join_clocks(state, current_clock(state), barrier.at + BarrierShadow.WORDS)
                learn_set(state, barrier.set[0])
    WarpKnowledge(state, state.current_warp_at).time += 1
    if all_lanes:
        WarpKnowledge(state, state.current_warp_at).synced = WarpKnowledge(
            state, state.current_warp_at
        ).time


@jitable
def any_clock(state: DetectorState, first_thread: int, lanes: int) -> int:
    """Returns whether a lane in the mask `lanes` knows more than follows from barriers and warps:
    it has a valid vector clock or block set; never without `exact`. `first_thread` is the thread of
    the warp's lane 0."""
    if state.exact == 0:
        return 0
    while lanes:
        set_current_thread(state, first_thread + first_lane(lanes))
        lanes &= lanes - 1
        if (
            has_clock(state)
            or ThreadKnowledge(state, state.current_holder_at).set_stamp
            == state.current_interval + 1
        ):
            return 1
    return 0
