"""The words of a launch's plan and of a warp's state, and the numbers that stand in them.

Both are arrays of 64-bit words that the two machines share with `simt.scheduling`.
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
    HOPELESS,
    TURNS,
    LENGTH,
    ROUNDS,
    TOUCHED,
    BEFORE,
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
    HOPELESS_SINCE,
    CANCELS,
    CANCELED,
    GIVES_WAY,
    LAUNCH_REGISTERS,
    LAYOUT_WORDS,
) = range(38)
"""The plan. INDEPENDENT: each thread has its own program counter (7.0 and later). CHANGES: how
often a kernel has changed memory. FRESH: the current block has just begun. POSITION: how many warps
have had their turn in this round. HOPELESS: blocks in a row that got nowhere in their last round.
TURNS: turns so far. LENGTH: the length of this one. ROUNDS: of the current block in a row. TOUCHED:
the barrier, of those that await a number of threads, at which a warp has just arrived, or NONE.
BEFORE: CHANGES at the begin of this turn. WARP_SIZE in lanes. MOST_RESIDENT: the most blocks that
were at once; as each takes the first free slot, no other slots have been used. CLUSTER: the blocks
of a cluster; CLUSTER_X, CLUSTER_Y: those along x and y; GRID_X, GRID_Y: those of the grid. HELD:
slots of blocks that have ended while others of their cluster have not. BEGUN: the slot in which a
block began last. CLUSTER_WAITS: whether a thread has waited at the barrier of a cluster.
HOPELESS_SINCE: CHANGES when the blocks of HOPELESS were counted. CANCELS:
whether blocks of the program cancel others; CANCELED: clusters that other
blocks have cancelled, the last in the order of the launch. GIVES_WAY: the current block has just
asked for another's work, and lets other blocks have their turn. LAUNCH_REGISTERS of a thread, as
the kernel's directives give them, or 0."""

BARRIERS = 16
"""How many barriers a block has (PTX ISA, bar)."""

GROUP_WARPS, GROUP_THREADS = 4, 128
GROUP_BARRIERS = 8
ALL_BARRIERS = BARRIERS + GROUP_BARRIERS
"""The warp groups of a block at most; each has a barrier of its own, whose number is behind those
that programs name."""

STATUS, RESUME, BARRIER, BARRIER_THREADS, INSTRUCTION, ISSUED, TIMED, ARRIVALS = range(8)
AWAITED = ARRIVALS + ALL_BARRIERS
CLUSTER_ARRIVED = AWAITED + ALL_BARRIERS
REGISTERS = CLUSTER_ARRIVED + 1
STATE_WORDS = REGISTERS + 1
"""A warp's state: what it is; where it goes on (0 at its start, FROM_TABLE where its table says,
else a number of the compiled code); the barrier at which it waits as a whole and the number of
threads that barrier awaits (0: all); the instruction at which it waits. ISSUED: its instructions
before this turn; TIMED: whether it has LOOKED at a clock in this turn, or was IDLE in the one
before: it looked at a clock and nobody changed memory. By barrier, its threads that have ARRIVED
without waiting, and how many those said that the barrier AWAITED. CLUSTER_ARRIVED: its lanes that
have arrived at the phase of the cluster's barrier which is not complete. REGISTERS of each of its
threads, where it has named them (`simt.register_pool`), else 0."""

CLUSTER_BARRIER = ALL_BARRIERS
"""The number under which lanes wait at the barrier of their cluster."""

NONE_BEGUN, ENDED_BLOCK = NONE, -3
"""What a slot holds instead of a block: none, or one that has ended while others of its cluster
have not."""

LOOKED, IDLE = 1, 2

FROM_TABLE = NONE

(
    RUNNABLE,
    ENDED,
    BARRIER_WAIT,
    TURN_END,
    GATHERS,
    SYNC_WAIT,
    SPLIT_BARRIER,
    DIVERGED_STATUS,
    ARRIVED_ONLY,
) = range(9)
"""Why a warp came back. PARTED: lanes go two ways and the policy decides who goes first; GATHERS:
lanes wait for others where they parted; SPLIT_BARRIER: some lanes wait at a barrier; ARRIVED_ONLY:
they have arrived at one that they do not wait at."""

BLOCKED = GATHERS
"""In a state: none of the warp's splits can run until a barrier lets them."""

DONE, DEADLOCK = -1, -2
"""Answers of `next_warp` beside a warp's number."""
