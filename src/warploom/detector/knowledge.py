"""Holds the race detector's current thread, the one whose event is being processed, and decides
which earlier accesses it knows, that is, which happen before its next access.

Ordered are, of the same block: an access of an earlier interval, of the same thread, of the same
warp before it last synchronised, and with EXACT whatever the vector clock has. Thread 0 stores at
time 4 of warp 0 and releases; thread 40 acquires: its clock has 5 for thread 0, and 4 < 5.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agent_index, begun_index, current_agent_word, includes_copy
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    ALIGNED,
    B_INTERVAL,
    B_SET,
    BLOCK_AT,
    CLOCK_WORDS,
    COPIES_OF_THREAD,
    EXACT,
    GLOBAL,
    L_CLOCK_STAMP,
    L_SET,
    L_SET_STAMP,
    LANE_WORDS,
    LOADS_OF_WARP,
    LOCKSTEP,
    LOW,
    ME_AGENT,
    ME_BLOCK,
    ME_CLOCK_AT,
    ME_HOLDER_AT,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_SLOT,
    ME_SPACE,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ME_WARP,
    ME_WARP_AT,
    SLOT_CLOCKS,
    SLOT_LANES,
    SLOT_WARPS,
    TIME_AT,
    V_LOADED,
    V_PASSED,
    V_STORED,
    V_SYNCED,
    V_TIME,
    WARP_WORDS,
    WHO_BITS,
    WORK_OF_THREAD,
)
from warploom.detector.other_blocks import set_knows
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import jitable


@jitable
def set_current_thread(state: Any, thread: int) -> None:
    """Makes a thread of the current block the current one: writes the ME_ words of its warp
    (interval, index, last synchronisation) and of the thread itself."""
    slot, warp = state[ME_SLOT], thread >> 5
    warp_at = slot + state[SLOT_WARPS] + warp * WARP_WORDS
    state[ME_INTERVAL] = interval_of(state, slot, warp_at)
    state[ME_WARP] = warp
    state[ME_WARP_AT] = warp_at
    state[ME_SYNCED] = state[warp_at + V_SYNCED]
    set_current_lane(state, thread)


@jitable
def interval_of(state: Any, slot: int, warp_at: int) -> int:
    """Returns the interval (stretch between barriers of all threads) that a warp is in: if barriers
    are ALIGNED, how many the warp has passed, else the interval of the block at `slot`. `warp_at`
    is the index of the warp's words."""
    return int(state[warp_at + V_PASSED] if state[ALIGNED] else state[slot + B_INTERVAL])


@jitable
def set_current_lane(state: Any, thread: int) -> None:
    """Makes another thread of the current thread's warp the current one: writes the ME_ words of
    time, thread, and where its words and vector clock are (in lockstep, those of the warp's first
    lane). The thread itself acts, not its agent."""
    slot, holder = state[ME_SLOT], thread
    if state[LOCKSTEP]:
        holder = thread >> 5 << 5
    state[ME_TIME] = state[state[ME_WARP_AT] + V_TIME]
    state[ME_THREAD] = thread
    state[ME_LANE_AT] = slot + state[SLOT_LANES] + thread * LANE_WORDS
    state[ME_HOLDER_AT] = slot + state[SLOT_LANES] + holder * LANE_WORDS
    state[ME_CLOCK_AT] = slot + state[SLOT_CLOCKS] + holder * state[CLOCK_WORDS]
    state[ME_AGENT] = 0


@jitable
def is_ordered(state: Any, interval_word: int, thread_word: int) -> int:
    """Returns whether an earlier access, with this interval word and thread word (`layout`),
    happens before the current thread's next one. Of its block: it is of an earlier interval, of the
    same thread, of its warp before the last synchronisation, in its vector clock, or a known copy
    of an agent. Of another block: it is in its block set, or not of the cluster, so that it
    accessed an earlier owner of shared memory."""
    thread, time = thread_word & WHO_BITS, thread_word >> TIME_AT
    if interval_word >> BLOCK_AT != state[ME_BLOCK] + 1:
        if state[ME_SPACE] != GLOBAL and not is_peer(state, interval_word >> BLOCK_AT):
            # The slot was an earlier block's, which has ended.
            return 1  # of an earlier block, whose memory was there
        if state[EXACT] == 0:
            return 0
        return knows_other_block(
            state, interval_word >> BLOCK_AT, interval_word & LOW, thread, time
        )
    if thread & AGENT:
        return knows_agent_access(state, thread, time)
    # A barrier of all threads lies between, or program order.
    if interval_word & LOW < state[ME_INTERVAL] or thread == state[ME_THREAD]:
        return 1
    # The warp has synchronised since, which needs no vector clock.
    if thread >> 5 == state[ME_WARP] and time < state[ME_SYNCED]:
        return 1
    if state[EXACT] == 0 or state[state[ME_HOLDER_AT] + L_CLOCK_STAMP] != state[ME_INTERVAL] + 1:
        return 0
    return int(time < state[state[ME_CLOCK_AT] + thread])


@jitable
def knows_agent_access(state: Any, who: int, time: int) -> int:
    """Returns whether the current thread, or its agent, knows access number `time` of an agent of
    its block (`who`: bits of a thread word). A thread's tensor core executes in the order in which
    work is issued to it (PTX ISA, "Pipelined tcgen05 Instructions"), after other threads' work as
    far as a fence has passed that on; a warp knows the loads and stores that it has waited for."""
    kind, thread = who >> AGENT_KIND_AT, who & AGENT - 1
    if includes_copy(current_agent_word(state, agent_index(state, who)), time):
        return 1
    if kind == COPIES_OF_THREAD:
        return 0
    if kind == WORK_OF_THREAD:
        if state[ME_AGENT] >> AGENT_KIND_AT != WORK_OF_THREAD:
            return 0
        # Tensor cores of other threads: in order as far as a fence before a synchronisation has
        # passed on.
        begun = includes_copy(current_agent_word(state, begun_index(state, thread)), time)
        return int(thread == state[ME_THREAD] or begun != 0)
    waited = state[ME_WARP_AT] + (V_LOADED if kind == LOADS_OF_WARP else V_STORED)
    return int(thread >> 5 == state[ME_WARP] and time < state[waited])


@jitable
def knows_other_block(state: Any, block: int, interval: int, thread: int, time: int) -> int:
    """Returns whether the current thread knows an access of another block, number `block` - 1, by
    the block set of all threads of its block, or by its own if that is of this interval."""
    if set_knows(state, state[state[ME_SLOT] + B_SET], block, interval, thread, time):
        return 1
    holder = state[ME_HOLDER_AT]
    if state[holder + L_SET_STAMP] != state[ME_INTERVAL] + 1:
        return 0
    return set_knows(state, state[holder + L_SET], block, interval, thread, time)
