"""Begins blocks in the slots of one worker, and chooses the block that runs next: functions that
change the schedule's plan and the block in each slot, for both machines.

A block occupies its slot until it ends. Blocks of a cluster begin together, in neighboring slots.
Parameters are those of `simt.scheduling`."""

from __future__ import annotations

from warploom.simt.block_order import block_at, last_block
from warploom.simt.convergence import begin
from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import clear_record
from warploom.simt.records import Words
from warploom.simt.schedule_layout import ENDED_BLOCK, FROM_TABLE, Plan, WarpState, table_of
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE, RANDOM, hash_pair
from warploom.simt.warp_table import NONE, table_words


@jitable
def start_blocks(plan: Plan, slots: Words) -> None:
    """Initializes the scheduler's state for a launch: all slots are empty, there is no current
    block, and no barrier is touched. `round` (rounds over all slots), `yields_slot`, and the counts
    of resident, held, stuck and cancelled blocks and of waits for a cluster are 0. Leaves
    `next_block`, the first block to begin, to the caller."""
    plan.resident = plan.most_resident = 0
    plan.slot = NONE
    plan.stuck_blocks = 0
    plan.round = 0
    plan.held = plan.cluster_waits = plan.canceled = plan.yields_slot = 0
    plan.ended_clusters = 0
    plan.team_waiting = plan.team_ends = 0
    plan.touched_barrier = NONE
    for slot in range(plan.slots):
        slots[slot] = NONE


@jitable
def can_start(plan: Plan) -> bool:
    """Returns whether another block can begin beside those that are resident: one is left to begin
    (`next_block`), and a slot is neither occupied nor held, nor occupied by other kernels."""
    return plan.next_block < last_block(plan) and plan.resident + plan.held < plan.available


@jitable
def enter_slot(plan: Plan, slots: Words, states: Words, tables: Words) -> bool:
    """Begins the next block (`next_block`, which it advances) in a free slot, if one can start
    (`can_start`), and initializes the state and table of each of its warps; else, or while the
    blocks of a team are to end first (`simt.teams`), resumes the first resident block. Makes that
    block the current one. The slot of a new block is stored as `begun`,
    which `free_slot` reads. Returns False, and changes nothing, if no block can start and none is
    resident.

    With `by_multiprocessor`, `slots` also has the slot of each block, after those of the slots. A
    new block is `fresh`, counts in `resident`, and ends the count of stuck blocks (`stuck_blocks`).
    Its warps begin at block 0 (`resume` 0), or, under ADVERSARIAL from 7.0 on, from their tables
    with each lane a split; then their registers are cleared, which still hold those of the slot's
    last block."""
    if plan.team_ends and resume_slot(plan, slots, 0):
        return True
    plan.team_ends = 0
    if not can_start(plan):
        return resume_slot(plan, slots, 0)
    slot = free_slot(plan, slots)
    plan.begun = slot
    slots[slot] = block_at(plan, plan.next_block)
    if plan.by_multiprocessor:
        slots[plan.slots + slots[slot]] = slot
    plan.next_block += 1
    plan.resident += 1
    plan.most_resident = max(plan.most_resident, plan.resident + plan.held)
    plan.stuck_blocks = 0
    plan.fresh = 1
    make_current(plan, slots, slot)
    for warp in range(plan.warps):
        index = slot * plan.warps + warp
        state, table = WarpState(states, 0, index), table_of(plan, tables, index)
        clear_record(state)
        left = plan.threads - plan.warp_size * warp
        live = (1 << min(left, plan.warp_size)) - 1
        # Before 7.0, a warp has one program counter: its lanes cannot begin as separate splits.
        policy = plan.policy if plan.independent else CONVERGE
        separate = begin(table, live, plan.warp_size, policy)
        state.resume = FROM_TABLE if separate else 0
        if separate:
            # The warp's registers follow its table.
            for word in range(table_words(plan.warp_size), plan.table_stride):
                tables[table.at + word] = 0
    return True


@jitable
def free_slot(plan: Plan, slots: Words) -> int:
    """Returns the slot of the block that begins next, and changes nothing: the one after its
    predecessor's in its cluster, or the first free one if it is the first of a cluster. With
    `by_multiprocessor`, instead the first that was never used, or else the one that has been free
    for longest: the first blocks are spread over all multiprocessors, and each later one gets the
    slot of the next that ends, as on a device. A slot must be free (`can_start`)."""
    if plan.next_block % plan.cluster != 0:
        return plan.begun + 1
    # The slots of a cluster are freed together, so if the first is free, all are.
    if plan.by_multiprocessor:
        return first_free_slot(plan, slots)
    slot = 0
    while slots[slot] != NONE:
        slot += 1
    return slot


@jitable
def first_free_slot(plan: Plan, slots: Words) -> int:
    """Returns the first slot that was never used, or else the one that has been free for
    longest."""
    free_slot = NONE
    for slot in range(plan.available):
        # EMPTY_SLOT is greater than the values of freed slots, which fall with each end.
        is_free = slots[slot] < 0 and slots[slot] != ENDED_BLOCK
        if is_free and (free_slot == NONE or slots[slot] > slots[free_slot]):
            free_slot = slot
    return free_slot


@jitable
def make_current(plan: Plan, slots: Words, slot: int) -> None:
    """Makes the block in a slot the current one (`slot`, `current_block`), at the start of a round
    over its warps (`position` 0); resets the count of its rounds, and that it gives way to other
    slots (`yields_slot`)."""
    plan.slot = slot
    plan.current_block = slots[slot]
    plan.position = 0
    plan.rounds = plan.yields_slot = 0


@jitable
def leave_slot(plan: Plan, slots: Words) -> None:
    """Leaves the current block. If a new one can begin and the policy does not delay it
    (`delays_next_block`), sets `slot` to NONE, and `enter_slot` begins it; else resumes the next
    resident block, which may be the same one, or one chosen by the seed under RANDOM.

    Blocks that are stuck are visited in turn, also under RANDOM, so that each of them has been
    tried before the launch counts as deadlocked.
    """
    # A block that has to wait for others no longer keeps them from beginning.
    plan.team_ends = 0
    if can_start(plan) and not delays_next_block(plan):
        plan.slot = NONE
    elif plan.policy == RANDOM and plan.stuck_blocks == 0:
        resume_slot(plan, slots, hash_pair(plan.seed, plan.round) % plan.slots)
    else:
        resume_slot(plan, slots, plan.slot + 1)


@jitable
def delays_next_block(plan: Plan) -> bool:
    """Returns whether no block begins now although a slot is free, so that running blocks can
    cancel it. False unless blocks of the program cancel clusters (`cancels`), and while a resident
    block is stuck, which may wait for the next block. Otherwise always true under ADVERSARIAL, by a
    hash of seed and round under RANDOM, never under other policies."""
    if not plan.cancels or plan.stuck_blocks != 0:
        return False
    if plan.policy == RANDOM:
        return hash_pair(plan.seed, plan.round) & 1 == 1
    return plan.policy == ADVERSARIAL


@jitable
def resume_slot(plan: Plan, slots: Words, first_candidate: int) -> bool:
    """Makes the block in the next occupied slot the current one, searching cyclically from slot
    `first_candidate`. Returns False, and changes nothing, if no block is resident."""
    for step in range(plan.slots):
        slot = (first_candidate + step) % plan.slots
        if slots[slot] >= 0:
            make_current(plan, slots, slot)
            return True
    return False
