"""Sets of what is known of other blocks. A set never changes; to add to one makes another."""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agent_of, begun_by, copies_of_both, knows_copy
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    AGENTS,
    ME_AGENT,
    ROW,
    S_INTERVAL,
    S_ROW,
    S_SYNCED,
    S_THREAD,
    S_TIME,
    SET_WORDS,
    THREADS,
    WORK_OF_THREAD,
)
from warploom.detector.pool import take
from warploom.simt.lane_counts import jitable


@jitable
def known_of_other(s: Any, known: int, block: int, interval: int, thread: int, time: int) -> int:
    """Returns whether a set knows of an access of a block, given by its number and one."""
    entry = entry_of(s, known, block)
    if entry == 0:
        return 0
    if thread & AGENT:
        return knows_of_agent(s, entry, thread, time)
    if s[entry + S_INTERVAL] != interval:
        return int(interval < s[entry + S_INTERVAL])
    return int(time < first_unknown(s, entry, thread))


@jitable
def knows_of_agent(s: Any, entry: int, who: int, time: int) -> int:
    """Return whether an entry knows of an access of an agent; work of tensor cores, before other
    such work, where it had begun before a fence."""
    if knows_copy(copies_known(s, entry, agent_of(s, who)), time):
        return 1
    kind, own = who >> AGENT_KIND_AT, s[ME_AGENT] >> AGENT_KIND_AT
    if kind != WORK_OF_THREAD or own != WORK_OF_THREAD:
        return 0
    return knows_copy(copies_known(s, entry, begun_by(s, who & AGENT - 1)), time)


@jitable
def entry_of(s: Any, known: int, block: int) -> int:
    """Return where a set has what it knows of a block, given by its number and one; 0 for
    nothing."""
    if known == 0:
        return 0
    low, high = 0, s[known]
    while low < high:
        middle = (low + high) // 2
        if s[known + 1 + middle * SET_WORDS] < block:
            low = middle + 1
        else:
            high = middle
    entry = known + 1 + low * SET_WORDS
    return int(entry if low < s[known] and s[entry] == block else 0)


@jitable
def first_unknown(s: Any, entry: int, thread: int) -> int:
    """Returns the first time of a thread, in the entry's interval, that the entry does not know."""
    time = 0
    if s[entry + S_THREAD] == thread:
        time = s[entry + S_TIME]
    elif s[entry + S_THREAD] >> 5 == thread >> 5:
        time = s[entry + S_SYNCED]
    if s[entry + S_ROW]:
        time = max(time, s[s[entry + S_ROW] + thread])
    return int(time)


@jitable
def copies_known(s: Any, entry: int, agent: int) -> int:
    """Return the word of what an entry knows of an agent (`agents`)."""
    if s[AGENTS] == 0 or s[entry + S_ROW] == 0:
        return 0
    return int(s[s[entry + S_ROW] + s[THREADS] + agent])


@jitable
def includes(s: Any, a: int, b: int) -> int:
    """Returns whether an entry knows all that another of the same block knows."""
    if s[b + S_ROW] and s[b + S_ROW] != s[a + S_ROW]:
        for agent in range(s[AGENTS]):
            known = copies_known(s, a, agent)
            if copies_of_both(known, copies_known(s, b, agent)) != known:
                return 0
    return includes_accesses(s, a, b)


@jitable
def includes_accesses(s: Any, a: int, b: int) -> int:
    """Return whether an entry knows all accesses that another of the same block knows, those of
    agents left out."""
    if s[a + S_INTERVAL] != s[b + S_INTERVAL]:
        return int(s[a + S_INTERVAL] > s[b + S_INTERVAL])
    if s[b + S_ROW] and s[b + S_ROW] != s[a + S_ROW]:
        for thread in range(s[THREADS]):
            if first_unknown(s, a, thread) < first_unknown(s, b, thread):
                return 0
        return 1
    first = s[b + S_THREAD] >> 5 << 5
    for thread in range(first, first + 32):
        if first_unknown(s, a, thread) < first_unknown(s, b, thread):
            return 0
    return 1


@jitable
def includes_set(s: Any, a: int, b: int) -> int:
    """Returns whether a set knows all that another does."""
    at, end = a + 1, a + 1 + s[a] * SET_WORDS
    for number in range(s[b]):
        entry = b + 1 + number * SET_WORDS
        while at < end and s[at] < s[entry]:
            at += SET_WORDS
        if at == end or s[at] != s[entry] or not includes(s, at, entry):
            return 0
    return 1


@jitable
def joined_sets(s: Any, a: int, b: int) -> int:
    """Returns the set of what either of two knows."""
    if a == b or b == 0:
        return a
    if a == 0:
        return b
    if includes_set(s, a, b):
        return a
    if includes_set(s, b, a):
        return b
    made = take(s, 1 + (s[a] + s[b]) * SET_WORDS)
    if made == 0:
        return a
    to, i, j = made + 1, 0, 0
    while i < s[a] or j < s[b]:
        x, y = a + 1 + i * SET_WORDS, b + 1 + j * SET_WORDS
        if j == s[b] or (i < s[a] and s[x] < s[y]):
            copy_entry(s, to, x)
            i += 1
        elif i == s[a] or s[y] < s[x]:
            copy_entry(s, to, y)
            j += 1
        else:
            join_entries(s, to, x, y)
            i += 1
            j += 1
        to += SET_WORDS
    s[made] = (to - made - 1) // SET_WORDS
    return int(made)


@jitable
def copy_entry(s: Any, to: int, source: int) -> None:
    """Copies an entry of a set."""
    for word in range(SET_WORDS):
        s[to + word] = s[source + word]


@jitable
def join_entries(s: Any, to: int, a: int, b: int) -> None:
    """Writes an entry that knows what two of the same block know."""
    if includes(s, a, b):
        copy_entry(s, to, a)
    elif includes(s, b, a):
        copy_entry(s, to, b)
    else:
        later, earlier = (a, b) if s[a + S_INTERVAL] >= s[b + S_INTERVAL] else (b, a)
        copy_entry(s, to, later)
        row = take(s, s[ROW])
        if row == 0:
            return
        for thread in range(s[THREADS]):
            s[row + thread] = first_unknown(s, later, thread)
            if s[earlier + S_INTERVAL] == s[later + S_INTERVAL]:
                s[row + thread] = max(s[row + thread], first_unknown(s, earlier, thread))
        for agent in range(s[AGENTS]):
            both = copies_of_both(copies_known(s, a, agent), copies_known(s, b, agent))
            s[row + s[THREADS] + agent] = both
        s[to + S_ROW] = row
