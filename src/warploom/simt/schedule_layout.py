"""Lays out the records in which the scheduler of blocks and warps stores its state: the *plan* of a
launch, and the *state* of each warp.

The *plan* (not the access plan of a compiled access) holds the state of the scheduler for one
launch (one per worker); a warp's *state* holds its status and barriers. The two machines share
these records (`warploom.simt.records`) with `simt.scheduling`.
"""

from __future__ import annotations

from typing import Annotated

from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord, Words
from warploom.simt.warp_table import NONE, WarpTable


class Plan(WordRecord):
    """The state of the scheduler for one launch. A round is one turn of each warp of a block."""

    policy: int  # `simt.split_policy`
    seed: int
    independent: int  # each thread has its own program counter (7.0 and later)
    warps: int  # of a block
    threads: int  # of a block
    blocks: int  # of the launch
    slots: int  # the blocks that can be resident
    # Of the slots, those that blocks can begin in: blocks of other kernels occupy the last ones.
    available: int
    # The program reads %smid: blocks take slots as they do on a device (`block_slots.free_slot`).
    by_multiprocessor: int
    ended_clusters: int  # number of clusters (or blocks) that have ended, if `by_multiprocessor`
    exit: int  # the basic block in which kernels end
    changes: int  # number of changes of memory so far
    next_block: int  # position in the order of blocks
    resident: int  # number of resident blocks
    slot: int  # of the current block, or NONE
    current_block: int
    fresh: int  # the current block has just begun
    position: int  # warps that have had their turn in this round
    round: int  # its number
    stuck_blocks: int  # consecutive blocks that made no progress in their last round
    turns: int  # so far
    length: int  # warp instructions allowed in this turn
    rounds: int  # of the current block in a row
    touched_barrier: int  # with a thread count, at which a warp has just arrived, or NONE
    changes_before: int  # `changes` at the begin of the turn
    warp_size: int  # in lanes
    # The most blocks that were resident at once; as each takes the first free slot, no slot beyond
    # has been used.
    most_resident: int
    cluster: int  # blocks of a cluster
    cluster_x: int
    cluster_y: int
    grid_x: int
    grid_y: int
    held: int  # slots of blocks that have ended while others of their cluster have not
    begun: int  # the slot in which a block began last
    cluster_waits: int  # a thread has waited at a cluster barrier
    stuck_since: int  # `changes` when `stuck_blocks` were counted
    cancels: int  # blocks of the program cancel clusters
    canceled: int  # number of cancelled clusters, counted from the end of the order
    yields_slot: int  # the current block has just requested a cancellation, and yields to others
    launch_registers: int  # registers per thread as the kernel's directives give them, or 0
    table_stride: int  # words from the table of one warp to that of the next
    none_ended: int  # no warp of the current block had ended when its turn in warp order began
    # Of teams of blocks (`simt.teams`): the role of the current block, the number of blocks that
    # wait, the site at which they do, and whether they have run together and are to end first.
    team_role: int
    team_waiting: int
    team_site: int
    team_ends: int


BARRIERS = 16
"""The number of named barriers of a block (PTX ISA, bar)."""

GROUP_WARPS, GROUP_THREADS = 4, 128
GROUP_BARRIERS = 8
ALL_BARRIERS = BARRIERS + GROUP_BARRIERS
"""GROUP_BARRIERS: the most warp groups of a block. Each has an internal barrier, numbered after the
named ones."""


class WarpState(WordRecord):
    """The state of a warp in the scheduler."""

    status: int  # RUNNABLE, ENDED, ... below
    # Where it resumes: 0 at its start, FROM_TABLE at the block in its table, else a number of the
    # compiled code.
    resume: int
    barrier: int  # the barrier at which all its lanes wait
    barrier_threads: int  # the threads that this awaits (0: all)
    instruction: int  # where it waits
    issued: int  # its instructions before this turn
    # CLOCK_READ if it read a clock in this turn, CLOCK_WAIT if it did so in the turn before and no
    # thread changed memory.
    timed: int
    arrivals: Annotated[Words, ALL_BARRIERS]  # threads that arrived without waiting (`bar.arrive`)
    awaited: Annotated[Words, ALL_BARRIERS]  # the thread counts that they named
    cluster_arrived: int  # lanes that have arrived at the current phase of the cluster barrier
    # Per thread, set by `setmaxnreg`, or 0; from REQUESTED_AT on those that it waits for
    # (`simt.register_pool`).
    registers: int


CLUSTER_BARRIER = ALL_BARRIERS
"""The barrier number of `barrier.cluster`."""

REGISTER_WAIT = ALL_BARRIERS + 1
"""The barrier number of warps that wait for registers (`setmaxnreg.inc`); in place of a number of
threads, they have that of the registers per thread."""

EMPTY_SLOT, ENDED_BLOCK, FREED_SLOT = NONE, -3, -4
"""Values of a slot without a running block: EMPTY_SLOT, no block has run there; ENDED_BLOCK, its
block has ended while others of its cluster have not; with `by_multiprocessor`, FREED_SLOT - n, the
n-th cluster to end has freed it."""


def slot_words(plan: Plan) -> int:
    """Returns the length of the array of slots: the block in each slot and, with
    `by_multiprocessor`, the slot of each block of the launch."""
    return plan.slots + plan.blocks * plan.by_multiprocessor


def occupied_slots(plan: Plan, slots: Words) -> list[int]:
    """Returns the slots with a block that runs, or that is held for its cluster."""
    values = enumerate(slots[: plan.slots].tolist())
    return [slot for slot, value in values if value >= 0 or value == ENDED_BLOCK]


CLOCK_READ, CLOCK_WAIT = 1, 2

FROM_TABLE = NONE

(
    RUNNABLE,
    ENDED,
    BARRIER_WAIT,
    TURN_END,
    RECONVERGING,
    SYNC_WAIT,
    SPLIT_BARRIER,
    DIVERGED,
    ARRIVED_ONLY,
) = range(9)
"""Why a warp returned to the scheduler; RUNNABLE, ENDED and BARRIER_WAIT are also values of
`WarpState.status`. BARRIER_WAIT: all lanes wait at a barrier. SPLIT_BARRIER: some lanes do.
SYNC_WAIT: lanes wait for a member mask. TURN_END: its turn is used up. DIVERGED: lanes diverged and
the policy decides which side runs first. RECONVERGING: lanes wait for others at a reconvergence
point. ARRIVED_ONLY: lanes arrived at a barrier without waiting (`bar.arrive`)."""

BLOCKED = RECONVERGING
"""The value of `WarpState.status` of a warp whose splits all wait for barriers. Shares a number
with RECONVERGING, which is never stored as a status."""

DONE, DEADLOCK = -1, -2
"""Results of `next_warp` if no warp can run: all blocks have ended, or none can ever progress."""


@jitable
def table_of(plan: Plan, tables: Words, index: int) -> WarpTable:
    """Returns the table of the warp in row `index`."""
    return WarpTable(tables, index * plan.table_stride)
