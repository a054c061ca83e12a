"""Holds what a thread knows, in the race detector's vector clocks, of agents: the asynchronous
parts of threads and warps (`cp.async`, tensor cores).

After the words of threads, a vector clock has one word for each agent: of the copies of each
thread; then, in kernels with tensor memory, of what each thread's tensor core has completed, and of
what it had begun before a `tcgen05.fence::before_thread_sync`; then of each warp the loads of
tensor memory that it has waited for, those of them before such a fence, and its stores likewise.

Copies of an agent may complete in any order, so a word has a bound and a window. Copies 0 to 4 and
copy 7 are known:

    low half   5        (all before copy 5)
    high half  0b100    (bit i: copy 5 + i)
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
"""Copies of an agent, from the first unknown on, that are known one by one."""

OF_WARP = 4
"""Words of a warp's loads and stores."""
FENCED = 1
"""Offset from the word of what was waited for to that of what was waited for before a fence."""


def count_agents(threads: int, *, tensor_memory: bool) -> int:
    """Returns the number of agent words of a vector clock: one for each of `threads`, or with
    tensor memory three for each and OF_WARP for each warp."""
    return 3 * threads + OF_WARP * (threads // 32) if tensor_memory else threads


@jitable
def agent_index(state: Any, who: int) -> int:
    """Returns the index of an agent's word among the agent words of a vector clock; `who`: the low
    bits of a record's thread word, the thread and the agent's kind."""
    kind, thread = who >> AGENT_KIND_AT, who & AGENT - 1
    if kind <= WORK_OF_THREAD:
        return int(kind * state[THREADS] + thread)
    return int(3 * state[THREADS] + OF_WARP * (thread >> 5) + 2 * (kind - LOADS_OF_WARP))


@jitable
def begun_index(state: Any, thread: int) -> int:
    """Returns the index, among the agent words, of the word of what a thread's tensor core had
    begun before a fence."""
    return int(2 * state[THREADS] + thread)


@jitable
def includes_copy(word: int, copy: int) -> int:
    """Returns whether an agent word includes the copy with number `copy`: it is below the word's
    bound, or its bit in the window is set."""
    copies_after = copy - (word & LOW)
    if copies_after < 0:
        return 1
    return int(copies_after < WINDOW and (word >> 32) >> copies_after & 1)


@jitable
def join_agent_word(a: int, b: int) -> int:
    """Returns the union of two agent words, as far as a word can hold it: copies more than a window
    above the larger bound are dropped, so the result may know less, never more."""
    if a & LOW < b & LOW:
        a, b = b, a
    bound = a & LOW
    shift = bound - (b & LOW)
    bits = a >> 32
    if shift < WINDOW:
        bits |= (b >> 32) >> shift
    # Known copies right above the bound move into it, which frees their part of the window.
    while bits & 1:
        bits >>= 1
        bound += 1
    return bits << 32 | bound


@jitable
def word_of_copy(copy: int) -> int:
    """Returns the agent word that includes one copy only; if that is beyond the window, also those
    more than a window before it."""
    if copy < WINDOW:
        return (1 << copy) << 32 if copy else 1
    return 1 << 62 | (copy - WINDOW + 1)


@jitable
def block_agent_words(state: Any) -> int:
    """Returns the index of the agent words that all threads of the current block know."""
    return int(state[ME_SLOT] + state[SLOT_CLOCKS] + state[THREADS] * state[CLOCK_WORDS])


@jitable
def current_agent_word(state: Any, agent: int) -> int:
    """Returns the word of what the current thread knows of an agent (`agent`: the word's index):
    the word that all threads of its block know, joined with that of its own clock if it is
    valid."""
    word = state[block_agent_words(state) + agent]
    if state[state[ME_HOLDER_AT] + L_AGENT_STAMP]:
        word = join_agent_word(word, state[state[ME_CLOCK_AT] + state[THREADS] + agent])
    return int(word)


@jitable
def join_agent_words(state: Any, to: int, source: int) -> None:
    """Adds to all agent words of a clock, from index `to` on, those from index `source` on
    (`join_agent_word`)."""
    for agent in range(state[AGENTS]):
        if state[source + agent]:
            state[to + agent] = join_agent_word(state[to + agent], state[source + agent])
