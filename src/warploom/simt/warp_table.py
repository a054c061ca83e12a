"""Defines the layout of a warp's table, in which both machines keep how its lanes have diverged:
live lanes, running split, parked splits, SIMT stack.

It is an array of 64-bit words (`simt.convergence`): a head, then the
nodes of the SIMT stack, then a record for each lane. A warp has 32 lanes. The reference machine can
have 64: its words are Python integers, so that the highest lane of a mask is not a sign bit.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from warploom.simt.lane_counts import jitable

Table = npt.NDArray[Any]

NONE = -1

# The head of a table.
(
    LIVE,
    MASK,
    BLOCK,
    TOP,
    FREE,
    PARKED,
    SEQUENCE,
    HASHED,
    SLICES,
    ARGUMENT,
    ARGUMENT_2,
    SYNC_DONE,
    VOTE,
    DIVERGENCES,
    LANES,
) = range(15)
"""LIVE: lanes that have not exited. MASK, BLOCK, TOP: of the running split, its lanes, the basic
block at which it resumes, its innermost node. FREE: unused nodes, PARKED: parked splits, as bits.
SEQUENCE: number of the next split to be parked. HASHED: lanes with a recorded L_DIGEST. SLICES:
turns used up since reconverging lanes were last released. ARGUMENT, ARGUMENT_2: operands of the
status with which the running split returned to the scheduler. SYNC_DONE: it has waited at its
instruction already. VOTE: before `bar.red`, 1 plus the lanes whose predicate is true; after it, 1
plus the barrier's count; else 0. DIVERGENCES: branches whose first side the seed has chosen. LANES:
the warp size."""

NODES_AT, NODE_WORDS = 16, 8
POINT, EXPECTED, ARRIVED, OTHER_BLOCK, OTHER_MASK, BRANCH, PARENT, LEVEL = range(8)
"""Words of a node. POINT: the basic block at which lanes reconverge; EXPECTED: which lanes;
ARRIVED: those that wait there. OTHER_BLOCK, OTHER_MASK: the side of the branch that has not begun.
BRANCH: the branch instruction (NONE for all but one of several nodes of one branch). PARENT: the
enclosing node. LEVEL: the depth of calls, since in a recursive function the same basic block is a
different point at each depth."""

(
    S_MASK,
    S_BLOCK,
    S_NODE,
    S_STATUS,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_ORDER,
    S_STUCK,
    S_VOTE,
    L_DIGEST,
    L_CHANGES,
    SPLIT_WORDS,
) = range(12)
"""Words of the record of each lane, after the nodes. S_...: the parked split of that number: lanes,
basic block, innermost node, status, what it waits for, parking order, CHANGES when it was stuck
(else NONE), VOTE. L_...: the lane's register hash and CHANGES at the end of its last turn."""

READY, AT_SYNC, AT_BARRIER = 1, 2, 3
"""Values of S_STATUS: a split waits for its turn, for the lanes of a member mask, at a barrier."""


@jitable
def node_count(lanes: int) -> int:
    """Returns the number of nodes (SIMT stack entries) in a table, 2 * (lanes - 1): at most `lanes
    - 1` separate live lanes (`simt.simt_stack`), and as many again can hold only exited lanes."""
    return 2 * (lanes - 1)


@jitable
def table_words(lanes: int) -> int:
    """Returns the number of words of a warp's table."""
    return NODES_AT + node_count(lanes) * NODE_WORDS + lanes * SPLIT_WORDS


@jitable
def node_at(node: int) -> int:
    """Returns the index in the table of the first word of a node (SIMT stack entry)."""
    return NODES_AT + node * NODE_WORDS


@jitable
def split_at(table: Table, split: int) -> int:
    """Returns the index in the table of the first word (S_MASK) of the record of parked split
    `split`; also that of lane `split`, which shares the record (L_DIGEST, L_CHANGES)."""
    return NODES_AT + node_count(table[LANES]) * NODE_WORDS + split * SPLIT_WORDS
