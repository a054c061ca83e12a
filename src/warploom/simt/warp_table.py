"""The table of a warp: which lanes live, which run, which are parked, and where they gather.

It is an array of 64-bit words that both machines keep (`simt.convergence`): a head, then the
nodes, then a row for each lane. A warp has 32 lanes. The reference machine can have 64: its words
are Python's integers, so that the highest lane of a mask is no sign.
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
    PASS,
    VOTE,
    DIVERGENCES,
    LANES,
) = range(15)
"""LIVE: lanes that have not exited. MASK, BLOCK, TOP: the lanes of the running split, where it goes
on, its node. FREE: unused nodes, a bit each; PARKED: used splits, a bit each. SEQUENCE numbers what
is parked. HASHED: lanes with a remembered state. SLICES: turns used up since lanes last gathered.
ARGUMENT: what the running split leaves with. PASS: it has waited for its lanes already. VOTE: at a
barrier that counts (`bar.red`), one more than the lanes that it adds; behind it, than the sum; else
0. DIVERGENCES: how often the seed has chosen which side of a branch goes first. LANES: how
many the warp has."""

NODES_AT, NODE_WORDS = 16, 8
POINT, EXPECTED, ARRIVED, OTHER_BLOCK, OTHER_MASK, BRANCH, PARENT, LEVEL = range(8)
"""A node: the block where lanes gather, which lanes, which are there; the side that has not begun;
the branch that made it (NONE for all but one of several nodes of one branch); the node around it;
how many calls deep its lanes were, for a block that calls itself is not the same place again."""

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
"""Behind the nodes there is a row for each lane: the parked split of that number, and the state
that is remembered of the lane."""

READY, AT_SYNC, AT_BARRIER = 1, 2, 3
"""What a parked split waits for: its turn, lanes that a member mask names, a barrier."""


@jitable
def node_count(lanes: int) -> int:
    """Returns how many nodes a warp has: `lanes - 1` can part its lanes (`simt.simt_stack`), and as
    many again hold only lanes that have exited."""
    return 2 * (lanes - 1)


@jitable
def table_words(lanes: int) -> int:
    """Return the length of a warp's table."""
    return NODES_AT + node_count(lanes) * NODE_WORDS + lanes * SPLIT_WORDS


@jitable
def node_at(node: int) -> int:
    """Returns the index of a node in the table."""
    return NODES_AT + node * NODE_WORDS


@jitable
def split_at(table: Table, split: int) -> int:
    """Returns the index of the row of a parked split, or of a lane, in the table."""
    return NODES_AT + node_count(table[LANES]) * NODE_WORDS + split * SPLIT_WORDS
