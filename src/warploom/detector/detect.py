"""Processes the events of a launch in the race detector, one after another: checks and records
accesses, and updates what threads know of each other at barriers, fences, copies and launches."""

from __future__ import annotations

from typing import Any

from warploom.detector.accesses import check_access
from warploom.detector.barriers import (
    arrive_at_barrier,
    leave_barrier,
    report_skips,
    sync_warp,
)
from warploom.detector.cluster_barriers import (
    arrive_in_cluster,
    cluster_barrier_at,
    wait_in_cluster,
)
from warploom.detector.copy_completion import commit_group, wait_for_copies
from warploom.detector.launches import trigger_launch, wait_for_launch
from warploom.detector.layout import (
    ACCESS,
    ASYNC_COMMIT,
    ASYNC_WAIT,
    BARRIER_ARRIVE,
    BARRIER_SYNC,
    CLUSTER_ARRIVE,
    CLUSTER_WAIT,
    FENCE,
    LAUNCH_TRIGGER,
    LAUNCH_WAIT,
    PROXY_FENCE,
    TENSOR_FENCE_AFTER,
    TENSOR_FENCE_BEFORE,
    TENSOR_LOADS_WAIT,
    TENSOR_STORES_WAIT,
    WARP_SYNC,
)
from warploom.detector.records import (
    BarrierShadow,
    ClusterBarrierShadow,
    DetectorEvent,
    DetectorState,
    InstructionSite,
    ResidentBlock,
    ThreadKnowledge,
    WarpKnowledge,
)
from warploom.detector.releases import fence, fence_proxies
from warploom.detector.shared_memory_owners import select_own_memory
from warploom.detector.tensor_fences import fence_after, fence_before, wait_for_moves
from warploom.simt.clusters import first_slot, peer_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import ALL_BARRIERS, Plan


def detect_event(
    state_words: Any, event_words: Any, schedule: Any, memory: Any, addresses: Any, data: Any
) -> int:
    """Processes an event of a launch (`layout`: an access or synchronization of a warp), and in
    lockstep advances the warp's time; returns the mask of lanes that may execute it: all, but of an
    access, with MEM, those that `check_access` returns. `schedule` has the schedule's words
    (`simt.schedule_layout`), `memory` all of the host's memory by address, `addresses` those of the
    lanes, or the masks that they name, `data` what they store, element by element."""
    state, event = DetectorState(state_words, 0), DetectorEvent(event_words, 0)
    plan = Plan(schedule, 0)
    own_warp = WarpKnowledge(state, begin_event(state, event, plan))
    admitted = event.lanes
    if event.kind == ACCESS:
        admitted = check_access(state, event, plan, memory, addresses, data)
    else:
        synchronise(state, event, addresses)
    if state.lockstep:
        own_warp.time += 1
    return int(admitted)


@jitable
def begin_event(state: DetectorState, event: DetectorEvent, plan: Plan) -> int:
    """Selects the block, the warp and the instruction of an event (`current_` words of the state),
    and the block's own shared memory; returns the index of the warp's words. If the block's slot is
    still another block's, begins this one, with its cluster; lets lanes that waited at a barrier
    leave it; in lockstep, synchronizes the warp's lanes."""
    state.current_slot = state.slots_at + max(plan.slot, 0) * state.slot_words
    state.current_block = event.block
    state.current_instruction = event.instruction
    state.current_space = 0
    # The slot still has a block that has ended: its successor's first event begins it.
    if ResidentBlock(state, state.current_slot).block != event.block + 1:
        begin_cluster(state, plan)
    state.current_cluster_at = state.current_slot
    if state.cluster_blocks > 1:
        state.current_cluster_at = (
            state.slots_at + first_slot(plan, max(plan.slot, 0)) * state.slot_words
        )
    select_own_memory(state, event)
    own_warp = WarpKnowledge(state, state.current_slot + state.slot_warps, event.warp)
    if own_warp.waiting & event.lanes:
        leave_barrier(state, event.warp, event.lanes)
    if state.lockstep:
        # Each event of a warp in lockstep is a synchronization of its lanes.
        own_warp.synced = own_warp.time
    return int(own_warp.at)


@jitable
def synchronise(state: DetectorState, event: DetectorEvent, masks: Any) -> None:
    """Processes an event that is no access by the function for its kind. `masks` has the mask of
    lanes that each lane of a `bar.warp.sync` names; other kinds ignore it."""
    kind = event.kind
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
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
def begin_cluster(state: DetectorState, plan: Plan) -> None:
    """Begins the current block, and with it all blocks of its cluster, each in its own slot: their
    first events may come later, but others may access their shared memory."""
    own_slot = max(plan.slot, 0)
    first_of_cluster = first_slot(plan, own_slot)
    for rank in range(state.cluster_blocks):
        block = peer_block(plan, state.current_block, own_slot - first_of_cluster, rank)
        begin_block(
            state,
            ResidentBlock(state, state.slots_at + (first_of_cluster + rank) * state.slot_words),
            block,
        )


@jitable
def begin_block(state: DetectorState, slot: ResidentBlock, block: int) -> None:
    """Prepares the state of the slot `slot` for block number `block`: clears what is recorded of
    its warps and of written bytes of shared memory and, with `exact`, of its threads, barriers and
    agents (without it, they are never read). First reports barriers that the slot's last block has
    skipped. Lines of shared memory are reset when they are next accessed, by their tags; clocks by
    their stamps."""
    if slot.block:
        report_skips(state, slot, slot.block - 1)
    clear_words(state, slot.at, ResidentBlock.WORDS)
    slot.block = block + 1
    clear_words(state, slot.at + state.slot_warps, state.warps * WarpKnowledge.WORDS)
    clear_words(state, slot.at + state.slot_written, (state.shared_bytes + 31) // 32)
    if state.exact == 0:
        return
    clear_words(state, slot.at + state.slot_lanes, state.threads * ThreadKnowledge.WORDS)
    for number in range(ALL_BARRIERS):
        clear_words(
            state,
            slot.at + state.slot_barriers + number * (BarrierShadow.WORDS + 2 * state.clock_words),
            BarrierShadow.WORDS,
        )
    clear_words(
        state, slot.at + state.slot_clocks + state.threads * state.clock_words, 2 * state.agents
    )
    if state.slot_after:
        clear_words(state, slot.at + state.slot_after, state.warps * (1 + state.agents))
    if state.slot_cluster_barriers:
        for phase in range(2):
            clear_words(
                state, cluster_barrier_at(state, slot.at, phase), ClusterBarrierShadow.WORDS
            )


@jitable
def clear_words(state: DetectorState, at: int, words: int) -> None:
    """Sets `words` words of the state to zero, from index `at` on."""
    for word in range(at, at + words):
        state.words[word] = 0
