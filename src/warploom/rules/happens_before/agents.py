"""Keeps what a thread knows of the copies of agents, the asynchronous parts of threads."""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.words import (
    L_AGENT_STAMP,
    LOW,
    ME_MIND_AT,
    ME_ROW_AT,
    ME_SLOT,
    ROW,
    SLOT_ROWS,
    THREADS,
)

WINDOW = 31
"""So many copies of an agent, from the first one unknown on, are known one by one."""


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


@jitable
def join_words(s: Any, to: int, source: int) -> None:
    """Add to the words of what is known of agents, one a thread, those of another."""
    for thread in range(s[THREADS]):
        if s[source + thread]:
            s[to + thread] = copies_of_both(s[to + thread], s[source + thread])
