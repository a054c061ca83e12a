"""Defines the layout of a warp's table, in which both machines store how its lanes have diverged:
live lanes, running split, parked splits, SIMT stack.

It is an array of 64-bit words (`simt.convergence`): a head (`WarpTable`), then the
nodes of the SIMT stack, then a record for each lane. A warp has 32 lanes. The reference machine can
have 64: its words are Python integers, so that the highest lane of a mask is not a sign bit.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord

NONE = -1


class WarpTable(WordRecord, align=16):
    """The head of a warp's table."""

    live: int  # lanes that have not exited
    mask: int  # of the running split: its lanes,
    block: int  # the basic block at which it resumes,
    top: int  # its innermost node
    free: int  # unused nodes, as bits
    parked: int  # parked splits, as bits
    sequence: int  # number of the next split to be parked
    hashed: int  # lanes with a recorded `digest`
    slices: int  # turns used up since reconverging lanes were last released
    argument: int  # operands of the status with which the running split returned to the scheduler
    argument_2: int
    sync_done: int  # the running split has waited at its instruction already
    # Before `bar.red`, 1 plus the lanes whose predicate is true; after it, 1 plus the barrier's
    # count; else 0.
    vote: int
    divergences: int  # branches whose first side the seed has chosen
    lanes: int  # the warp size


class StackNode(WordRecord):
    """A node: an entry of the SIMT stack."""

    point: int  # the basic block at which lanes reconverge
    expected: int  # which lanes
    arrived: int  # those that wait there
    other_block: int  # the side of the branch that has not begun
    other_mask: int
    branch: int  # the branch instruction (NONE for all but one of several nodes of one branch)
    parent: int  # the enclosing node
    # The depth of calls, since in a recursive function the same basic block is a different point at
    # each depth.
    level: int


class Split(WordRecord):
    """The record of each lane: the parked split of that number, and what the lane did last."""

    mask: int
    block: int  # where it resumes
    node: int  # its innermost node
    status: int  # READY, AT_SYNC or AT_BARRIER
    argument: int  # what it waits for
    argument_2: int
    order: int  # of parking
    stuck: int  # `changes` of the plan when it was stuck, else NONE
    vote: int  # as in `WarpTable`
    digest: int  # the lane's register hash at the end of its last turn
    changes: int  # and `changes` of the plan


READY, AT_SYNC, AT_BARRIER = 1, 2, 3
"""Values of `Split.status`: a split waits for its turn, for the lanes of a member mask, or at a
barrier."""


@jitable
def node_count(lanes: int) -> int:
    """Returns the number of nodes (SIMT stack entries) in a table, 2 * (lanes - 1): at most `lanes
    - 1` separate live lanes (`simt.simt_stack`), and as many again can hold only exited lanes."""
    return 2 * (lanes - 1)


@jitable
def table_words(lanes: int) -> int:
    """Returns the number of words of a warp's table."""
    return WarpTable.WORDS + node_count(lanes) * StackNode.WORDS + lanes * Split.WORDS


@jitable
def node_of(table: WarpTable, node: int) -> StackNode:
    """Returns the SIMT stack entry with number `node` of a warp's table."""
    return StackNode(table, table.at + WarpTable.WORDS, node)


@jitable
def split_of(table: WarpTable, split: int) -> Split:
    """Returns the record of parked split (set of lanes) number `split`; also that of lane `split`,
    which shares it (`digest`, `changes`)."""
    splits_at = table.at + WarpTable.WORDS + node_count(table.lanes) * StackNode.WORDS
    return Split(table, splits_at, split)
