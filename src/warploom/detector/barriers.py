"""Barriers: what threads learn of each other where they meet.

Source: PTX ISA, "Parallel Synchronization and Communication: bar, barrier, bar.warp.sync".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agents_base, join_words
from warploom.detector.clocks import (
    add_to_row,
    has_row,
    join_rows,
    known_set,
    learn_set,
    row_of_mind,
)
from warploom.detector.cluster_barriers import learn_cluster_barrier
from warploom.detector.knowledge import become
from warploom.detector.layout import (
    AGENTS,
    B_BARRIER_LINE,
    B_INTERVAL,
    B_KNOWN,
    B_NEXT_KNOWN,
    BARRIER_HEAD,
    E_COUNT,
    E_EXISTING,
    E_INSTRUCTION,
    E_LANES,
    E_NUMBER,
    E_WARP,
    EXACT,
    G_ARRIVED,
    G_GENERATION,
    G_KNOWN,
    K_OTHER_BARRIER,
    L_AGENT_STAMP,
    L_GENERATION,
    L_KNOWN_STAMP,
    L_WAITS,
    LOCKSTEP,
    ME_BLOCK,
    ME_INSTRUCTION,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_MIND_AT,
    ME_SLOT,
    ME_THREAD,
    ME_WARP_AT,
    NOT_ALIGNED,
    OF_ALL,
    OF_CLUSTER,
    ROW,
    SITE_LINE,
    SITE_WORDS,
    SITES_AT,
    SLOT_BARRIERS,
    SLOT_WARPS,
    SYNC,
    THREADS,
    TOGETHER,
    TOOLS,
    V_ARRIVED,
    V_INTERVAL,
    V_PASSED,
    V_SYNCED,
    V_TIME,
    V_WAITING,
    WARP_WORDS,
    WARPS,
)
from warploom.detector.other_blocks import joined_sets
from warploom.detector.pool import report
from warploom.detector.skips import look_for_skips, report_skip
from warploom.simt.lane_counts import count_lanes, first_lane, jitable


@jitable
def barrier_at(s: Any, number: int) -> int:
    """Returns where the record of a barrier of some threads begins."""
    return int(s[ME_SLOT] + s[SLOT_BARRIERS] + number * (BARRIER_HEAD + 2 * s[ROW]))


@jitable
def arrive(s: Any, e: Any, waits: int) -> None:
    """Let the lanes of an event arrive at a barrier; if `waits`, they go on when it is complete."""
    warp, lanes, awaited = e[E_WARP], e[E_LANES], e[E_COUNT]
    warp_at = s[ME_SLOT] + s[SLOT_WARPS] + warp * WARP_WORDS
    whole = awaited == 0 or awaited >= s[WARPS] * 32
    left = lanes
    if whole and waits and s[TOGETHER]:
        pass_together(s, e, warp_at)
        return
    if whole:
        count_arrivals(s, warp, lanes)
    if s[EXACT] == 0:
        s[warp_at + V_WAITING] |= lanes * waits
        left = 0
    if not whole and s[barrier_at(s, e[E_NUMBER]) + G_ARRIVED] == 0:
        clear_generation(s, barrier_at(s, e[E_NUMBER]))
    while left:
        become(s, (warp << 5) + first_lane(left))
        left &= left - 1
        if whole:
            arrive_at_whole(s)
        else:
            arrive_at_part(s, e[E_NUMBER])
        if waits:
            s[warp_at + V_WAITING] |= 1 << (s[ME_THREAD] & 31)
            s[s[ME_LANE_AT] + L_WAITS] = 1 + (OF_ALL if whole else e[E_NUMBER])
    if awaited == 0:
        note_line(s, e)
    if not whole:
        came = 32 if s[LOCKSTEP] else count_lanes(lanes)
        finish_part(s, barrier_at(s, e[E_NUMBER]), came, awaited)
    s[warp_at + V_TIME] += 1


@jitable
def pass_together(s: Any, e: Any, warp_at: int) -> None:
    """Let the lanes of an event pass a barrier to which all threads of the block come; the warp has
    passed it when all have."""
    s[warp_at + V_ARRIVED] |= e[E_LANES]
    if s[warp_at + V_ARRIVED] == e[E_EXISTING]:
        s[warp_at + V_ARRIVED] = 0
        s[warp_at + V_PASSED] += 1


@jitable
def count_arrivals(s: Any, warp: int, lanes: int) -> None:
    """Note that some lanes of a warp have come to the barrier of all threads."""
    become(s, (warp << 5) + first_lane(lanes))
    at = s[ME_WARP_AT]
    if s[at + V_INTERVAL] != s[ME_INTERVAL]:
        s[at + V_INTERVAL] = s[ME_INTERVAL]
        s[at + V_ARRIVED] = 0
    s[at + V_ARRIVED] |= lanes


@jitable
def note_line(s: Any, e: Any) -> None:
    """Reports a barrier of all threads that some of them reach at another line."""
    block = s[ME_SLOT]
    other = s[block + B_BARRIER_LINE]
    if other == 0:
        s[block + B_BARRIER_LINE] = e[E_INSTRUCTION] + 1
        return
    if other - 1 == e[E_INSTRUCTION]:
        return
    s[NOT_ALIGNED] = 1
    line = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS + SITE_LINE]
    if s[TOOLS] & SYNC and s[s[SITES_AT] + (other - 1) * SITE_WORDS + SITE_LINE] != line:
        s[ME_INSTRUCTION] = e[E_INSTRUCTION]
        report(s, K_OTHER_BARRIER, other - 1, -1, 0, 0, 0)


@jitable
def arrive_at_whole(s: Any) -> None:
    """Let the current thread come to a barrier of all threads: what it knows of others is known to
    all behind it."""
    block, mind = s[ME_SLOT], s[ME_MIND_AT]
    s[s[ME_LANE_AT] + L_GENERATION] = s[ME_INTERVAL]
    if s[mind + L_KNOWN_STAMP] == s[ME_INTERVAL] + 1:
        s[block + B_NEXT_KNOWN] = joined_sets(s, s[block + B_NEXT_KNOWN], known_set(s))
    if s[mind + L_AGENT_STAMP]:
        join_words(s, agents_base(s) + s[AGENTS], row_of_mind(s) + s[THREADS])


@jitable
def arrive_at_part(s: Any, number: int) -> None:
    """Add what the current thread knows to a barrier of some threads."""
    at = barrier_at(s, number)
    generation = s[at + G_GENERATION]
    s[s[ME_LANE_AT] + L_GENERATION] = generation
    add_to_row(s, at + BARRIER_HEAD + (generation & 1) * s[ROW])
    known = at + G_KNOWN + (generation & 1)
    s[known] = joined_sets(s, s[known], known_set(s))


@jitable
def finish_part(s: Any, at: int, came: int, awaited: int) -> None:
    """Counts threads at a barrier of some; the next generation begins where all have come."""
    s[at + G_ARRIVED] += came
    if s[at + G_ARRIVED] >= awaited:
        s[at + G_ARRIVED] = 0
        s[at + G_GENERATION] += 1


@jitable
def clear_generation(s: Any, at: int) -> None:
    """Forgets what threads of an earlier generation brought to a barrier."""
    odd = s[at + G_GENERATION] & 1
    s[at + G_KNOWN + odd] = 0
    row = at + BARRIER_HEAD + odd * s[ROW]
    for word in range(s[ROW]):
        s[row + word] = 0


@jitable
def depart(s: Any, warp: int, lanes: int) -> None:
    """Lanes that waited at a barrier go on behind it."""
    warp_at = s[ME_SLOT] + s[SLOT_WARPS] + warp * WARP_WORDS
    left = s[warp_at + V_WAITING] & lanes
    s[warp_at + V_WAITING] &= ~lanes
    if s[EXACT] == 0:
        interval = s[s[ME_SLOT] + B_INTERVAL]
        if s[warp_at + V_INTERVAL] == interval and s[warp_at + V_ARRIVED] & left:
            begin_interval(s)
        return
    while left:
        become(s, (warp << 5) + first_lane(left))
        left &= left - 1
        waited = s[s[ME_LANE_AT] + L_WAITS] - 1
        generation = s[s[ME_LANE_AT] + L_GENERATION]
        if waited == OF_ALL:
            if generation == s[ME_INTERVAL]:
                begin_interval(s)
        elif waited == OF_CLUSTER:
            learn_cluster_barrier(s, generation)
        else:
            at = barrier_at(s, waited)
            join_rows(s, row_of_mind(s), at + BARRIER_HEAD + (generation & 1) * s[ROW])
            learn_set(s, s[at + G_KNOWN + (generation & 1)])


@jitable
def begin_interval(s: Any) -> None:
    """Begin an interval: all threads of the block have met."""
    block = s[ME_SLOT]
    look_for_skips(s, block, s[ME_BLOCK])
    s[block + B_INTERVAL] += 1
    s[block + B_BARRIER_LINE] = 0
    if s[EXACT] == 0:
        return
    s[block + B_KNOWN] = joined_sets(s, s[block + B_KNOWN], s[block + B_NEXT_KNOWN])
    s[block + B_NEXT_KNOWN] = 0
    join_words(s, agents_base(s), agents_base(s) + s[AGENTS])


@jitable
def meet(s: Any, e: Any, masks: Any) -> None:
    """Lanes of a warp that name each other meet: `bar.warp.sync`."""
    left = e[E_LANES]
    while left:
        named, lane = masks[first_lane(left)], left & -left
        missing = named & e[E_EXISTING] & ~e[E_LANES]
        if missing and s[LOCKSTEP] == 0:
            report_skip(s, e[E_INSTRUCTION], (e[E_WARP] << 5) + first_lane(missing))
        meet_lanes(s, e, named & left | lane, int(e[E_EXISTING] & ~named == 0))
        left &= ~(named | lane)


@jitable
def meet_lanes(s: Any, e: Any, lanes: int, whole: int) -> None:
    """Let these lanes know from now on what each of them knew; `whole`: all of the warp that
    live."""
    first = e[E_WARP] << 5
    if whole and not any_row(s, first, lanes):
        become(s, first)
        s[s[ME_WARP_AT] + V_TIME] += 1
        s[s[ME_WARP_AT] + V_SYNCED] = s[s[ME_WARP_AT] + V_TIME]
        return
    at = barrier_at(s, 0) - (BARRIER_HEAD + 2 * s[ROW])
    for word in range(BARRIER_HEAD + s[ROW]):
        s[at + word] = 0
    for part in range(2):
        left = lanes
        while left:
            become(s, first + first_lane(left))
            left &= left - 1
            if part == 0:
                add_to_row(s, at + BARRIER_HEAD)
                s[at + G_KNOWN] = joined_sets(s, s[at + G_KNOWN], known_set(s))
            else:
                join_rows(s, row_of_mind(s), at + BARRIER_HEAD)
                learn_set(s, s[at + G_KNOWN])
    s[s[ME_WARP_AT] + V_TIME] += 1
    if whole:
        s[s[ME_WARP_AT] + V_SYNCED] = s[s[ME_WARP_AT] + V_TIME]


@jitable
def any_row(s: Any, first: int, lanes: int) -> int:
    """Returns whether one of these lanes knows more than barriers and warps say."""
    if s[EXACT] == 0:
        return 0
    while lanes:
        become(s, first + first_lane(lanes))
        lanes &= lanes - 1
        if has_row(s) or s[s[ME_MIND_AT] + L_KNOWN_STAMP] == s[ME_INTERVAL] + 1:
            return 1
    return 0
