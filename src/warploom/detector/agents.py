"""Holds what threads know, in the race detector's vector clocks, of agents: the asynchronous parts
of threads and warps (`cp.async`, tensor cores), whose accesses are numbered and complete in any
order.

After the words of threads, a vector clock has one word for the copies of each thread. In kernels
with tensor memory, two words for each thread's tensor core follow: of the work that it has
completed, and of the work that it had begun before a `tcgen05.fence::before_thread_sync`. Then come
four words for each warp: of the loads of tensor memory that it has waited for, of those of them
before such a fence, and two of its stores likewise.

Copies of an agent may complete in any order, so a word has a bound and a window. Copies 0 to 4 and
copy 7 are known:

    low half   5        (all before copy 5)
    high half  0b100    (bit i: copy 5 + i)
"""

from __future__ import annotations

from warploom.detector.layout import AGENT, AGENT_KIND_AT, LOADS_OF_WARP, LOW, WORK_OF_THREAD
from warploom.detector.records import DetectorState, ThreadKnowledge
from warploom.simt.lane_counts import jitable

WINDOW = 31
"""Copies of an agent, from the first unknown on, that are known one by one."""

OF_WARP = 4
"""Words of a warp: loads waited for, those before a fence, stores likewise."""
FENCED = 1
"""Offset from the word of what was waited for to that of what was waited for before a fence."""


def count_agents(threads: int, *, tensor_memory: bool) -> int:
    """Returns the number of agent words (what is known of asynchronous work) of a vector clock: one
    for each of `threads`, or with tensor memory three for each and OF_WARP for each warp."""
    return 3 * threads + OF_WARP * (threads // 32) if tensor_memory else threads


@jitable
def agent_index(state: DetectorState, agent: int) -> int:
    """Returns the index, among the agent words of a vector clock, of the word of an agent (the
    asynchronous part of a thread or a warp). The words are, in order: the copies of each thread;
    the completed work of each thread's tensor core; the words of `begun_index`; then OF_WARP words
    for each warp. These are two for its loads and two for its stores of tensor memory: the accesses
    that the warp has waited for (the word returned), and those of them that a fence followed.
    `agent` identifies the agent: the low bits of an access record's thread word, with thread (of a
    warp, any lane's) and kind of agent."""
    kind, thread = agent >> AGENT_KIND_AT, agent & AGENT - 1
    if kind <= WORK_OF_THREAD:
        return int(kind * state.threads + thread)
    # Two words for each kind: waited for, and waited for before a fence.
    return int(3 * state.threads + OF_WARP * (thread >> 5) + 2 * (kind - LOADS_OF_WARP))


@jitable
def begun_index(state: DetectorState, thread: int) -> int:
    """Returns the index, among the agent words of a vector clock, of the word of what a thread's
    tensor core had begun before a `tcgen05.fence::before_thread_sync`."""
    return int(2 * state.threads + thread)


@jitable
def includes_copy(word: int, copy: int) -> int:
    """Returns whether an agent word (low half: bound; high half: window) includes the copy with
    number `copy`: it is below the bound, or its bit in the window, which begins at the bound, is
    set."""
    copies_after = copy - (word & LOW)
    if copies_after < 0:
        return 1
    return int(copies_after < WINDOW and (word >> 32) >> copies_after & 1)


@jitable
def join_agent_word(a: int, b: int) -> int:
    """Returns the union of two agent words (bound and window): the larger bound, and the copies
    above it of both windows. Copies that follow the bound without a gap move into it."""
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
    """Returns the agent word (bound and window) that includes copy number `copy` only. A number
    beyond the window includes also those a window or more before it, as the word has no other form.
    """
    if copy < WINDOW:
        return (1 << copy) << 32 if copy else 1
    # The top bit of the window, bit 30 of the high half, stands for the bound plus 30.
    return 1 << 62 | (copy - WINDOW + 1)


@jitable
def block_agent_words(state: DetectorState) -> int:
    """Returns the index in the state of the agent words that all threads of the current block know,
    by a barrier. Right after them are those that arrivals at the next barrier add."""
    return int(state.current_slot + state.slot_clocks + state.threads * state.clock_words)


@jitable
def current_agent_word(state: DetectorState, agent: int) -> int:
    """Returns what the current thread knows of an agent, as an agent word (bound and window): what
    all threads of its block know, joined with its own clock if that holds agent words. `agent` is
    the word's index (`agent_index`)."""
    word = state.words[block_agent_words(state) + agent]
    if ThreadKnowledge(state, state.current_holder_at).agent_stamp:
        word = join_agent_word(word, state.words[state.current_clock_at + state.threads + agent])
    return int(word)


@jitable
def join_agent_words(state: DetectorState, to: int, source: int) -> None:
    """Joins all agent words of the vector clock whose agent words begin at index `source` of the
    state, one by one (`join_agent_word`), to those that begin at index `to`."""
    for agent in range(state.agents):
        if state.words[source + agent]:
            state.words[to + agent] = join_agent_word(
                state.words[to + agent], state.words[source + agent]
            )
