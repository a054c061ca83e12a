"""Asynchronous copies that complete: by groups, and at mbarriers.

Source: PTX ISA, "cp.async", "cp.async.bulk", "mbarrier".
"""

from __future__ import annotations

from typing import Any

from warploom.asynchronous.mbarrier import PHASE_AT
from warploom.detector.agents import copies_of_both, one_copy
from warploom.detector.barriers import clear_generation
from warploom.detector.clocks import (
    add_to_row,
    join_rows,
    known_set,
    learn_set,
    row_of_mind,
)
from warploom.detector.knowledge import become
from warploom.detector.layout import (
    ACQUIRES,
    ARRIVES,
    ARRIVES_ASYNC,
    BARRIER_HEAD,
    BULK,
    CLUSTER,
    E_LANES,
    E_NUMBER,
    E_WARP,
    G_GENERATION,
    G_KNOWN,
    INVALIDATES,
    L_BULK_COMMITS,
    L_BULK_RING,
    L_COMMITS,
    L_COPIES,
    L_RING,
    ME_BLOCK,
    ME_LANE_AT,
    ME_OWNER,
    ME_THREAD,
    O_CHAIN,
    O_MBARRIER,
    PLAIN_WRITE,
    RELEASE_WORDS,
    RELEASES,
    RING,
    ROW,
    S_ROW,
    SET_WORDS,
    THREADS,
    WAITS,
)
from warploom.detector.other_blocks import joined_sets
from warploom.detector.pool import take
from warploom.detector.release_notes import note_release, set_with_release
from warploom.detector.releases import location
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def commit(s: Any, e: Any, flags: int) -> None:
    """Lanes make a group of the copies that they have begun."""
    left = e[E_LANES]
    count = L_BULK_COMMITS if flags & BULK else L_COMMITS
    ring = L_BULK_RING if flags & BULK else L_RING
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = s[ME_LANE_AT]
        s[lane + L_COPIES] += 1
        s[lane + ring + s[lane + count] % RING] = s[lane + L_COPIES]
        s[lane + count] += 1


@jitable
def wait_for_copies(s: Any, e: Any, flags: int) -> None:
    """Lanes wait until at most NUMBER of their last groups of copies are not complete; all copies,
    where that is -1."""
    left, pending = e[E_LANES], e[E_NUMBER]
    count = L_BULK_COMMITS if flags & BULK else L_COMMITS
    ring = L_BULK_RING if flags & BULK else L_RING
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane, bound = s[ME_LANE_AT], 0
        if pending < 0:
            s[lane + L_COPIES] += 1
            bound = s[lane + L_COPIES]
        elif pending < RING and s[lane + count] > pending:
            bound = s[lane + ring + (s[lane + count] - pending - 1) % RING]
        if bound:
            place = row_of_mind(s) + s[THREADS] + s[ME_THREAD]
            s[place] = copies_of_both(s[place], bound)


@jitable
def mbarrier(s: Any, key: int, word: int, flags: int) -> None:
    """Let the current thread work on an mbarrier, whose word is `word` before it does."""
    place = location(s, key, 1)
    if place == 0:
        return
    if s[place + O_CHAIN] == 0:
        s[place + O_CHAIN] = take(s, BARRIER_HEAD + 2 * s[ROW])
        if s[place + O_CHAIN] == 0:
            return
    at, s[place + O_MBARRIER] = s[place + O_CHAIN], int(flags & INVALIDATES == 0)
    if flags & (PLAIN_WRITE | INVALIDATES):
        for generation in range(1, -1, -1):
            s[at + G_GENERATION] = generation
            clear_generation(s, at)
        return
    phase = word >> PHASE_AT & 3
    if s[at + G_GENERATION] & 3 != phase:
        s[at + G_GENERATION] = phase
        clear_generation(s, at)
    if flags & WAITS and flags & ACQUIRES and s[ME_OWNER] == s[ME_BLOCK]:
        odd = phase + 1 & 1
        join_rows(s, row_of_mind(s), at + BARRIER_HEAD + odd * s[ROW])
        learn_set(s, s[at + G_KNOWN + odd])
    if flags & ARRIVES and flags & RELEASES:
        bring(s, at, phase)
    if flags & ARRIVES_ASYNC:
        s[s[ME_LANE_AT] + L_COPIES] += 1
        complete(s, at, phase, s[ME_THREAD], s[s[ME_LANE_AT] + L_COPIES])


@jitable
def is_mbarrier(s: Any, key: int) -> int:
    """Return whether an mbarrier is at a location."""
    place = location(s, key, 0)
    return int(place != 0 and s[place + O_MBARRIER] != 0)


@jitable
def bring(s: Any, at: int, phase: int) -> None:
    """Add what the current thread knows to a phase of an mbarrier: to the row of its block's
    threads, or, from another block, to the set."""
    known = at + G_KNOWN + (phase & 1)
    if s[ME_OWNER] == s[ME_BLOCK]:
        add_to_row(s, at + BARRIER_HEAD + (phase & 1) * s[ROW])
        s[known] = joined_sets(s, s[known], known_set(s))
        return
    release = take(s, RELEASE_WORDS)
    if release:
        note_release(s, release, CLUSTER)
        s[known] = joined_sets(s, s[known], set_with_release(s, release))


@jitable
def complete_copy(s: Any, key: int, word: int) -> None:
    """Note that the bytes of the current thread's last copy have come at an mbarrier, and that its
    next one begins."""
    tell_mbarrier(s, key, word)
    s[s[ME_LANE_AT] + L_COPIES] += 1


@jitable
def tell_mbarrier(s: Any, key: int, word: int) -> None:
    """Note that the bytes of the current thread's last copy have come at an mbarrier."""
    arrive_for(s, key, word, s[ME_THREAD], one_copy(s[s[ME_LANE_AT] + L_COPIES]))


@jitable
def arrive_for(s: Any, key: int, word: int, agent: int, copies: int) -> None:
    """Note that an mbarrier, whose word is `word`, is told of these copies of an agent of the
    current block."""
    place = location(s, key, 0)
    if place and s[place + O_CHAIN]:
        mbarrier(s, key, word, 0)
        complete(s, s[place + O_CHAIN], word >> PHASE_AT & 3, agent, copies)


@jitable
def complete(s: Any, at: int, phase: int, agent: int, copies: int) -> None:
    """Let who waits for a phase of an mbarrier know of these copies of an agent of the current
    block."""
    if s[ME_OWNER] != s[ME_BLOCK]:
        own, known = take(s, 1 + SET_WORDS), at + G_KNOWN + (phase & 1)
        taken = take(s, s[ROW])
        if own and taken:
            s[own], s[own + 1], s[own + 1 + S_ROW] = 1, s[ME_BLOCK] + 1, taken
            s[taken + s[THREADS] + agent] = copies
            s[known] = joined_sets(s, s[known], own)
        return
    row = at + BARRIER_HEAD + (phase & 1) * s[ROW] + s[THREADS] + agent
    s[row] = copies_of_both(s[row], copies)
