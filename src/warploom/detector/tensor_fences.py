"""Processes waits and fences of tensor memory in the race detector: `tcgen05.wait`,
`tcgen05.fence`.

What one warp has begun there and another uses next has to be waited for, then passed on by a fence
before the threads synchronize, and taken over by a fence after that:

    warp 0   tcgen05.ld; tcgen05.wait::ld; tcgen05.fence::before_thread_sync; bar.sync 0
    warp 1   bar.sync 0; tcgen05.fence::after_thread_sync; tcgen05.st

Source: PTX ISA, "Memory Consistency Model for 5th generation of TensorCore operations".
"""

from __future__ import annotations

from warploom.detector.agents import (
    FENCED,
    OF_WARP,
    agent_index,
    begun_index,
    block_agent_words,
    current_agent_word,
    includes_copy,
    join_agent_word,
    join_agent_words,
)
from warploom.detector.clocks import current_clock, current_set
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    AGENT,
    AGENT_BITS,
    AGENT_KIND_AT,
    BLOCK_AT,
    K_UNFENCED,
    LOADS_OF_WARP,
    OP_AT,
    OP_BITS,
    SITE_BITS,
    THREAD_BITS,
    TIME_AT,
    WORK_OF_THREAD,
)
from warploom.detector.other_blocks import join_sets, set_knows
from warploom.detector.pool import report
from warploom.detector.records import DetectorEvent, DetectorState, ThreadKnowledge, WarpKnowledge
from warploom.simt.lane_counts import first_lane, jitable

D_OTHER_OP, D_BEFORE, D_AFTER = 2, 4, 5
"""Bit positions in the detail of a missing fence: the op of the other access (that of the current
one is at 0); which fences are missing."""


@jitable
def warp_words_index(state: DetectorState, warp: int) -> int:
    """Returns the index, in a vector clock, of the first agent word of a warp's loads and stores of
    tensor memory."""
    # After the words of threads and three agent words for each.
    return int(4 * state.threads + OF_WARP * warp)


@jitable
def wait_for_moves(state: DetectorState, event: DetectorEvent, stores: int) -> None:
    """Processes `tcgen05.wait`: lanes have waited for their warp's loads of tensor memory (`stores`
    0) or stores (1) so far: stores their number as `waited_for` of the warp, and adds them to what
    the lanes know (agent words)."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        warp = WarpKnowledge(state, state.current_warp_at)
        warp.waited_for[stores] = warp.begun[stores]
        agent_word = current_clock(state) + warp_words_index(state, state.current_warp) + 2 * stores
        state.words[agent_word] = join_agent_word(state.words[agent_word], warp.waited_for[stores])


@jitable
def fence_before(state: DetectorState, event: DetectorEvent) -> None:
    """Processes `tcgen05.fence::before_thread_sync`: marks in the lanes' agent words, as fenced,
    the loads and stores of tensor memory that their warp has waited for, and what their tensor
    cores have begun; threads that synchronize with the lanes later learn it. Advances the warp's
    time."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        warp, clock = WarpKnowledge(state, state.current_warp_at), current_clock(state)
        for stores in range(2):
            agent_word = clock + warp_words_index(state, state.current_warp) + 2 * stores + FENCED
            state.words[agent_word] = join_agent_word(
                state.words[agent_word], warp.waited_for[stores]
            )
        if ThreadKnowledge(state, state.current_lane_at).works:
            agent_word = clock + state.threads + begun_index(state, state.current_thread)
            state.words[agent_word] = join_agent_word(
                state.words[agent_word], ThreadKnowledge(state, state.current_lane_at).works + 1
            )
    WarpKnowledge(state, state.current_warp_at).time += 1


@jitable
def fence_after(state: DetectorState, event: DetectorEvent) -> None:
    """Processes `tcgen05.fence::after_thread_sync`: adds what the lanes know now, and what all
    threads of their block know of agents, to what their warp knows by such fences (`after_at`),
    with which `check_fences` compares what the warp begins next. Advances the warp's time."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        at = after_at(state)
        state.words[at] = join_sets(state, state.words[at], current_set(state))
        join_agent_words(state, at + 1, current_clock(state) + state.threads)
        if left == 0:
            join_agent_words(state, at + 1, block_agent_words(state))
    WarpKnowledge(state, state.current_warp_at).time += 1


@jitable
def after_at(state: DetectorState) -> int:
    """Returns the index in the state of what the current warp knows by its
    `tcgen05.fence::after_thread_sync` so far: a block set, then agent words."""
    return int(state.current_slot + state.slot_after + state.current_warp * (1 + state.agents))


@jitable
def check_fences(
    state: DetectorState, interval_word: int, thread_word: int, access_word: int, own_access: int
) -> None:
    """Reports an access to tensor memory that is ordered after that of another warp (the caller has
    found that), but without `tcgen05.fence` before the synchronization, after it, or both
    (K_UNFENCED); the fence before it is only demanded within a block. Nothing if one of the two is
    no agent's, or both are of one warp."""
    agent, time, block = thread_word & AGENT_BITS, thread_word >> TIME_AT, interval_word >> BLOCK_AT
    same_block = block == state.current_block + 1
    if (
        state.current_agent == 0
        or agent & AGENT == 0
        or (same_block and (agent & AGENT - 1) >> 5 == state.current_warp)
    ):
        return
    before = int(same_block and is_unfenced(state, agent, time) != 0)
    after = 1 - is_taken_over(state, agent, time, block)
    if before or after:
        detail = own_access >> OP_AT & OP_BITS | (access_word >> OP_AT & OP_BITS) << D_OTHER_OP
        detail |= before << D_BEFORE | after << D_AFTER
        other_agent = block - 1 << 32 | thread_word & THREAD_BITS & ~AGENT
        report(
            state,
            K_UNFENCED,
            access_word & SITE_BITS,
            other_agent,
            state.current_address,
            state.current_size,
            detail,
        )


@jitable
def is_unfenced(state: DetectorState, agent: int, time: int) -> int:
    """Returns whether the current thread does not know that load or store number `time` of tensor
    memory by another warp's agent `agent` was followed by a `tcgen05.fence::before_thread_sync`; 0
    for other work, whose commit is such a fence."""
    if agent >> AGENT_KIND_AT < LOADS_OF_WARP:
        return 0
    return 1 - includes_copy(current_agent_word(state, agent_index(state, agent) + FENCED), time)


@jitable
def is_taken_over(state: DetectorState, agent: int, time: int, block: int) -> int:
    """Returns whether the current warp knew, at its last `tcgen05.fence::after_thread_sync`, that
    access number `time` of agent `agent` was complete. `block` is 1 plus the number of the agent's
    block, as in interval words. For work of a tensor core in the current block, it is enough that
    the warp knew of a `tcgen05.fence::before_thread_sync` after it had begun; for other blocks, the
    access must be in the warp's block set (`set_knows`)."""
    at = after_at(state)
    if block != state.current_block + 1:
        # The interval is 0, since it is not compared: agents have their own count.
        return set_knows(state, state.words[at], block, 0, agent, time)
    if includes_copy(state.words[at + 1 + agent_index(state, agent)], time):
        return 1
    if agent >> AGENT_KIND_AT != WORK_OF_THREAD:
        return 0
    return includes_copy(state.words[at + 1 + begun_index(state, agent & AGENT - 1)], time)
