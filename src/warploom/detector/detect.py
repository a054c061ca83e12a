"""Takes one event after another: checks each access, and keeps who knows of whom up to date."""

from __future__ import annotations

from typing import Any

from warploom.detector.accesses import access
from warploom.detector.barriers import arrive, depart, meet
from warploom.detector.cluster_barriers import (
    arrive_in_cluster,
    cluster_barrier_at,
    wait_in_cluster,
)
from warploom.detector.launches import trigger_launch, wait_for_launch
from warploom.detector.layout import (
    ACCESS,
    AGENTS,
    ASYNC_COMMIT,
    ASYNC_WAIT,
    B_BLOCK,
    BARRIER_ARRIVE,
    BARRIER_HEAD,
    BARRIER_SYNC,
    BLOCK_WORDS,
    CLUSTER_ARRIVE,
    CLUSTER_BARRIER_HEAD,
    CLUSTER_BLOCKS,
    CLUSTER_WAIT,
    E_BLOCK,
    E_INSTRUCTION,
    E_KIND,
    E_LANES,
    E_WARP,
    EXACT,
    FENCE,
    LANE_WORDS,
    LAUNCH_TRIGGER,
    LAUNCH_WAIT,
    LOCKSTEP,
    ME_BLOCK,
    ME_CLUSTER_AT,
    ME_INSTRUCTION,
    ME_SLOT,
    ME_SPACE,
    PROXY_FENCE,
    ROW,
    SHARED_BYTES,
    SITE_WORDS,
    SITES_AT,
    SLOT_AFTER,
    SLOT_BARRIERS,
    SLOT_CLUSTER_BARRIERS,
    SLOT_LANES,
    SLOT_ROWS,
    SLOT_WARPS,
    SLOT_WORDS,
    SLOT_WRITTEN,
    SLOTS_AT,
    TENSOR_FENCE_AFTER,
    TENSOR_FENCE_BEFORE,
    TENSOR_LOADS_WAIT,
    TENSOR_STORES_WAIT,
    THREADS,
    V_SYNCED,
    V_TIME,
    V_WAITING,
    WARP_SYNC,
    WARP_WORDS,
    WARPS,
)
from warploom.detector.releases import fence, fence_proxies
from warploom.detector.shared_memory_owners import stay
from warploom.detector.skips import look_for_skips
from warploom.detector.tensor.copies import commit, wait_for_copies
from warploom.detector.tensor.tensor_fences import (
    fence_after,
    fence_before,
    wait_for_moves,
)
from warploom.simt.clusters import first_slot, peer_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import ALL_BARRIERS, SLOT


def detect_event(s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Takes an event `e` (`words`) of a launch whose state is `s`; returns the lanes that may do
    what it says. `plan` is the schedule's, `memory` all of the host's by address, `addresses` those
    of the lanes, or the masks that they name, `data` what they store, element by element."""
    warp_at = begin_event(s, e, plan)
    kept = e[E_LANES]
    if e[E_KIND] == ACCESS:
        kept = access(s, e, plan, memory, addresses, data)
    else:
        synchronise(s, e, addresses)
    if s[LOCKSTEP]:
        s[warp_at + V_TIME] += 1
    return int(kept)


@jitable
def begin_event(s: Any, e: Any, plan: Any) -> int:
    """Turn to the block and the warp of an event; return where the warp's words are."""
    s[ME_SLOT] = s[SLOTS_AT] + max(plan[SLOT], 0) * s[SLOT_WORDS]
    s[ME_BLOCK] = e[E_BLOCK]
    s[ME_INSTRUCTION] = e[E_INSTRUCTION]
    s[ME_SPACE] = 0
    if s[s[ME_SLOT] + B_BLOCK] != e[E_BLOCK] + 1:
        begin_cluster(s, plan)
    s[ME_CLUSTER_AT] = s[ME_SLOT]
    if s[CLUSTER_BLOCKS] > 1:
        s[ME_CLUSTER_AT] = s[SLOTS_AT] + first_slot(plan, max(plan[SLOT], 0)) * s[SLOT_WORDS]
    stay(s, e)
    warp_at = s[ME_SLOT] + s[SLOT_WARPS] + e[E_WARP] * WARP_WORDS
    if s[warp_at + V_WAITING] & e[E_LANES]:
        depart(s, e[E_WARP], e[E_LANES])
    if s[LOCKSTEP]:
        s[warp_at + V_SYNCED] = s[warp_at + V_TIME]
    return int(warp_at)


@jitable
def synchronise(s: Any, e: Any, masks: Any) -> None:
    """Takes an event that is no access."""
    kind = e[E_KIND]
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    if kind == BARRIER_SYNC:
        arrive(s, e, 1)
    elif kind == BARRIER_ARRIVE:
        arrive(s, e, 0)
    elif kind == WARP_SYNC:
        meet(s, e, masks)
    elif kind == FENCE:
        fence(s, e, flags)
    elif kind == PROXY_FENCE:
        fence_proxies(s, e)
    elif kind == ASYNC_COMMIT:
        commit(s, e, flags)
    elif kind == ASYNC_WAIT:
        wait_for_copies(s, e, flags)
    elif kind == CLUSTER_ARRIVE:
        arrive_in_cluster(s, e, flags)
    elif kind == CLUSTER_WAIT:
        wait_in_cluster(s, e)
    elif kind in (TENSOR_LOADS_WAIT, TENSOR_STORES_WAIT):
        wait_for_moves(s, e, int(kind == TENSOR_STORES_WAIT))
    elif kind == TENSOR_FENCE_BEFORE:
        fence_before(s, e)
    elif kind == TENSOR_FENCE_AFTER:
        fence_after(s, e)
    elif kind == LAUNCH_TRIGGER:
        trigger_launch(s, e)
    elif kind == LAUNCH_WAIT:
        wait_for_launch(s, e)


@jitable
def begin_cluster(s: Any, plan: Any) -> None:
    """Begin the current block, and with it all blocks of its cluster."""
    own = max(plan[SLOT], 0)
    first = first_slot(plan, own)
    for rank in range(s[CLUSTER_BLOCKS]):
        block = peer_block(plan, s[ME_BLOCK], own - first, rank)
        begin_block(s, s[SLOTS_AT] + (first + rank) * s[SLOT_WORDS], block)


@jitable
def begin_block(s: Any, slot: int, block: int) -> None:
    """Begin a block, whose state is to be at `slot`: nothing is known of anybody."""
    if s[slot + B_BLOCK]:
        look_for_skips(s, slot, s[slot + B_BLOCK] - 1)
    clear(s, slot, BLOCK_WORDS)
    s[slot + B_BLOCK] = block + 1
    clear(s, slot + s[SLOT_WARPS], s[WARPS] * WARP_WORDS)
    clear(s, slot + s[SLOT_WRITTEN], (s[SHARED_BYTES] + 31) // 32)
    if s[EXACT] == 0:
        return
    clear(s, slot + s[SLOT_LANES], s[THREADS] * LANE_WORDS)
    for number in range(ALL_BARRIERS):
        clear(s, slot + s[SLOT_BARRIERS] + number * (BARRIER_HEAD + 2 * s[ROW]), BARRIER_HEAD)
    clear(s, slot + s[SLOT_ROWS] + s[THREADS] * s[ROW], 2 * s[AGENTS])
    if s[SLOT_AFTER]:
        clear(s, slot + s[SLOT_AFTER], s[WARPS] * (1 + s[AGENTS]))
    if s[SLOT_CLUSTER_BARRIERS]:
        for phase in range(2):
            clear(s, cluster_barrier_at(s, slot, phase), CLUSTER_BARRIER_HEAD)


@jitable
def clear(s: Any, at: int, words: int) -> None:
    """Sets so many words to zero."""
    for word in range(at, at + words):
        s[word] = 0
