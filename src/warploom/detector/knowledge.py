"""Holds the race detector's current thread, the one whose event is being processed, and decides
which earlier accesses it knows, that is, which happen before its next access.

Ordered are, of the same block: an access of an earlier interval, of the same thread, of the same
warp before it last synchronized, and with `exact` whatever the vector clock has. Thread 0 stores at
time 4 of warp 0 and releases; thread 40 acquires: its clock has 5 for thread 0, and 4 < 5.
"""

from __future__ import annotations

from warploom.detector.agents import agent_index, begun_index, current_agent_word, includes_copy
from warploom.detector.layout import (
    AGENT,
    AGENT_BITS,
    AGENT_KIND_AT,
    BLOCK_AT,
    COPIES_OF_THREAD,
    GLOBAL,
    LOADS_OF_WARP,
    LOW,
    TIME_AT,
    WORK_OF_THREAD,
)
from warploom.detector.other_blocks import set_knows
from warploom.detector.records import DetectorState, ResidentBlock, ThreadKnowledge, WarpKnowledge
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import jitable


@jitable
def set_current_thread(state: DetectorState, thread: int) -> None:
    """Makes a thread of the current block the current one: writes the `current_` words of its warp
    (interval, index, last synchronization), and those of the thread itself (`set_current_lane`)."""
    slot, warp = ResidentBlock(state, state.current_slot), thread >> 5
    own_warp = WarpKnowledge(state, slot.at + state.slot_warps, warp)
    state.current_interval = interval_of(state, slot, own_warp)
    state.current_warp = warp
    state.current_warp_at = own_warp.at
    state.current_synced = own_warp.synced
    set_current_lane(state, thread)


@jitable
def interval_of(state: DetectorState, slot: ResidentBlock, own_warp: WarpKnowledge) -> int:
    """Returns the interval (stretch between barriers of all threads) that a warp is in: if barriers
    are `aligned`, how many the warp has passed, else the interval of its block (`slot`)."""
    return int(own_warp.passed if state.aligned else slot.interval)


@jitable
def set_current_lane(state: DetectorState, thread: int) -> None:
    """Makes another thread of the current thread's warp the current one. Writes the `current_`
    words of its time (the warp's) and number, of the indices of its own words and its vector clock,
    and of whether the clock is valid. In lockstep the clock is that of the warp's first lane. The
    thread itself acts, not its agent: `current_agent` becomes 0."""
    slot, holder = state.current_slot, thread
    if state.lockstep:
        holder = thread >> 5 << 5
    state.current_time = WarpKnowledge(state, state.current_warp_at).time
    state.current_thread = thread
    state.current_lane_at = slot + state.slot_lanes + thread * ThreadKnowledge.WORDS
    state.current_holder_at = slot + state.slot_lanes + holder * ThreadKnowledge.WORDS
    state.current_clock_at = slot + state.slot_clocks + holder * state.clock_words
    state.current_agent = 0


@jitable
def is_ordered(state: DetectorState, interval_word: int, thread_word: int) -> int:
    """Returns whether an earlier access, with this interval word and thread word (`layout`),
    happens before the current thread's next one. Of its block: it is of an earlier interval, of the
    same thread, of its warp before the last synchronization, in its vector clock, or a known access
    of an agent (`knows_agent_access`). Of another block: it is in a block set that the thread knows
    (with `exact`), or to shared or tensor memory from outside of the cluster, thus by an earlier
    owner of that memory."""
    thread, time = thread_word & AGENT_BITS, thread_word >> TIME_AT
    if interval_word >> BLOCK_AT != state.current_block + 1:
        if state.current_space != GLOBAL and not is_peer(state, interval_word >> BLOCK_AT):
            # The slot was an earlier block's, which has ended.
            return 1  # of an earlier block, whose memory was there
        if state.exact == 0:
            return 0
        return knows_other_block(
            state, interval_word >> BLOCK_AT, interval_word & LOW, thread, time
        )
    if thread & AGENT:
        return knows_agent_access(state, thread, time)
    # A barrier of all threads lies between, or program order.
    if interval_word & LOW < state.current_interval or thread == state.current_thread:
        return 1
    # The warp has synchronized since, which needs no vector clock.
    if thread >> 5 == state.current_warp and time < state.current_synced:
        return 1
    if (
        state.exact == 0
        or ThreadKnowledge(state, state.current_holder_at).clock_stamp != state.current_interval + 1
    ):
        return 0
    return int(time < state.words[state.current_clock_at + thread])


@jitable
def knows_agent_access(state: DetectorState, agent: int, time: int) -> int:
    """Returns whether the current thread, or its agent, knows access number `time` of an agent of
    its block (`agent`: bits of a thread word). It does if the access is in the thread's agent word
    or, for loads and stores of tensor memory by its own warp, if the warp has waited for it. If
    both are work of tensor cores, all work of its own thread is known, and of another's what had
    begun before a fence (PTX ISA, "Pipelined tcgen05 Instructions")."""
    kind, thread = agent >> AGENT_KIND_AT, agent & AGENT - 1
    if includes_copy(current_agent_word(state, agent_index(state, agent)), time):
        return 1
    if kind == COPIES_OF_THREAD:
        return 0
    if kind == WORK_OF_THREAD:
        if state.current_agent >> AGENT_KIND_AT != WORK_OF_THREAD:
            return 0
        # Tensor cores of other threads: in order as far as a fence before a synchronization has
        # passed on.
        begun = includes_copy(current_agent_word(state, begun_index(state, thread)), time)
        return int(thread == state.current_thread or begun != 0)
    waited_for = WarpKnowledge(state, state.current_warp_at).waited_for
    own_warp = thread >> 5 == state.current_warp
    return int(own_warp and time < waited_for[kind - LOADS_OF_WARP])


@jitable
def knows_other_block(
    state: DetectorState, block: int, interval: int, thread: int, time: int
) -> int:
    """Returns whether the current thread knows an access of another block, number `block` - 1, by
    `thread` at `time` of `interval`: from the block set of all threads of its block, or from its
    own if that is of this interval."""
    if set_knows(
        state, ResidentBlock(state, state.current_slot).set, block, interval, thread, time
    ):
        return 1
    holder = ThreadKnowledge(state, state.current_holder_at)
    if holder.set_stamp != state.current_interval + 1:
        return 0
    return set_knows(state, holder.set, block, interval, thread, time)
