"""Memory for what the detector has to keep: taken from the end of its array, never given back but
for the nodes of lists."""

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
    N_FIRST,
    N_NEXT,
    N_SECOND,
    N_THIRD,
    N_VALUE,
    NODE_WORDS,
    POOL_AT,
    POOL_END,
)
from warploom.simt.lane_counts import jitable


@jitable
def take(s: Any, words: int) -> int:
    """Returns the index of so many words, all zero; 0 where there are none left."""
    at = s[POOL_AT]
    if at + words > s[POOL_END]:
        s[EXHAUSTED] = 1
        return 0
    s[POOL_AT] = at + words
    return int(at)


@jitable
def push(s: Any, head: int, first: int, second: int, third: int, value: int) -> int:
    """Returns the head of a list with one more record before `head`."""
    at = s[FREE_NODES]
    if at != 0:
        s[FREE_NODES] = s[at + N_NEXT]
    else:
        at = take(s, NODE_WORDS)
        if at == 0:
            return head
    s[at + N_NEXT] = head
    s[at + N_FIRST] = first
    s[at + N_SECOND] = second
    s[at + N_THIRD] = third
    s[at + N_VALUE] = value
    return int(at)


@jitable
def give_back(s: Any, node: int) -> None:
    """Frees a node of a list."""
    s[node + N_NEXT] = s[FREE_NODES]
    s[FREE_NODES] = node


@jitable
def give_back_all(s: Any, lists: int) -> None:
    """Frees the nodes of both lists of a cell."""
    for node in (lists & LOW, lists >> 32):
        while node:
            following = s[node + N_NEXT]
            give_back(s, node)
            node = following


@jitable
def report(
    s: Any, kind: int, other: int, other_thread: int, address: int, size: int, detail: int
) -> None:
    """Counts a finding of the current thread and instruction; keeps the first of its kind, of two
    instructions and a space. `other` is the other instruction, -1 for none."""
    instruction, space = s[ME_INSTRUCTION], s[ME_SPACE]
    at = s[FINDINGS_AT]
    for _ in range(s[FINDINGS]):
        same = s[at + F_KIND] == kind and s[at + F_INSTRUCTION] == instruction
        if same and s[at + F_OTHER] == other and s[at + F_SPACE] == space:
            s[at + F_COUNT] += 1
            return
        at += FINDING_WORDS
    if s[FINDINGS] >= MOST_FINDINGS:
        s[LEFT_OUT] += 1
        return
    s[FINDINGS] += 1
    s[at + F_KIND] = kind
    s[at + F_INSTRUCTION] = instruction
    s[at + F_OTHER] = other
    s[at + F_SPACE] = space
    s[at + F_ADDRESS] = address
    s[at + F_THREAD] = s[ME_BLOCK] << 32 | s[ME_THREAD]
    s[at + F_OTHER_THREAD] = other_thread
    s[at + F_COUNT] = 1
    s[at + F_SIZE] = size
    s[at + F_DETAIL] = detail
    s[at + F_OWNER] = s[ME_OWNER]
