"""The barrier of a cluster: what the threads of its blocks learn of each other where they meet.

A thread arrives at one phase after the other, so that its arrivals count the phases. What a block
brings to a phase is a row: of each of its threads the first time that is not brought. Source: PTX
ISA, "barrier.cluster".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agents_base, join_words
from warploom.detector.clocks import (
    add_to_row,
    known_set,
    learn_own,
)
from warploom.detector.knowledge import become
from warploom.detector.layout import (
    B_BLOCK,
    CLUSTER_BARRIER_HEAD,
    CLUSTER_BLOCKS,
    E_LANES,
    E_WARP,
    L_CLUSTER_BARRIERS,
    L_GENERATION,
    L_KNOWN,
    L_KNOWN_STAMP,
    L_WAITS,
    M_AFTER,
    M_BEFORE,
    M_INTERVAL,
    M_KNOWN,
    M_PHASE,
    M_SET,
    ME_CLUSTER_AT,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_MIND_AT,
    ME_SLOT,
    ME_THREAD,
    ME_WARP_AT,
    OF_CLUSTER,
    RELEASES,
    ROW,
    S_INTERVAL,
    S_ROW,
    SET_WORDS,
    SLOT_CLUSTER_BARRIERS,
    SLOT_WORDS,
    THREADS,
    V_TIME,
    V_WAITING,
)
from warploom.detector.other_blocks import joined_sets
from warploom.detector.pool import take
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def cluster_barrier_at(s: Any, slot: int, phase: int) -> int:
    """Return where a block's record of a phase begins: one for even phases, one for odd ones."""
    return int(slot + s[SLOT_CLUSTER_BARRIERS] + (phase & 1) * (CLUSTER_BARRIER_HEAD + s[ROW]))


@jitable
def arrive_in_cluster(s: Any, e: Any, flags: int) -> None:
    """Let the lanes of an event arrive at the barrier of their cluster, with what they know if they
    release it."""
    left, brings = e[E_LANES], flags & RELEASES
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        s[s[ME_LANE_AT] + L_CLUSTER_BARRIERS] += 1
        at = open_cluster_barrier(s, s[ME_SLOT], s[s[ME_LANE_AT] + L_CLUSTER_BARRIERS])
        if brings:
            bring(s, at)
        if brings and left == 0 and s[ROW] > s[THREADS]:
            join_words(s, at + CLUSTER_BARRIER_HEAD + s[THREADS], agents_base(s))
    s[s[ME_WARP_AT] + V_TIME] += 1


@jitable
def open_cluster_barrier(s: Any, slot: int, phase: int) -> int:
    """Return where a block's record of a phase is, which is empty when the phase begins."""
    at = cluster_barrier_at(s, slot, phase)
    if s[at + M_PHASE] != phase:
        for word in range(CLUSTER_BARRIER_HEAD + s[ROW]):
            s[at + word] = 0
        s[at + M_PHASE] = phase
    return int(at)


@jitable
def bring(s: Any, at: int) -> None:
    """Add what the current thread knows to the record of a phase."""
    if s[at + M_INTERVAL] < s[ME_INTERVAL]:
        s[at + M_INTERVAL] = s[ME_INTERVAL]
        for thread in range(s[THREADS]):
            s[at + CLUSTER_BARRIER_HEAD + thread] = 0
    add_to_row(s, at + CLUSTER_BARRIER_HEAD)
    s[at + M_KNOWN] = joined_sets(s, s[at + M_KNOWN], known_set(s))


@jitable
def wait_in_cluster(s: Any, e: Any) -> None:
    """Let the lanes of an event wait at the barrier of their cluster: what they do next is behind
    it."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = s[ME_LANE_AT]
        s[s[ME_WARP_AT] + V_WAITING] |= 1 << (s[ME_THREAD] & 31)
        s[lane + L_WAITS] = 1 + OF_CLUSTER
        s[lane + L_GENERATION] = s[lane + L_CLUSTER_BARRIERS]


@jitable
def learn_cluster_barrier(s: Any, phase: int) -> None:
    """Let the current thread know what was brought to a phase for which it has waited."""
    top = open_cluster_barrier(s, s[ME_CLUSTER_AT], phase)
    if s[top + M_SET] == 0:
        s[top + M_SET] = brought(s, phase)
    learn_own(s, s[top + M_SET])
    known, mind = known_set(s), s[ME_MIND_AT]
    if s[top + M_AFTER] == 0 or s[top + M_BEFORE] != known:
        s[top + M_BEFORE] = known
        s[top + M_AFTER] = joined_sets(s, known, s[top + M_SET])
    s[mind + L_KNOWN] = s[top + M_AFTER]
    s[mind + L_KNOWN_STAMP] = s[ME_INTERVAL] + 1


@jitable
def brought(s: Any, phase: int) -> int:
    """Return the set of what all blocks of the current cluster have brought to a phase."""
    made = take(s, 1 + s[CLUSTER_BLOCKS] * SET_WORDS)
    if made == 0:
        return 0
    entry, known = made + 1, 0
    for rank in range(s[CLUSTER_BLOCKS]):
        slot = s[ME_CLUSTER_AT] + rank * s[SLOT_WORDS]
        at = cluster_barrier_at(s, slot, phase)
        if s[at + M_PHASE] == phase:
            row = take(s, s[ROW])
            for word in range(s[ROW] if row else 0):
                s[row + word] = s[at + CLUSTER_BARRIER_HEAD + word]
            s[entry], s[entry + S_INTERVAL], s[entry + S_ROW] = (
                s[slot + B_BLOCK],
                s[at + M_INTERVAL],
                row,
            )
            known = joined_sets(s, known, s[at + M_KNOWN])
            entry += SET_WORDS
    s[made] = (entry - made - 1) // SET_WORDS
    return int(joined_sets(s, known, made))
