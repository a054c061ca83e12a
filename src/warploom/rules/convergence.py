"""How the lanes of a warp part, wait for each other and meet again.

A warp's table says it all, as an array of 64-bit words that both machines keep: the lanes that
live; the split that runs; the splits that are parked; and the nodes at which lanes that parted will
gather. A node is made where a branch sends lanes both ways: its lanes are expected at the branch's
immediate post-dominator. With one split at a time and no parked ones, the nodes are the
reconvergence stack of compute capabilities below 7.0; from 7.0 on a split that cannot go on is
parked and another goes on in its place (CUDA C++ Programming Guide, "SIMT Architecture").

A warp has 32 lanes. The reference machine can have 64: its words are Python's integers, so that the
highest lane of a mask is no sign.

Compiled code does `push` and `arrive` itself, in the same way; everything rarer is done here.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from warploom.rules.distinct import first_lane, jitable

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
    PARTINGS,
    LANES,
) = range(15)
"""LIVE: lanes that have not exited. MASK, BLOCK, TOP: the lanes of the running split, where it goes
on, its node. FREE: unused nodes, a bit each; PARKED: used splits, a bit each. SEQUENCE numbers what
is parked. HASHED: lanes with a remembered state. SLICES: turns used up since lanes last gathered.
ARGUMENT: what the running split leaves with. PASS: it has waited for its lanes already. VOTE: at a
barrier that counts (`bar.red`), one more than the lanes that it adds; behind it, than the sum; else
0. PARTINGS: how often the seed has chosen which side of a branch goes first. LANES: how
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

CONVERGE, FAIR, RANDOM, ADVERSARIAL = range(4)
"""Policies. CONVERGE runs one side after the other and gathers; FAIR takes short turns; RANDOM
chooses by seed; ADVERSARIAL keeps every lane apart from the others as long as it may."""

PATIENCE = 64
"""Turns that a warp may use up before lanes that gather stop waiting for the others."""


@jitable
def begin(table: Table, live: int, lanes: int, policy: int) -> int:
    """A warp at its start. Answers whether its lanes begin parked."""
    table[LANES] = lanes
    table[LIVE] = live
    table[MASK] = live
    table[BLOCK] = 0
    table[TOP] = NONE
    table[FREE] = (1 << node_count(lanes)) - 1
    table[PARKED] = 0
    table[SEQUENCE] = 0
    table[HASHED] = 0
    table[SLICES] = 0
    table[PASS] = 0
    table[VOTE] = 0
    table[PARTINGS] = 0
    if policy != ADVERSARIAL:
        return 0
    park_apart(table, 0, live, NONE)
    return 1


# ---- places -------------------------------------------------------------------------------------


@jitable
def node_count(lanes: int) -> int:
    """How many nodes a warp has: as many as can part its lanes, and as many again that the last of
    their lanes have left and nobody has unmade yet."""
    return 2 * (lanes - 1)


@jitable
def table_words(lanes: int) -> int:
    """The length of a warp's table."""
    return NODES_AT + node_count(lanes) * NODE_WORDS + lanes * SPLIT_WORDS


@jitable
def node_at(node: int) -> int:
    """Where a node stands in the table."""
    return NODES_AT + node * NODE_WORDS


@jitable
def split_at(table: Table, split: int) -> int:
    """Where the row of a parked split, or of a lane, stands in the table."""
    return NODES_AT + node_count(table[LANES]) * NODE_WORDS + split * SPLIT_WORDS


# ---- nodes --------------------------------------------------------------------------------------


@jitable
def push(
    table: Table,
    point: int,
    expected: int,
    other_block: int,
    other_mask: int,
    branch: int,
    level: int,
) -> None:
    """Make a node for lanes that part, inside that of the running split."""
    node = first_lane(table[FREE])
    table[FREE] &= ~(1 << node)
    at = node_at(node)
    table[at + POINT] = point
    table[at + EXPECTED] = expected
    table[at + ARRIVED] = 0
    table[at + OTHER_BLOCK] = other_block
    table[at + OTHER_MASK] = other_mask
    table[at + BRANCH] = branch
    table[at + LEVEL] = level
    table[at + PARENT] = table[TOP]
    table[TOP] = node


@jitable
def pop(table: Table, node: int) -> None:
    """Unmake a node whose lanes are all there; the running split goes on inside its parent."""
    table[FREE] |= 1 << node
    table[TOP] = table[node_at(node) + PARENT]


@jitable
def start_other_sides(table: Table) -> int:
    """Park every side that has not begun as ready. Answers how many."""
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            if table[at + OTHER_MASK] != 0:
                park(table, table[at + OTHER_BLOCK], table[at + OTHER_MASK], node, READY, 0, 0)
                table[at + OTHER_MASK] = 0
                count += 1
    return count


@jitable
def release_gatherings(table: Table, exit: int) -> int:
    """Let lanes that gather go on without the others. Answers how many nodes they leave.

    A node that nobody is expected at any more, or only by lanes of its own split, stays until they
    arrive.
    """
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            waiting = table[at + ARRIVED]
            if waiting != 0 and table[at + POINT] != exit:
                table[at + EXPECTED] &= ~waiting
                table[at + ARRIVED] = 0
                park(table, table[at + POINT], waiting, table[at + PARENT], READY, 0, 0)
                count += 1
    table[SLICES] = 0
    return count


# ---- parked splits ------------------------------------------------------------------------------


@jitable
def park(
    table: Table, block: int, mask: int, node: int, status: int, argument: int, argument_2: int
) -> int:
    """Put lanes aside that will go on at a block; gives the split's number."""
    split = first_lane(~table[PARKED])
    table[PARKED] |= 1 << split
    at = split_at(table, split)
    table[at + S_MASK] = mask
    table[at + S_BLOCK] = block
    table[at + S_NODE] = node
    table[at + S_STATUS] = status
    table[at + S_ARGUMENT] = argument
    table[at + S_ARGUMENT_2] = argument_2
    table[at + S_ORDER] = table[SEQUENCE]
    table[at + S_STUCK] = NONE
    table[at + S_VOTE] = table[VOTE]
    table[VOTE] = 0
    table[SEQUENCE] += 1
    return split


@jitable
def park_apart(table: Table, block: int, mask: int, node: int) -> None:
    """Put lanes aside one by one."""
    while mask != 0:
        park(table, block, mask & -mask, node, READY, 0, 0)
        mask &= mask - 1


@jitable
def park_at_turn_end(table: Table, digest: int, changes: int, idle: bool) -> None:
    """The running split has used up its turn. `digest` stands for its registers, `changes` for all
    of memory: if both are as at its last turn's end, it goes round without getting anywhere. So it
    does for now where it is `idle`: it waits for the clock."""
    mask = table[MASK]
    lane = first_lane(mask)
    row = split_at(table, lane)
    same = (
        (table[HASHED] >> lane) & 1
        and table[row + L_DIGEST] == digest
        and table[row + L_CHANGES] == changes
    )
    table[HASHED] |= 1 << lane
    table[row + L_DIGEST] = digest
    table[row + L_CHANGES] = changes
    split = park(table, table[BLOCK], mask, table[TOP], READY, 1, 0)
    if same or idle:
        table[split_at(table, split) + S_STUCK] = changes
    table[SLICES] += 1


@jitable
def parked(table: Table, status: int) -> int:
    """The splits, a bit each, that are put aside with a status."""
    found = 0
    left = table[PARKED]
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_STATUS] == status:
            found |= 1 << split
    return found


@jitable
def waiting(table: Table, status: int, argument: int) -> int:
    """The splits, a bit each, that wait at a barrier or for a member mask."""
    found = 0
    left = parked(table, status)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_ARGUMENT] == argument:
            found |= 1 << split
    return found


@jitable
def has_ready(table: Table) -> bool:
    """Whether some split only waits for its turn."""
    return parked(table, READY) != 0


@jitable
def is_stuck(table: Table, changes: int) -> bool:
    """Whether no split that is ready, if any, gets anywhere unless somebody changes memory."""
    left = parked(table, READY)
    while left != 0:
        if table[split_at(table, first_lane(left)) + S_STUCK] != changes:
            return False
        left &= left - 1
    return True


@jitable
def join_synced(table: Table) -> None:
    """Merge the splits that wait at one instruction for the lanes of one member mask, where all of
    these that live are there; lanes that wait at different instructions only stop waiting."""
    left = parked(table, AT_SYNC)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        # Splits that an earlier one has taken along are none any more.
        if (parked(table, AT_SYNC) >> split) & 1:
            members = table[split_at(table, split) + S_ARGUMENT]
            if members & table[LIVE] & ~synced_lanes(table, members) == 0:
                merge_synced(table, split, members)


@jitable
def synced_lanes(table: Table, members: int) -> int:
    """The lanes that wait for this member mask."""
    lanes = 0
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        lanes |= table[split_at(table, first_lane(left)) + S_MASK]
        left &= left - 1
    return lanes


@jitable
def merge_synced(table: Table, first: int, members: int) -> None:
    """All that wait for a member mask are ready; those at one block with split `first` join it."""
    into = split_at(table, first)
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        at = split_at(table, split)
        table[at + S_STATUS] = READY
        table[at + S_ARGUMENT] = 0
        table[at + S_ARGUMENT_2] = 1
        if split != first and table[at + S_BLOCK] == table[into + S_BLOCK]:
            leave_nodes(table, into, at)
            table[into + S_MASK] |= table[at + S_MASK]
            table[PARKED] &= ~(1 << split)


@jitable
def leave_nodes(table: Table, into: int, at: int) -> None:
    """Two splits that join go on inside the innermost node that both are in; what they leave no
    longer expects them."""
    common = table[into + S_NODE]
    while common != NONE and not is_inside(table, table[at + S_NODE], common):
        common = table[node_at(common) + PARENT]
    for split in (into, at):
        node = table[split + S_NODE]
        while node != common:
            table[node_at(node) + EXPECTED] &= ~table[split + S_MASK]
            node = table[node_at(node) + PARENT]
        table[split + S_NODE] = common


@jitable
def is_inside(table: Table, node: int, outer: int) -> bool:
    """Whether a node is another or lies in it."""
    while node != NONE:
        if node == outer:
            return True
        node = table[node_at(node) + PARENT]
    return False


@jitable
def finish_nodes(table: Table, exit: int) -> int:
    """Let lanes go on that are all there, where the last ones that were awaited have left."""
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            there = table[at + ARRIVED]
            if (
                table[at + EXPECTED] == there
                and table[at + OTHER_MASK] == 0
                and table[at + POINT] != exit
            ):
                table[FREE] |= 1 << node
                if there != 0:
                    park(table, table[at + POINT], there, table[at + PARENT], READY, 0, 0)
                    count += 1
    return count


@jitable
def find_more(table: Table, changes: int, exit: int) -> None:
    """Let more lanes run where those that can do not get anywhere: sides that have not begun, else
    lanes that wait for the others to gather."""
    join_synced(table)
    impatient = table[SLICES] > PATIENCE or is_stuck(table, changes)
    if impatient and start_other_sides(table) == 0:
        release_gatherings(table, exit)
        finish_nodes(table, exit)
        join_synced(table)


@jitable
def choose(table: Table, policy: int, seed: int) -> int:
    """Take the next split: its block (also in BLOCK, with MASK and TOP), NONE where none can run.

    CONVERGE and FAIR take what has waited longest, RANDOM any, ADVERSARIAL what came last, but what
    has used up a turn only behind all that has not.
    """
    best = NONE
    best_key = 0
    left = parked(table, READY)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        at = split_at(table, split)
        key = table[at + S_ORDER]
        if policy == RANDOM:
            key = scrambled(seed, table[SEQUENCE] * 64 + split)
        elif policy == ADVERSARIAL and table[at + S_ARGUMENT] == 0:
            key = -1 - key
        if best == NONE or key < best_key:
            best = split
            best_key = key
    if best == NONE:
        return NONE
    at = split_at(table, best)
    table[PARKED] &= ~(1 << best)
    table[MASK] = table[at + S_MASK]
    table[BLOCK] = table[at + S_BLOCK]
    table[TOP] = table[at + S_NODE]
    table[PASS] = table[at + S_ARGUMENT_2]
    table[VOTE] = table[at + S_VOTE]
    return table[BLOCK]


@jitable
def scrambled(seed: int, number: int) -> int:
    """A number in [0, 2^31) that looks random, from two that need not."""
    x = (seed % (1 << 31)) * 1103515245 + (number % (1 << 31)) * 2654435761 % (1 << 62)
    x = (x ^ (x >> 31)) & 0x7FFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0x7FFFFFFF
    return x ^ (x >> 15)
