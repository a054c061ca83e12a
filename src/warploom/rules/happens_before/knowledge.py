"""What a thread knows of the accesses of its own block: who came before it, and how it learns."""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.others import joined_sets, known_of_other
from warploom.rules.happens_before.pool import take
from warploom.rules.happens_before.words import (
    AGENT,
    B_BLOCK,
    B_INTERVAL,
    B_KNOWN,
    BLOCK_AT,
    EXACT,
    K_BLOCK,
    K_INTERVAL,
    K_KNOWN,
    K_ROW,
    K_SCOPE,
    K_SYNCED,
    K_THREAD,
    K_TIME,
    L_AGENT_STAMP,
    L_KNOWN,
    L_KNOWN_STAMP,
    L_ROW_STAMP,
    LANE_WORDS,
    LOCKSTEP,
    LOW,
    ME_AGENT,
    ME_BLOCK,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_MIND_AT,
    ME_ROW_AT,
    ME_SLOT,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ME_WARP,
    ME_WARP_AT,
    ROW,
    SLOT_LANES,
    SLOT_ROWS,
    SLOT_WARPS,
    THREAD_BITS,
    THREADS,
    TIME_AT,
    V_SYNCED,
    V_TIME,
    WARP_WORDS,
)

WINDOW = 31
"""So many copies of an agent, from the first one unknown on, are known one by one."""


@jitable
def become(s: Any, thread: int) -> None:
    """Makes a thread of the current block the current one."""
    slot, warp = s[ME_SLOT], thread >> 5
    warp_at = slot + s[SLOT_WARPS] + warp * WARP_WORDS
    s[ME_INTERVAL] = s[slot + B_INTERVAL]
    s[ME_WARP] = warp
    s[ME_WARP_AT] = warp_at
    s[ME_SYNCED] = s[warp_at + V_SYNCED]
    become_lane(s, thread)


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
    thread, time = second & THREAD_BITS, second >> TIME_AT
    if first >> BLOCK_AT != s[ME_BLOCK] + 1:
        if s[EXACT] == 0 or thread & AGENT:
            return 0
        return knows_of_others(s, first >> BLOCK_AT, first & LOW, thread, time)
    if thread & AGENT:
        return knows_copy(agent_known(s, thread & ~AGENT), time)
    if first & LOW < s[ME_INTERVAL] or thread == s[ME_THREAD]:
        return 1
    if thread >> 5 == s[ME_WARP] and time < s[ME_SYNCED]:
        return 1
    if s[EXACT] == 0 or s[s[ME_MIND_AT] + L_ROW_STAMP] != s[ME_INTERVAL] + 1:
        return 0
    return int(time < s[s[ME_ROW_AT] + thread])


@jitable
def knows_of_others(s: Any, block: int, interval: int, thread: int, time: int) -> int:
    """Returns whether the current thread knows of an access of another block."""
    if known_of_other(s, s[s[ME_SLOT] + B_KNOWN], block, interval, thread, time):
        return 1
    mind = s[ME_MIND_AT]
    if s[mind + L_KNOWN_STAMP] != s[ME_INTERVAL] + 1:
        return 0
    return known_of_other(s, s[mind + L_KNOWN], block, interval, thread, time)


# ---- agents -------------------------------------------------------------------------------------


@jitable
def knows_copy(word: int, copy: int) -> int:
    """Returns whether a copy is among those that `word` says are known: all before its low half,
    and of those from there on the bits of its high half."""
    ahead = copy - (word & LOW)
    if ahead < 0:
        return 1
    return int(ahead < WINDOW and (word >> 32) >> ahead & 1)


@jitable
def copies_of_both(a: int, b: int) -> int:
    """Returns what two such words know together."""
    if a & LOW < b & LOW:
        a, b = b, a
    bound = a & LOW
    behind = bound - (b & LOW)
    known = a >> 32
    if behind < WINDOW:
        known |= (b >> 32) >> behind
    while known & 1:
        known >>= 1
        bound += 1
    return known << 32 | bound


@jitable
def one_copy(copy: int) -> int:
    """Returns the word that knows of one copy alone, as far as a word can: of those more than a
    window old, it knows of those before as well."""
    if copy < WINDOW:
        return (1 << copy) << 32 if copy else 1
    return 1 << 62 | (copy - WINDOW + 1)


@jitable
def agents_base(s: Any) -> int:
    """Returns where the words begin that all threads of the current block know of agents."""
    return int(s[ME_SLOT] + s[SLOT_ROWS] + s[THREADS] * s[ROW])


@jitable
def agent_known(s: Any, thread: int) -> int:
    """Returns the word of what the current thread knows of a thread's agent."""
    word = s[agents_base(s) + thread]
    if s[s[ME_MIND_AT] + L_AGENT_STAMP]:
        word = copies_of_both(word, s[s[ME_ROW_AT] + s[THREADS] + thread])
    return int(word)


# ---- rows ---------------------------------------------------------------------------------------


@jitable
def row_of_mind(s: Any) -> int:
    """Returns where the current thread's row begins, which holds for this interval then."""
    mind, row, threads = s[ME_MIND_AT], s[ME_ROW_AT], s[THREADS]
    if s[mind + L_ROW_STAMP] != s[ME_INTERVAL] + 1:
        s[mind + L_ROW_STAMP] = s[ME_INTERVAL] + 1
        for thread in range(threads):
            s[row + thread] = 0
    if s[ROW] > threads and s[mind + L_AGENT_STAMP] == 0:
        s[mind + L_AGENT_STAMP] = 1
        for thread in range(threads, s[ROW]):
            s[row + thread] = 0
    return int(row)


@jitable
def join_rows(s: Any, to: int, source: int) -> None:
    """Adds to a row what another knows."""
    threads = s[THREADS]
    for thread in range(threads):
        if s[source + thread] > s[to + thread]:
            s[to + thread] = s[source + thread]
    for thread in range(threads, s[ROW]):
        if s[source + thread]:
            s[to + thread] = copies_of_both(s[to + thread], s[source + thread])


@jitable
def has_row(s: Any) -> int:
    """Returns whether the current thread knows more than barriers and warps say."""
    mind = s[ME_MIND_AT]
    return int(s[mind + L_ROW_STAMP] == s[ME_INTERVAL] + 1 or s[mind + L_AGENT_STAMP] != 0)


@jitable
def known_set(s: Any) -> int:
    """Returns the set of what the current thread knows of other blocks."""
    mind, known = s[ME_MIND_AT], s[s[ME_SLOT] + B_KNOWN]
    if s[mind + L_KNOWN_STAMP] != s[ME_INTERVAL] + 1:
        return int(known)
    return joined_sets(s, known, s[mind + L_KNOWN])


@jitable
def learn_set(s: Any, added: int) -> None:
    """Adds a set to what the current thread knows of other blocks."""
    if added == 0:
        return
    mind = s[ME_MIND_AT]
    s[mind + L_KNOWN] = joined_sets(s, known_set(s), added)
    s[mind + L_KNOWN_STAMP] = s[ME_INTERVAL] + 1


@jitable
def add_to_row(s: Any, row: int) -> None:
    """Adds to a row all that the current thread knows of its block, itself among it."""
    if has_row(s):
        join_rows(s, row, row_of_mind(s))
    first = s[ME_WARP] << 5
    for thread in range(first, first + 32):
        s[row + thread] = max(s[row + thread], s[ME_SYNCED])
    s[row + s[ME_THREAD]] = max(s[row + s[ME_THREAD]], s[ME_TIME] + 1)


# ---- releases -----------------------------------------------------------------------------------


@jitable
def note_release(s: Any, at: int, scope: int) -> None:
    """Writes at `at` what the current thread knows now."""
    row = 0
    if has_row(s):
        row = take(s, s[ROW])
        if row:
            join_rows(s, row, row_of_mind(s))
    s[at + K_BLOCK] = s[s[ME_SLOT] + B_BLOCK]
    s[at + K_INTERVAL] = s[ME_INTERVAL]
    s[at + K_THREAD] = s[ME_THREAD]
    s[at + K_TIME] = s[ME_TIME] + 1
    s[at + K_SYNCED] = s[ME_SYNCED]
    s[at + K_ROW] = row
    s[at + K_KNOWN] = known_set(s)
    s[at + K_SCOPE] = scope


@jitable
def learn_release(s: Any, at: int) -> None:
    """The current thread knows from now on what a release at `at` knew. Who knows of the release
    itself knows that already."""
    first = s[at + K_BLOCK] << BLOCK_AT | s[at + K_INTERVAL]
    if is_ordered(s, first, s[at + K_TIME] - 1 << TIME_AT | s[at + K_THREAD]):
        return
    if s[at + K_BLOCK] != s[ME_BLOCK] + 1:
        learn_set(s, set_with_release(s, at))
        return
    learn_set(s, s[at + K_KNOWN])
    if s[at + K_INTERVAL] == s[ME_INTERVAL]:
        row, first = row_of_mind(s), s[at + K_THREAD] >> 5 << 5
        for thread in range(first, first + 32):
            s[row + thread] = max(s[row + thread], s[at + K_SYNCED])
        s[row + s[at + K_THREAD]] = max(s[row + s[at + K_THREAD]], s[at + K_TIME])
        if s[at + K_ROW]:
            join_rows(s, row, s[at + K_ROW])


@jitable
def set_with_release(s: Any, at: int) -> int:
    """Returns the set of what a release knew of its own block and of others."""
    own = take(s, 7)
    if own == 0:
        return 0
    s[own] = 1
    s[own + 1] = s[at + K_BLOCK]
    s[own + 2] = s[at + K_INTERVAL]
    s[own + 3] = s[at + K_ROW]
    s[own + 4] = s[at + K_THREAD]
    s[own + 5] = s[at + K_TIME]
    s[own + 6] = s[at + K_SYNCED]
    return joined_sets(s, s[at + K_KNOWN], own)
