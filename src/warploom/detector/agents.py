"""Keeps what a thread knows of agents, the asynchronous parts of threads and warps.

Behind the words of threads, a row has one for each agent: of what a thread copies; then, in kernels
with tensor memory, of what its tensor core has completed, and of what it had begun before a
`tcgen05.fence::before_thread_sync`; then of each warp the loads of tensor memory that it has waited
for, those of them before such a fence, and its stores likewise.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    AGENTS,
    CLOCK_WORDS,
    L_AGENT_STAMP,
    LOADS_OF_WARP,
    LOW,
    ME_CLOCK_AT,
    ME_HOLDER_AT,
    ME_SLOT,
    SLOT_CLOCKS,
    THREADS,
    WORK_OF_THREAD,
)
from warploom.simt.lane_counts import jitable

WINDOW = 31
"""So many copies of an agent, from the first one unknown on, are known one by one."""

OF_WARP = 4
"""Words of a warp's loads and stores."""
FENCED = 1
"""From the word of what was waited for to that of what was waited for before a fence."""


def count_agents(threads: int, *, tensor_memory: bool) -> int:
    """Return how many words of agents a row has."""
    return 3 * threads + OF_WARP * (threads // 32) if tensor_memory else threads


@jitable
def agent_index(state: Any, who: int) -> int:
    """Return the number of the agent's word, by the low bits of a record's second word."""
    kind, thread = who >> AGENT_KIND_AT, who & AGENT - 1
    if kind <= WORK_OF_THREAD:
        return int(kind * state[THREADS] + thread)
    return int(3 * state[THREADS] + OF_WARP * (thread >> 5) + 2 * (kind - LOADS_OF_WARP))


@jitable
def begun_index(state: Any, thread: int) -> int:
    """Return the number of the word of what a thread's tensor core had begun before a fence."""
    return int(2 * state[THREADS] + thread)


@jitable
def includes_copy(word: int, copy: int) -> int:
    """Returns whether a copy is among those that `word` says are known: all before its low half,
    and of those from there on the bits of its high half."""
    copies_after = copy - (word & LOW)
    if copies_after < 0:
        return 1
    return int(copies_after < WINDOW and (word >> 32) >> copies_after & 1)


@jitable
def join_agent_word(a: int, b: int) -> int:
    """Returns what two such words know together."""
    if a & LOW < b & LOW:
        a, b = b, a
    bound = a & LOW
    shift = bound - (b & LOW)
    bits = a >> 32
    if shift < WINDOW:
        bits |= (b >> 32) >> shift
    while bits & 1:
        bits >>= 1
        bound += 1
    return bits << 32 | bound


@jitable
def word_of_copy(copy: int) -> int:
    """Returns the word that knows of one copy alone, as far as a word can: of those more than a
    window old, it knows of those before as well."""
    if copy < WINDOW:
        return (1 << copy) << 32 if copy else 1
    return 1 << 62 | (copy - WINDOW + 1)


@jitable
def block_agent_words(state: Any) -> int:
    """Returns where the words begin that all threads of the current block know of agents."""
    return int(state[ME_SLOT] + state[SLOT_CLOCKS] + state[THREADS] * state[CLOCK_WORDS])


@jitable
def current_agent_word(state: Any, agent: int) -> int:
    """Returns the word of what the current thread knows of an agent."""
    word = state[block_agent_words(state) + agent]
    if state[state[ME_HOLDER_AT] + L_AGENT_STAMP]:
        word = join_agent_word(word, state[state[ME_CLOCK_AT] + state[THREADS] + agent])
    return int(word)


@jitable
def join_agent_words(state: Any, to: int, source: int) -> None:
    """Add to the words of what is known of agents those of another."""
    for agent in range(state[AGENTS]):
        if state[source + agent]:
            state[to + agent] = join_agent_word(state[to + agent], state[source + agent])
