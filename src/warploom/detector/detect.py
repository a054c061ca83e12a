"""Processes the events of a launch in the race detector, one after another: checks and records
accesses, and updates what threads know of each other at barriers, fences, copies and launches."""

from __future__ import annotations

from typing import Any

from warploom.detector.accesses import check_access
from warploom.detector.barriers import arrive_at_barrier, leave_barrier, sync_warp
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
    CLOCK_WORDS,
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
    SHARED_BYTES,
    SITE_WORDS,
    SITES_AT,
    SLOT_AFTER,
    SLOT_BARRIERS,
    SLOT_CLOCKS,
    SLOT_CLUSTER_BARRIERS,
    SLOT_LANES,
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
from warploom.detector.shared_memory_owners import select_own_memory
from warploom.detector.skips import report_skips
from warploom.detector.tensor.copies import commit_group, wait_for_copies
from warploom.detector.tensor.tensor_fences import (
    fence_after,
    fence_before,
    wait_for_moves,
)
from warploom.simt.clusters import first_slot, peer_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import ALL_BARRIERS, SLOT


def detect_event(state: Any, event: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Processes an event of a launch (`layout`: an access or synchronisation of a warp), and in
    lockstep advances the warp's time; returns the mask of lanes that may execute it: all unless an
    access is out of bounds. `plan` is the schedule's words (`simt.schedule_layout`), `memory` all
    of the host's memory by address, `addresses` those of the lanes, or the masks that they name,
    `data` what they store, element by element."""
    warp_at = begin_event(state, event, plan)
    admitted = event[E_LANES]
    if event[E_KIND] == ACCESS:
        admitted = check_access(state, event, plan, memory, addresses, data)
    else:
        synchronise(state, event, addresses)
    if state[LOCKSTEP]:
        state[warp_at + V_TIME] += 1
    return int(admitted)


@jitable
def begin_event(state: Any, event: Any, plan: Any) -> int:
    """Selects the block, the warp and the instruction of an event (ME_ words of the state), and the
    block's own shared memory; returns the index of the warp's words. Begins a block, with its
    cluster, whose slot was another's; lets lanes that waited at a barrier leave it; in lockstep,
    synchronises the warp's lanes."""
    state[ME_SLOT] = state[SLOTS_AT] + max(plan[SLOT], 0) * state[SLOT_WORDS]
    state[ME_BLOCK] = event[E_BLOCK]
    state[ME_INSTRUCTION] = event[E_INSTRUCTION]
    state[ME_SPACE] = 0
    # The slot still has a block that has ended: its successor's first event begins it.
    if state[state[ME_SLOT] + B_BLOCK] != event[E_BLOCK] + 1:
        begin_cluster(state, plan)
    state[ME_CLUSTER_AT] = state[ME_SLOT]
    if state[CLUSTER_BLOCKS] > 1:
        state[ME_CLUSTER_AT] = (
            state[SLOTS_AT] + first_slot(plan, max(plan[SLOT], 0)) * state[SLOT_WORDS]
        )
    select_own_memory(state, event)
    warp_at = state[ME_SLOT] + state[SLOT_WARPS] + event[E_WARP] * WARP_WORDS
    if state[warp_at + V_WAITING] & event[E_LANES]:
        leave_barrier(state, event[E_WARP], event[E_LANES])
    if state[LOCKSTEP]:
        # Each event of a warp in lockstep is a synchronisation of its lanes.
        state[warp_at + V_SYNCED] = state[warp_at + V_TIME]
    return int(warp_at)


@jitable
def synchronise(state: Any, event: Any, masks: Any) -> None:
    """Processes an event that is no access by the function for its kind. `masks` has the mask of
    lanes that each lane of a `bar.warp.sync` names; other kinds ignore it."""
    kind = event[E_KIND]
    flags = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS]
    if kind == BARRIER_SYNC:
        arrive_at_barrier(state, event, 1)
    elif kind == BARRIER_ARRIVE:
        arrive_at_barrier(state, event, 0)
    elif kind == WARP_SYNC:
        sync_warp(state, event, masks)
    elif kind == FENCE:
        fence(state, event, flags)
    elif kind == PROXY_FENCE:
        fence_proxies(state, event)
    elif kind == ASYNC_COMMIT:
        commit_group(state, event, flags)
    elif kind == ASYNC_WAIT:
        wait_for_copies(state, event, flags)
    elif kind == CLUSTER_ARRIVE:
        arrive_in_cluster(state, event, flags)
    elif kind == CLUSTER_WAIT:
        wait_in_cluster(state, event)
    elif kind in (TENSOR_LOADS_WAIT, TENSOR_STORES_WAIT):
        wait_for_moves(state, event, int(kind == TENSOR_STORES_WAIT))
    elif kind == TENSOR_FENCE_BEFORE:
        fence_before(state, event)
    elif kind == TENSOR_FENCE_AFTER:
        fence_after(state, event)
    elif kind == LAUNCH_TRIGGER:
        trigger_launch(state, event)
    elif kind == LAUNCH_WAIT:
        wait_for_launch(state, event)


@jitable
def begin_cluster(state: Any, plan: Any) -> None:
    """Begins the current block, and with it all blocks of its cluster, each in its own slot: their
    first events may come later, but others may access their shared memory."""
    own_slot = max(plan[SLOT], 0)
    first = first_slot(plan, own_slot)
    for rank in range(state[CLUSTER_BLOCKS]):
        block = peer_block(plan, state[ME_BLOCK], own_slot - first, rank)
        begin_block(state, state[SLOTS_AT] + (first + rank) * state[SLOT_WORDS], block)


@jitable
def begin_block(state: Any, slot: int, block: int) -> None:
    """Prepares the state at index `slot` for block number `block`: clears what is recorded of its
    threads, barriers and written bytes of shared memory. First reports barriers that the slot's
    last block has skipped. Lines of shared memory are reset when they are next accessed, by their
    tags."""
    if state[slot + B_BLOCK]:
        report_skips(state, slot, state[slot + B_BLOCK] - 1)
    clear(state, slot, BLOCK_WORDS)
    state[slot + B_BLOCK] = block + 1
    clear(state, slot + state[SLOT_WARPS], state[WARPS] * WARP_WORDS)
    clear(state, slot + state[SLOT_WRITTEN], (state[SHARED_BYTES] + 31) // 32)
    # Only barriers order such kernels: vector clocks and named barriers are never read.
    if state[EXACT] == 0:
        return
    clear(state, slot + state[SLOT_LANES], state[THREADS] * LANE_WORDS)
    for number in range(ALL_BARRIERS):
        clear(
            state,
            slot + state[SLOT_BARRIERS] + number * (BARRIER_HEAD + 2 * state[CLOCK_WORDS]),
            BARRIER_HEAD,
        )
    clear(state, slot + state[SLOT_CLOCKS] + state[THREADS] * state[CLOCK_WORDS], 2 * state[AGENTS])
    if state[SLOT_AFTER]:
        clear(state, slot + state[SLOT_AFTER], state[WARPS] * (1 + state[AGENTS]))
    if state[SLOT_CLUSTER_BARRIERS]:
        for phase in range(2):
            clear(state, cluster_barrier_at(state, slot, phase), CLUSTER_BARRIER_HEAD)


@jitable
def clear(state: Any, at: int, words: int) -> None:
    """Sets `words` words of the state to zero, from index `at` on."""
    for word in range(at, at + words):
        state[word] = 0
