"""Allocates what the race detector retains in the pool, the end of its array, which is never freed
during a launch, except for nodes of lists; and counts findings."""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    EXHAUSTED,
    F_ADDRESS,
    F_COUNT,
    F_DETAIL,
    F_INSTRUCTION,
    F_KIND,
    F_OTHER,
    F_OTHER_THREAD,
    F_OWNER,
    F_SIZE,
    F_SPACE,
    F_THREAD,
    FINDING_WORDS,
    FINDINGS,
    FINDINGS_AT,
    FREE_NODES,
    LEFT_OUT,
    LOW,
    ME_BLOCK,
    ME_INSTRUCTION,
    ME_OWNER,
    ME_SPACE,
    ME_THREAD,
    MOST_FINDINGS,
    N_ACCESS,
    N_INTERVAL,
    N_NEXT,
    N_THREAD,
    N_VALUE,
    NODE_WORDS,
    POOL_AT,
    POOL_END,
)
from warploom.simt.lane_counts import jitable


@jitable
def allocate(state: Any, words: int) -> int:
    """Returns the index of `words` new words of the pool, all zero; 0, with EXHAUSTED set, if none
    are left."""
    at = state[POOL_AT]
    if at + words > state[POOL_END]:
        state[EXHAUSTED] = 1
        return 0
    state[POOL_AT] = at + words
    return int(at)


@jitable
def push_record(
    state: Any, head: int, interval_word: int, thread_word: int, access_word: int, value: int
) -> int:
    """Prepends a record of an access to a list and returns the list's new head, a freed node or one
    from the pool; returns `head` itself, the record lost, if the pool is exhausted."""
    at = state[FREE_NODES]
    if at != 0:
        state[FREE_NODES] = state[at + N_NEXT]
    else:
        at = allocate(state, NODE_WORDS)
        if at == 0:
            return head
    state[at + N_NEXT] = head
    state[at + N_INTERVAL] = interval_word
    state[at + N_THREAD] = thread_word
    state[at + N_ACCESS] = access_word
    state[at + N_VALUE] = value
    return int(at)


@jitable
def free_node(state: Any, node: int) -> None:
    """Puts a node of a list into the list of free ones (FREE_NODES), from which `push_record` takes
    it."""
    state[node + N_NEXT] = state[FREE_NODES]
    state[FREE_NODES] = node


@jitable
def free_lists(state: Any, lists: int) -> None:
    """Frees the nodes of both lists of a cell, whose heads are packed in `lists` as in LISTS."""
    for node in (lists & LOW, lists >> 32):
        while node:
            following = state[node + N_NEXT]
            free_node(state, node)
            node = following


@jitable
def report(
    state: Any, kind: int, other: int, other_thread: int, address: int, size: int, detail: int
) -> None:
    """Counts a finding of the current thread and instruction, and retains the first for each kind,
    pair of instructions and space; beyond MOST_FINDINGS only their number (LEFT_OUT). `other` is
    the other instruction, -1 for none; `other_thread` the other block << 32 | thread, -1 for none;
    `detail` depends on the kind."""
    instruction, space = state[ME_INSTRUCTION], state[ME_SPACE]
    at = state[FINDINGS_AT]
    # At most MOST_FINDINGS, and mostly few: a linear search is enough.
    for _ in range(state[FINDINGS]):
        same = state[at + F_KIND] == kind and state[at + F_INSTRUCTION] == instruction
        if same and state[at + F_OTHER] == other and state[at + F_SPACE] == space:
            state[at + F_COUNT] += 1
            return
        at += FINDING_WORDS
    if state[FINDINGS] >= MOST_FINDINGS:
        state[LEFT_OUT] += 1
        return
    state[FINDINGS] += 1
    state[at + F_KIND] = kind
    state[at + F_INSTRUCTION] = instruction
    state[at + F_OTHER] = other
    state[at + F_SPACE] = space
    state[at + F_ADDRESS] = address
    state[at + F_THREAD] = state[ME_BLOCK] << 32 | state[ME_THREAD]
    state[at + F_OTHER_THREAD] = other_thread
    state[at + F_COUNT] = 1
    state[at + F_SIZE] = size
    state[at + F_DETAIL] = detail
    state[at + F_OWNER] = state[ME_OWNER]
