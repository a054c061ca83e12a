"""Names the words of the arrays in which the scheduler of blocks and warps keeps its state: the
*plan* of a launch, and the *state* of each warp.

The *plan* (not the access plan of a compiled access) holds the state of the scheduler for one
launch (one per worker); a warp's *state* holds its status and barriers. Both are arrays of 64-bit
words that the two machines share with `simt.scheduling`.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from warploom.simt.warp_table import NONE

Words = npt.NDArray[Any]

(
    POLICY,
    SEED,
    INDEPENDENT,
    WARPS,
    THREADS,
    BLOCKS,
    SLOTS,
    EXIT,
    CHANGES,
    NEXT_BLOCK,
    RESIDENT,
    SLOT,
    CURRENT_BLOCK,
    FRESH,
    POSITION,
    ROUND,
    STUCK_BLOCKS,
    TURNS,
    LENGTH,
    ROUNDS,
    TOUCHED_BARRIER,
    CHANGES_BEFORE,
    WARP_SIZE,
    MOST_RESIDENT,
    CLUSTER,
    CLUSTER_X,
    CLUSTER_Y,
    GRID_X,
    GRID_Y,
    HELD,
    BEGUN,
    CLUSTER_WAITS,
    STUCK_SINCE,
    CANCELS,
    CANCELED,
    YIELDS_SLOT,
    LAUNCH_REGISTERS,
    LAYOUT_WORDS,
) = range(38)
"""Words of the plan. A round is one turn of each warp of a block.

POLICY, SEED: `simt.split_policy`. INDEPENDENT: each thread has its own program counter (7.0 and
later). WARPS, THREADS: of a block. BLOCKS: of the launch. SLOTS: the blocks that can be resident.
EXIT: the basic block in which kernels end. CHANGES: number of changes of memory so far.
NEXT_BLOCK: position in the order of blocks. RESIDENT: resident blocks. SLOT, CURRENT_BLOCK: the
current block. FRESH: it has just begun. POSITION: warps that have had their turn in this round.
ROUND: number of the round, ROUNDS: rounds of the current block in a row. STUCK_BLOCKS: consecutive
blocks that made no progress in their last round; STUCK_SINCE: CHANGES when these were counted.
TURNS: turns so far; LENGTH: warp instructions allowed in this turn; CHANGES_BEFORE: CHANGES at its
begin. TOUCHED_BARRIER: the barrier with a thread count at which a warp has just arrived, or NONE.
WARP_SIZE in lanes. MOST_RESIDENT: the most blocks that were resident at once; as each takes the
first free slot, no slot beyond has been used. CLUSTER: blocks of a cluster, CLUSTER_X, CLUSTER_Y:
along x and y; GRID_X, GRID_Y: of the grid. HELD: slots of blocks that have ended while others of
their cluster have not. BEGUN: the slot in which a block began last. CLUSTER_WAITS: a thread has
waited at a cluster barrier. CANCELS: blocks of the program cancel clusters; CANCELED: how many were
cancelled, counted from the end of the order. YIELDS_SLOT: the current block has just requested a
cancellation and yields to other blocks. LAUNCH_REGISTERS: registers per thread as the kernel's
directives give them, or 0."""

BARRIERS = 16
"""The number of named barriers of a block (PTX ISA, bar)."""

GROUP_WARPS, GROUP_THREADS = 4, 128
GROUP_BARRIERS = 8
ALL_BARRIERS = BARRIERS + GROUP_BARRIERS
"""GROUP_BARRIERS: the most warp groups of a block. Each has an internal barrier, numbered after the
named ones."""

STATUS, RESUME, BARRIER, BARRIER_THREADS, INSTRUCTION, ISSUED, TIMED, ARRIVALS = range(8)
AWAITED = ARRIVALS + ALL_BARRIERS
CLUSTER_ARRIVED = AWAITED + ALL_BARRIERS
REGISTERS = CLUSTER_ARRIVED + 1
STATE_WORDS = REGISTERS + 1
"""Words of a warp's state. STATUS: RUNNABLE, ENDED, ... below. RESUME: where it resumes (0 at its
start, FROM_TABLE at the block in its table, else a number of the compiled code). BARRIER,
BARRIER_THREADS: the barrier at which all its lanes wait, and the threads that it awaits (0: all).
INSTRUCTION: where it waits. ISSUED: its instructions before this turn. TIMED: CLOCK_READ if it read
a clock in this turn, CLOCK_WAIT if it did so in the turn before and no thread changed memory.
ARRIVALS: for each barrier, its threads that arrived without waiting (`bar.arrive`); AWAITED: the
thread count that they named. CLUSTER_ARRIVED: its lanes that have arrived at the current phase of
the cluster barrier. REGISTERS: registers per thread set by `setmaxnreg` (`simt.register_pool`), or
0."""

CLUSTER_BARRIER = ALL_BARRIERS
"""The barrier number of `barrier.cluster`."""

EMPTY_SLOT, ENDED_BLOCK = NONE, -3
"""Values of a slot without a running block: empty, or its block has ended while others of its
cluster have not."""

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
"""Why a warp returned to the scheduler; RUNNABLE, ENDED and BARRIER_WAIT are also values of STATUS.
BARRIER_WAIT: all lanes wait at a barrier. SPLIT_BARRIER: some lanes do. SYNC_WAIT: lanes wait for a
member mask. TURN_END: its turn is used up. DIVERGED: lanes diverged and the policy decides
which side runs first. RECONVERGING: lanes wait for others at a reconvergence point. ARRIVED_ONLY:
lanes arrived at a barrier without waiting (`bar.arrive`)."""

BLOCKED = RECONVERGING
"""The value of STATUS of a warp whose splits all wait for barriers. Shares a number with
RECONVERGING, which is never stored as a status."""

DONE, DEADLOCK = -1, -2
"""Results of `next_warp` if no warp can run: all blocks have ended, or none can ever progress."""
