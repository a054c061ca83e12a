"""Notes of what a thread knew when it released, and how another learns that."""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agents_base, join_words
from warploom.detector.clocks import has_row, join_rows, known_set, learn_set, row_of_mind
from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    B_BLOCK,
    BLOCK_AT,
    K_BLOCK,
    K_INTERVAL,
    K_KNOWN,
    K_ROW,
    K_SCOPE,
    K_SYNCED,
    K_THREAD,
    K_TIME,
    ME_BLOCK,
    ME_INTERVAL,
    ME_SLOT,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ROW,
    THREADS,
    TIME_AT,
)
from warploom.detector.other_blocks import joined_sets
from warploom.detector.pool import take
from warploom.simt.lane_counts import jitable


@jitable
def note_release(s: Any, at: int, scope: int) -> None:
    """Writes at `at` what the current thread knows now."""
    row = 0
    if has_row(s) or s[ROW] > s[THREADS]:
        row = take(s, s[ROW])
        if row:
            join_rows(s, row, row_of_mind(s))
            if s[ROW] > s[THREADS]:
                join_words(s, row + s[THREADS], agents_base(s))
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
    """Let the current thread know from now on what a release at `at` knew. Who knows of the release
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
