"""Rows: what a thread knows of each thread of its block."""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import copies_of_both
from warploom.detector.layout import (
    B_KNOWN,
    L_AGENT_STAMP,
    L_KNOWN,
    L_KNOWN_STAMP,
    L_ROW_STAMP,
    ME_BLOCK,
    ME_INTERVAL,
    ME_MIND_AT,
    ME_ROW_AT,
    ME_SLOT,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ME_WARP,
    ROW,
    S_INTERVAL,
    S_ROW,
    S_THREAD,
    THREADS,
)
from warploom.detector.other_blocks import entry_of, first_unknown, joined_sets
from warploom.simt.lane_counts import jitable


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
    join_copies(s, to, source)


@jitable
def join_copies(s: Any, to: int, source: int) -> None:
    """Add to a row what another knows of the copies of agents."""
    for thread in range(s[THREADS], s[ROW]):
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
    learn_own(s, added)
    mind = s[ME_MIND_AT]
    s[mind + L_KNOWN] = joined_sets(s, known_set(s), added)
    s[mind + L_KNOWN_STAMP] = s[ME_INTERVAL] + 1


@jitable
def learn_own(s: Any, added: int) -> None:
    """Add to the current thread's row what a set knows of its own block, which comes back from
    others."""
    entry = entry_of(s, added, s[ME_BLOCK] + 1)
    if entry == 0:
        return
    if s[entry + S_INTERVAL] == s[ME_INTERVAL]:
        row, first = row_of_mind(s), s[entry + S_THREAD] >> 5 << 5
        for thread in range(first, first + 32):
            s[row + thread] = max(s[row + thread], first_unknown(s, entry, thread))
        if s[entry + S_ROW]:
            join_rows(s, row, s[entry + S_ROW])
    elif s[ROW] > s[THREADS] and s[entry + S_ROW]:
        join_copies(s, row_of_mind(s), s[entry + S_ROW])


@jitable
def add_to_row(s: Any, row: int) -> None:
    """Adds to a row all that the current thread knows of its block, itself among it."""
    if has_row(s):
        join_rows(s, row, row_of_mind(s))
    first = s[ME_WARP] << 5
    for thread in range(first, first + 32):
        s[row + thread] = max(s[row + thread], s[ME_SYNCED])
    s[row + s[ME_THREAD]] = max(s[row + s[ME_THREAD]], s[ME_TIME] + 1)
