"""Shadow cells: the accesses to four bytes that a later one may conflict with."""

from __future__ import annotations

from typing import Any

from warploom.detector.conflicts import check_record
from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    BLOCK_AT,
    BYTES_AT,
    COPIES_OF_THREAD,
    EXACT,
    FLAGS_AT,
    GLOBAL,
    GPU,
    LISTS,
    LOAD,
    LOW,
    ME_AGENT,
    ME_BLOCK,
    ME_DISTANCE,
    ME_INSTRUCTION,
    ME_INTERVAL,
    ME_SPACE,
    ME_THREAD,
    ME_TIME,
    N_FIRST,
    N_NEXT,
    N_SECOND,
    N_THIRD,
    N_VALUE,
    OP_AT,
    R_FIRST,
    R_THIRD,
    SCOPE_AT,
    STRONG,
    THREAD_BITS,
    TIME_AT,
    VOLATILE,
    W_FIRST,
    W_SECOND,
    W_THIRD,
    W_VALUE,
    WHO_BITS,
)
from warploom.detector.pool import give_back, push
from warploom.simt.lane_counts import jitable

ALL_BYTES = 15

DEDUPED = 4
"""So many records at the head of a list are compared with one that is added."""


@jitable
def third_word(s: Any, op: int, bytes_: int, flags: int) -> int:
    """Returns the third word of a record of the current access."""
    return int(s[ME_INSTRUCTION] | op << OP_AT | bytes_ << BYTES_AT | flags << FLAGS_AT)


@jitable
def touch(s: Any, cell: int, third: int, value: int) -> int:
    """Checks an access of the current thread to bytes of a cell against those before it, and keeps
    it; `value` is what it writes. Returns whether something strong was done to the cell before."""
    first = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    second = s[ME_TIME] << TIME_AT | s[ME_THREAD] | s[ME_AGENT]
    op, bytes_ = third >> OP_AT & 3, third >> BYTES_AT & ALL_BYTES
    if s[cell + W_FIRST]:
        w = cell + W_FIRST
        check_record(s, s[w], s[w + 1], s[w + 2], s[w + 3], third, value)
    if op != LOAD and s[cell + R_FIRST]:
        r = cell + R_FIRST
        check_record(s, s[r], s[r + 1], s[r + 2], 0, third, value)
    lists = s[cell + LISTS]
    strong = lists >> 32
    if lists:
        if lists & LOW:
            check_list(s, lists & LOW, third, value)
        if strong and not is_wide(third):
            check_list(s, strong, third, value)
    if third >> FLAGS_AT & STRONG:
        keep_strong(s, cell, first, second, third, value)
    elif op == LOAD:
        keep_read(s, cell, first, second, third)
    else:
        keep_write(s, cell, bytes_, first, second, third, value)
    return int(strong != 0 or lists & LOW != 0)


@jitable
def is_wide(third: int) -> int:
    """Returns whether an access is strong and not volatile, on all bytes, at gpu scope or wider:
    two such are never in conflict."""
    flags = third >> FLAGS_AT
    whole = third >> BYTES_AT & ALL_BYTES == ALL_BYTES
    strong = flags & (STRONG | VOLATILE) == STRONG
    return int(strong and whole and flags >> SCOPE_AT & 3 >= GPU)


@jitable
def check_list(s: Any, node: int, third: int, value: int) -> None:
    """Checks an access against the records of a list."""
    while node:
        check_record(
            s,
            s[node + N_FIRST],
            s[node + N_SECOND],
            s[node + N_THIRD],
            s[node + N_VALUE],
            third,
            value,
        )
        node = s[node + N_NEXT]


@jitable
def keep_write(
    s: Any, cell: int, bytes_: int, first: int, second: int, third: int, value: int
) -> None:
    """Keeps a weak write; it stands for all that touched its bytes before, for whatever comes after
    it and is ordered comes after them, and what was not ordered has been reported."""
    lists = s[cell + LISTS]
    low, high = lists & LOW, lists >> 32
    if lists:
        low = without_bytes(s, low, bytes_)
        high = without_bytes(s, high, bytes_)
    if s[cell + W_FIRST] and s[cell + W_THIRD] >> BYTES_AT & ALL_BYTES & ~bytes_:
        w = cell + W_FIRST
        low = push(s, low, s[w], s[w + 1], s[w + 2], s[w + 3])
    if s[cell + R_FIRST] and s[cell + R_THIRD] >> BYTES_AT & ALL_BYTES & ~bytes_ == 0:
        s[cell + R_FIRST] = 0
    s[cell + LISTS] = high << 32 | low
    s[cell + W_FIRST] = first
    s[cell + W_SECOND] = second
    s[cell + W_THIRD] = third
    s[cell + W_VALUE] = value


@jitable
def without_bytes(s: Any, head: int, bytes_: int) -> int:
    """Returns a list without the records of these bytes alone."""
    kept, node = 0, head
    while node:
        following = s[node + N_NEXT]
        if s[node + N_THIRD] >> BYTES_AT & ALL_BYTES & ~bytes_:
            s[node + N_NEXT] = kept
            kept = node
        else:
            give_back(s, node)
        node = following
    return int(kept)


@jitable
def keep_read(s: Any, cell: int, first: int, second: int, third: int) -> None:
    """Keeps a weak read. One that is ordered before it on the same bytes need not be kept; of
    others, where only barriers of blocks and warps synchronise, the two that are farthest apart
    stand for all, for no later write is ordered behind both of them and not behind the rest."""
    r, bytes_ = cell + R_FIRST, third >> BYTES_AT & ALL_BYTES
    s[ME_DISTANCE] = 0
    if s[r] == 0 or replaces(s, s[r], s[r + 1], s[r + 2], bytes_):
        put(s, r, first, second, third)
        return
    one, two, seen = 0, 0, 0
    if s[r + 2] >> BYTES_AT & ALL_BYTES == bytes_:
        one = r
    lists = s[cell + LISTS]
    node = lists & LOW
    while node and two == 0 and (seen < DEDUPED or s[EXACT] == 0):
        record, third_of_node = node + N_FIRST, s[node + N_THIRD]
        is_read = third_of_node >> OP_AT & 3 == LOAD and third_of_node >> FLAGS_AT & STRONG == 0
        if is_read and third_of_node >> BYTES_AT & ALL_BYTES == bytes_:
            if replaces(s, s[record], s[record + 1], third_of_node, bytes_):
                put(s, record, first, second, third)
                s[ME_DISTANCE] = distance_between(s, one, record)
                return
            if one == 0:
                one = record
            elif s[EXACT] == 0:
                two = record
        node = s[node + N_NEXT]
        seen += 1
    if two == 0:
        s[cell + LISTS] = lists >> 32 << 32 | push(s, lists & LOW, first, second, third, 0)
        s[ME_DISTANCE] = distance_between(s, one, (s[cell + LISTS] & LOW) + N_FIRST)
        return
    if distance_between(s, one, two) < distance(s[one], s[one + 1], first, second):
        put(s, two, first, second, third)
    s[ME_DISTANCE] = distance_between(s, one, two)


@jitable
def put(s: Any, at: int, first: int, second: int, third: int) -> None:
    """Writes the three words of a record."""
    s[at], s[at + 1], s[at + 2] = first, second, third


@jitable
def distance_between(s: Any, one: int, two: int) -> int:
    """Returns how far apart the threads of two records are; 0 without a first one."""
    return distance(s[one], s[one + 1], s[two], s[two + 1]) if one else 0


@jitable
def farthest(s: Any) -> int:
    """Returns how far apart two threads can be that reach the same memory of the current space."""
    return 3 if s[ME_SPACE] == GLOBAL else 2


@jitable
def distance(first: int, second: int, other_first: int, other_second: int) -> int:
    """Returns how far apart two threads are: 3 in two blocks, 2 in two warps, 1 in one."""
    if first >> BLOCK_AT != other_first >> BLOCK_AT:
        return 3
    a, b = second & THREAD_BITS, other_second & THREAD_BITS
    return 2 if a >> 5 != b >> 5 else 1


@jitable
def replaces(s: Any, first: int, second: int, third: int, bytes_: int) -> int:
    """Returns whether the current access stands for a record of its kind from now on."""
    if third >> BYTES_AT & ALL_BYTES & ~bytes_:
        return 0
    if second & AGENT:
        # Of its tensor memory, a thread or a warp waits for all that it has begun.
        who = s[ME_THREAD] | s[ME_AGENT]
        same = second & WHO_BITS == who and first >> BLOCK_AT == s[ME_BLOCK] + 1
        return int(same and who >> AGENT_KIND_AT != COPIES_OF_THREAD)
    return is_ordered(s, first, second)


@jitable
def keep_strong(s: Any, cell: int, first: int, second: int, third: int, value: int) -> None:
    """Keeps a strong access, in the list where it belongs."""
    lists = s[cell + LISTS]
    wide, bytes_ = is_wide(third), third >> BYTES_AT & ALL_BYTES
    head = lists >> 32 if wide else lists & LOW
    node, seen = head, 0
    kept = third >> OP_AT & 3
    while node and seen < DEDUPED:
        f, w, t = s[node + N_FIRST], s[node + N_SECOND], s[node + N_THIRD]
        alike = (
            t >> OP_AT & 3 == kept and t >> FLAGS_AT & STRONG and t >> FLAGS_AT == third >> FLAGS_AT
        )
        if alike and (replaces(s, f, w, t, bytes_) or (s[EXACT] == 0 and seen > 0)):
            s[node + N_FIRST], s[node + N_SECOND], s[node + N_THIRD] = first, second, third
            s[node + N_VALUE] = value
            return
        if alike and s[EXACT] == 0 and distance(f, w, first, second) < 2:
            return
        node = s[node + N_NEXT]
        seen += 1
    head = push(s, head, first, second, third, value)
    s[cell + LISTS] = head << 32 | lists & LOW if wide else lists >> 32 << 32 | head
