"""Waits and fences of tensor memory: `tcgen05.wait`, `tcgen05.fence`.

What one thread began there and another uses next has to be waited for, then passed on by a fence
before the threads synchronise, and taken over by a fence behind that. Source: PTX ISA, "Memory
Consistency Model for 5th generation of TensorCore operations".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import (
    FENCED,
    OF_WARP,
    agent_known,
    agent_of,
    agents_base,
    begun_by,
    copies_of_both,
    join_words,
    knows_copy,
)
from warploom.detector.clocks import known_set, row_of_mind
from warploom.detector.knowledge import become
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    AGENTS,
    BLOCK_AT,
    E_LANES,
    E_WARP,
    K_UNFENCED,
    L_WORKS,
    LOADS_OF_WARP,
    ME_ADDRESS,
    ME_AGENT,
    ME_BLOCK,
    ME_LANE_AT,
    ME_SIZE,
    ME_SLOT,
    ME_THREAD,
    ME_WARP,
    ME_WARP_AT,
    OP_AT,
    SITE_BITS,
    SLOT_AFTER,
    THREAD_BITS,
    THREADS,
    TIME_AT,
    V_LOADED,
    V_LOADS,
    V_TIME,
    WHO_BITS,
    WORK_OF_THREAD,
)
from warploom.detector.other_blocks import joined_sets, known_of_other
from warploom.detector.pool import report
from warploom.simt.lane_counts import first_lane, jitable

D_OTHER_OP, D_BEFORE, D_AFTER = 2, 4, 5
"""Where the detail of a missing fence has its parts: the ops of both accesses; which fence is
missing."""


@jitable
def words_of_warp(s: Any, warp: int) -> int:
    """Return the number, in a row, of the first word of a warp's loads and stores."""
    return int(4 * s[THREADS] + OF_WARP * warp)


@jitable
def wait_for_moves(s: Any, e: Any, stores: int) -> None:
    """Lanes of a warp wait for its loads of tensor memory, or its stores."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        warp = s[ME_WARP_AT]
        s[warp + V_LOADED + stores] = s[warp + V_LOADS + stores]
        place = row_of_mind(s) + words_of_warp(s, s[ME_WARP]) + 2 * stores
        s[place] = copies_of_both(s[place], s[warp + V_LOADED + stores])


@jitable
def fence_before(s: Any, e: Any) -> None:
    """Lanes pass a fence before they synchronise: who learns of it from then on knows what they
    have waited for as fenced, and what their tensor cores have begun."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        warp, row = s[ME_WARP_AT], row_of_mind(s)
        for stores in range(2):
            place = row + words_of_warp(s, s[ME_WARP]) + 2 * stores + FENCED
            s[place] = copies_of_both(s[place], s[warp + V_LOADED + stores])
        if s[s[ME_LANE_AT] + L_WORKS]:
            place = row + s[THREADS] + begun_by(s, s[ME_THREAD])
            s[place] = copies_of_both(s[place], s[s[ME_LANE_AT] + L_WORKS] + 1)
    s[s[ME_WARP_AT] + V_TIME] += 1


@jitable
def fence_after(s: Any, e: Any) -> None:
    """Lanes pass a fence behind a synchronisation: what their warp begins next in tensor memory is
    ordered behind what they know now."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        at = after_at(s)
        s[at] = joined_sets(s, s[at], known_set(s))
        join_words(s, at + 1, row_of_mind(s) + s[THREADS])
        if left == 0:
            join_words(s, at + 1, agents_base(s))
    s[s[ME_WARP_AT] + V_TIME] += 1


@jitable
def after_at(s: Any) -> int:
    """Return where it stands what the current warp knew at its last fence behind a
    synchronisation."""
    return int(s[ME_SLOT] + s[SLOT_AFTER] + s[ME_WARP] * (1 + s[AGENTS]))


@jitable
def check_fences(s: Any, first: int, second: int, third: int, mine: int) -> None:
    """Report an access to tensor memory that is ordered behind that of another warp, but not by the
    fences that this needs."""
    who, time, block = second & WHO_BITS, second >> TIME_AT, first >> BLOCK_AT
    own = block == s[ME_BLOCK] + 1
    if s[ME_AGENT] == 0 or who & AGENT == 0 or (own and (who & AGENT - 1) >> 5 == s[ME_WARP]):
        return
    before = int(own and is_unfenced(s, who, time) != 0)
    after = 1 - is_taken_over(s, who, time, block)
    if before or after:
        detail = mine >> OP_AT & 3 | (third >> OP_AT & 3) << D_OTHER_OP
        detail |= before << D_BEFORE | after << D_AFTER
        other = block - 1 << 32 | second & THREAD_BITS & ~AGENT
        report(s, K_UNFENCED, third & SITE_BITS, other, s[ME_ADDRESS], s[ME_SIZE], detail)


@jitable
def is_unfenced(s: Any, who: int, time: int) -> int:
    """Return whether a load or a store of another warp was waited for, but not passed on by a fence
    behind that. The commit of other work is such a fence."""
    if who >> AGENT_KIND_AT < LOADS_OF_WARP:
        return 0
    return 1 - knows_copy(agent_known(s, agent_of(s, who) + FENCED), time)


@jitable
def is_taken_over(s: Any, who: int, time: int, block: int) -> int:
    """Return whether the current warp's last fence behind a synchronisation knew of an access of an
    agent."""
    at = after_at(s)
    if block != s[ME_BLOCK] + 1:
        # An interval is not compared: agents have their own count.
        return known_of_other(s, s[at], block, 0, who, time)
    if knows_copy(s[at + 1 + agent_of(s, who)], time):
        return 1
    if who >> AGENT_KIND_AT != WORK_OF_THREAD:
        return 0
    return knows_copy(s[at + 1 + begun_by(s, who & AGENT - 1)], time)
