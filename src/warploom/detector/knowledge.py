"""Keeps who the current thread is, and which accesses before its own it knows of."""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agent_known, agent_of, begun_by, knows_copy
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    B_INTERVAL,
    B_KNOWN,
    BLOCK_AT,
    COPIES_OF_THREAD,
    EXACT,
    GLOBAL,
    L_KNOWN,
    L_KNOWN_STAMP,
    L_ROW_STAMP,
    LANE_WORDS,
    LOADS_OF_WARP,
    LOCKSTEP,
    LOW,
    ME_AGENT,
    ME_BLOCK,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_MIND_AT,
    ME_ROW_AT,
    ME_SLOT,
    ME_SPACE,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ME_WARP,
    ME_WARP_AT,
    ROW,
    SLOT_LANES,
    SLOT_ROWS,
    SLOT_WARPS,
    TIME_AT,
    TOGETHER,
    V_LOADED,
    V_PASSED,
    V_STORED,
    V_SYNCED,
    V_TIME,
    WARP_WORDS,
    WHO_BITS,
    WORK_OF_THREAD,
)
from warploom.detector.other_blocks import known_of_other
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import jitable


@jitable
def become(s: Any, thread: int) -> None:
    """Makes a thread of the current block the current one."""
    slot, warp = s[ME_SLOT], thread >> 5
    warp_at = slot + s[SLOT_WARPS] + warp * WARP_WORDS
    s[ME_INTERVAL] = interval_of(s, slot, warp_at)
    s[ME_WARP] = warp
    s[ME_WARP_AT] = warp_at
    s[ME_SYNCED] = s[warp_at + V_SYNCED]
    become_lane(s, thread)


@jitable
def interval_of(s: Any, slot: int, warp_at: int) -> int:
    """Return the interval in which a warp of a block is, from where their words begin."""
    return int(s[warp_at + V_PASSED] if s[TOGETHER] else s[slot + B_INTERVAL])


@jitable
def become_lane(s: Any, thread: int) -> None:
    """Makes another thread of the current one's warp the current one."""
    slot, mind = s[ME_SLOT], thread
    if s[LOCKSTEP]:
        mind = thread >> 5 << 5
    s[ME_TIME] = s[s[ME_WARP_AT] + V_TIME]
    s[ME_THREAD] = thread
    s[ME_LANE_AT] = slot + s[SLOT_LANES] + thread * LANE_WORDS
    s[ME_MIND_AT] = slot + s[SLOT_LANES] + mind * LANE_WORDS
    s[ME_ROW_AT] = slot + s[SLOT_ROWS] + mind * s[ROW]
    s[ME_AGENT] = 0


@jitable
def is_ordered(s: Any, first: int, second: int) -> int:
    """Returns whether the current thread knows of the access with these two words of a record."""
    thread, time = second & WHO_BITS, second >> TIME_AT
    if first >> BLOCK_AT != s[ME_BLOCK] + 1:
        if s[ME_SPACE] != GLOBAL and not is_peer(s, first >> BLOCK_AT):
            return 1  # of an earlier block, whose memory was there
        if s[EXACT] == 0:
            return 0
        return knows_of_others(s, first >> BLOCK_AT, first & LOW, thread, time)
    if thread & AGENT:
        return knows_agent(s, thread, time)
    if first & LOW < s[ME_INTERVAL] or thread == s[ME_THREAD]:
        return 1
    if thread >> 5 == s[ME_WARP] and time < s[ME_SYNCED]:
        return 1
    if s[EXACT] == 0 or s[s[ME_MIND_AT] + L_ROW_STAMP] != s[ME_INTERVAL] + 1:
        return 0
    return int(time < s[s[ME_ROW_AT] + thread])


@jitable
def knows_agent(s: Any, who: int, time: int) -> int:
    """Returns whether the current thread, or its agent, knows of an access of an agent of its
    block. A thread's tensor core works in the order in which it is given work (PTX ISA, "Pipelined
    tcgen05 Instructions"), that of another as far as a fence has passed on; a warp knows what it
    has waited for."""
    kind, thread = who >> AGENT_KIND_AT, who & AGENT - 1
    if knows_copy(agent_known(s, agent_of(s, who)), time):
        return 1
    if kind == COPIES_OF_THREAD:
        return 0
    if kind == WORK_OF_THREAD:
        if s[ME_AGENT] >> AGENT_KIND_AT != WORK_OF_THREAD:
            return 0
        begun = knows_copy(agent_known(s, begun_by(s, thread)), time)
        return int(thread == s[ME_THREAD] or begun != 0)
    waited = s[ME_WARP_AT] + (V_LOADED if kind == LOADS_OF_WARP else V_STORED)
    return int(thread >> 5 == s[ME_WARP] and time < s[waited])


@jitable
def knows_of_others(s: Any, block: int, interval: int, thread: int, time: int) -> int:
    """Returns whether the current thread knows of an access of another block."""
    if known_of_other(s, s[s[ME_SLOT] + B_KNOWN], block, interval, thread, time):
        return 1
    mind = s[ME_MIND_AT]
    if s[mind + L_KNOWN_STAMP] != s[ME_INTERVAL] + 1:
        return 0
    return known_of_other(s, s[mind + L_KNOWN], block, interval, thread, time)
