"""Chooses which block and which warp run next: the order in which both machines serve them.

Blocks are resident in slots. A block's warps have turns in rounds: a warp runs until it ends,
waits, or has used up its turn at the end of some lap. After a round, barriers that are full let
theirs go. A block that gets nowhere, or has had many rounds, makes room for another: one that has
not started yet, where there is a free slot, else the next resident one. The launch is dead where
nothing can ever change.

The plan is an array of 64-bit words; so is the state of every warp, and its table (`convergence`).
"""

from __future__ import annotations

from warploom.simt.block_barriers import settle, settle_one, threads_of
from warploom.simt.block_order import block_at, last_block
from warploom.simt.clusters import end_block, settle_cluster
from warploom.simt.convergence import PATIENCE, begin, find_more, pop, start_other_sides
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import (
    ARRIVALS,
    ARRIVED_ONLY,
    AWAITED,
    BARRIER,
    BARRIER_THREADS,
    BARRIER_WAIT,
    BEFORE,
    BEGUN,
    BLOCKED,
    CANCELED,
    CANCELS,
    CHANGES,
    CLUSTER,
    CLUSTER_WAITS,
    CURRENT_BLOCK,
    DEADLOCK,
    DIVERGED_STATUS,
    DONE,
    ENDED,
    EXIT,
    FRESH,
    FROM_TABLE,
    GIVES_WAY,
    HELD,
    HOPELESS,
    HOPELESS_SINCE,
    IDLE,
    INDEPENDENT,
    INSTRUCTION,
    ISSUED,
    LENGTH,
    LOOKED,
    MOST_RESIDENT,
    NEXT_BLOCK,
    POLICY,
    POSITION,
    RESIDENT,
    RESUME,
    ROUND,
    ROUNDS,
    RUNNABLE,
    SEED,
    SLOT,
    SLOTS,
    SPLIT_BARRIER,
    STATE_WORDS,
    STATUS,
    SYNC_WAIT,
    THREADS,
    TIMED,
    TOUCHED,
    TURN_END,
    TURNS,
    WARP_SIZE,
    WARPS,
    Words,
)
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE, RANDOM, choose, scrambled
from warploom.simt.waiting_splits import (
    has_ready,
    is_stuck,
    park,
    park_at_turn_end,
    park_separately,
)
from warploom.simt.warp_table import (
    ARGUMENT,
    ARGUMENT_2,
    ARRIVED,
    AT_BARRIER,
    AT_SYNC,
    BLOCK,
    DIVERGENCES,
    FREE,
    LANES,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    POINT,
    READY,
    TOP,
    Table,
    node_at,
    node_count,
    table_words,
)

TURN = 1 << 12
"""Warp instructions in a turn."""

WHOLE_TURN = 1 << 13
"""The same of a warp whose lanes are together: they cannot wait for each other."""

SHORT_TURN = 64
"""The same under the policies that mix splits thoroughly."""


@jitable
def start_blocks(plan: Words, slots: Words) -> None:
    """Begin with no block resident."""
    plan[RESIDENT] = plan[MOST_RESIDENT] = 0
    plan[SLOT] = NONE
    plan[HOPELESS] = 0
    plan[ROUND] = 0
    plan[HELD] = plan[CLUSTER_WAITS] = plan[CANCELED] = plan[GIVES_WAY] = 0
    plan[TOUCHED] = NONE
    for slot in range(plan[SLOTS]):
        slots[slot] = NONE


@jitable
def turn_length(plan: Words, table: Table) -> int:
    """Returns how many warp instructions a warp may issue before it gives up its turn."""
    if plan[POLICY] == RANDOM:
        return 1 + scrambled(plan[SEED], plan[TURNS]) % SHORT_TURN
    if plan[POLICY] != CONVERGE:
        return SHORT_TURN
    whole = table[TOP] == NONE and table[MASK] == table[LIVE]
    return WHOLE_TURN if whole else TURN


@jitable
def branch_first(plan: Words, table: Table, warp: int) -> int:
    """Returns whether the side that takes a branch runs before the one that falls through, 1 or 0,
    where one runs to its end before the other begins: before 7.0. Nothing promises which."""
    if plan[INDEPENDENT] or plan[POLICY] not in (RANDOM, ADVERSARIAL):
        return 0
    if plan[POLICY] == ADVERSARIAL:
        return 1
    table[DIVERGENCES] += 1
    own = scrambled(plan[SEED], plan[CURRENT_BLOCK] * 64 + warp)
    return scrambled(own, table[DIVERGENCES]) & 1


@jitable
def next_warp(plan: Words, slots: Words, states: Words, tables: Words) -> int:
    """Return the warp that runs next, of the block in CURRENT_BLOCK; DONE or DEADLOCK where none
    can.

    `slots`: the block in each slot. `states`, `tables`: a row for each warp of each slot.
    """
    warps = plan[WARPS]
    while True:
        slot = plan[SLOT]
        if slot == NONE:
            if not enter_slot(plan, slots, states, tables):
                return DONE if plan[RESIDENT] == 0 else DEADLOCK
            continue
        if plan[TOUCHED] != NONE:
            settle_one(plan, states, tables, slot * warps, plan[TOUCHED])
            plan[TOUCHED] = NONE
        while plan[POSITION] < warps:
            warp = warp_in_turn(plan)
            plan[POSITION] += 1
            if can_run(plan, states, tables, slot * warps + warp):
                plan[TURNS] += 1
                plan[LENGTH] = turn_length(plan, tables[slot * warps + warp])
                plan[BEFORE] = plan[CHANGES]
                return warp
        plan[POSITION] = 0
        plan[ROUND] += 1
        outcome = settle(plan, states, tables, slot * warps)
        if plan[CLUSTER_WAITS] and outcome != ENDED:
            found = settle_cluster(plan, slots, states, tables, slot * warps)
            if found == 1:
                outcome = RUNNABLE
            elif found == 2 and outcome == BLOCKED:
                outcome = TURN_END
        if outcome == ENDED:
            end_block(plan, slots, slot)
            plan[HOPELESS] = 0
            plan[SLOT] = NONE
        elif outcome == TURN_END:
            plan[ROUNDS] += 1
            if is_hopeless(plan, states, tables, slot * warps):
                count_hopeless(plan, has_idle(plan, states, slot * warps))
                if plan[HOPELESS] >= plan[RESIDENT] and not can_start(plan):
                    return DEADLOCK
                leave_slot(plan, slots)
            else:
                plan[HOPELESS] = 0
                if plan[ROUNDS] > PATIENCE or plan[GIVES_WAY] or plan[POLICY] != CONVERGE:
                    leave_slot(plan, slots)
        elif outcome == BLOCKED:
            return DEADLOCK
        elif plan[GIVES_WAY]:
            leave_slot(plan, slots)


@jitable
def warp_in_turn(plan: Words) -> int:
    """Return the warp at a position of the round."""
    position, warps = plan[POSITION], plan[WARPS]
    if plan[POLICY] == ADVERSARIAL:
        return warps - 1 - position
    if plan[POLICY] == RANDOM:
        return (position + scrambled(plan[SEED], plan[ROUND])) % warps
    return position


@jitable
def can_start(plan: Words) -> bool:
    """Returns whether another block can begin beside those that are resident."""
    return plan[NEXT_BLOCK] < last_block(plan) and plan[RESIDENT] + plan[HELD] < plan[SLOTS]


@jitable
def enter_slot(plan: Words, slots: Words, states: Words, tables: Words) -> bool:
    """Begin the next block in a free slot."""
    if not can_start(plan):
        return resume_slot(plan, slots, 0)
    slot = free_slot(plan, slots)
    plan[BEGUN] = slot
    slots[slot] = block_at(plan, plan[NEXT_BLOCK])
    plan[NEXT_BLOCK] += 1
    plan[RESIDENT] += 1
    plan[MOST_RESIDENT] = max(plan[MOST_RESIDENT], plan[RESIDENT] + plan[HELD])
    plan[HOPELESS] = 0
    plan[FRESH] = 1
    make_current(plan, slots, slot)
    for warp in range(plan[WARPS]):
        index = slot * plan[WARPS] + warp
        state = states[index]
        state[STATUS] = RUNNABLE
        for word in range(BARRIER_THREADS, STATE_WORDS):
            state[word] = 0
        left = plan[THREADS] - plan[WARP_SIZE] * warp
        live = (1 << min(left, plan[WARP_SIZE])) - 1
        policy = plan[POLICY] if plan[INDEPENDENT] else CONVERGE
        separate = begin(tables[index], live, plan[WARP_SIZE], policy)
        state[RESUME] = FROM_TABLE if separate else 0
        if separate:
            # What follows a table are registers kept from the block before; they start as 0.
            for word in range(table_words(plan[WARP_SIZE]), tables.shape[1]):
                tables[index, word] = 0
    return True


@jitable
def free_slot(plan: Words, slots: Words) -> int:
    """Return the slot of the block that begins next: behind the one before it in its cluster, else
    the first that is free."""
    if plan[NEXT_BLOCK] % plan[CLUSTER] != 0:
        return plan[BEGUN] + 1
    slot = 0
    while slots[slot] != NONE:
        slot += 1
    return slot


@jitable
def make_current(plan: Words, slots: Words, slot: int) -> None:
    plan[SLOT] = slot
    plan[CURRENT_BLOCK] = slots[slot]
    plan[POSITION] = 0
    plan[ROUNDS] = plan[GIVES_WAY] = 0


@jitable
def leave_slot(plan: Words, slots: Words) -> None:
    """Give the next round to another block than the one in the current slot. Where blocks wait for
    each other they have it in turn, so that each is asked before the launch is given up."""
    if can_start(plan) and not holds_back(plan):
        plan[SLOT] = NONE
    elif plan[POLICY] == RANDOM and plan[HOPELESS] == 0:
        resume_slot(plan, slots, scrambled(plan[SEED], plan[ROUND]) % plan[SLOTS])
    else:
        resume_slot(plan, slots, plan[SLOT] + 1)


@jitable
def holds_back(plan: Words) -> bool:
    """Return whether no block begins though there is room for one, so that others can cancel it:
    under the policies that mix blocks, unless those that are there wait for more."""
    if not plan[CANCELS] or plan[HOPELESS] != 0:
        return False
    if plan[POLICY] == RANDOM:
        return scrambled(plan[SEED], plan[ROUND]) & 1 == 1
    return plan[POLICY] == ADVERSARIAL


@jitable
def resume_slot(plan: Words, slots: Words, first: int) -> bool:
    """Make the next occupied slot the current one, from `first` on around."""
    for step in range(plan[SLOTS]):
        slot = (first + step) % plan[SLOTS]
        if slots[slot] >= 0:
            make_current(plan, slots, slot)
            return True
    return False


@jitable
def can_run(plan: Words, states: Words, tables: Words, index: int) -> bool:
    """Returns whether a warp can run now; makes the split current that will."""
    state = states[index]
    if state[STATUS] != RUNNABLE:
        return False
    if state[RESUME] != FROM_TABLE:
        return True
    policy = 0
    if plan[INDEPENDENT]:
        policy = plan[POLICY]
        find_more(tables[index], plan[CHANGES], plan[EXIT])
    if choose(tables[index], policy, plan[SEED] + 64 * index) == NONE:
        state[STATUS] = BLOCKED
        return False
    return True


@jitable
def after_run(plan: Words, state: Words, table: Table, status: int, digest: int) -> None:
    """Take note of why a warp came back. `digest` stands for what its registers hold."""
    state[STATUS] = status if status in (ENDED, BARRIER_WAIT) else RUNNABLE
    block, mask, top = table[BLOCK], table[MASK], table[TOP]
    if status not in (ENDED, BARRIER_WAIT):
        state[RESUME] = FROM_TABLE
    if status == BARRIER_WAIT:
        if state[BARRIER_THREADS] != 0:
            plan[TOUCHED] = state[BARRIER]
        if state[RESUME] == FROM_TABLE:
            park(table, block, mask, top, READY, 0, 0)
    elif status == TURN_END:
        if plan[INDEPENDENT]:
            start_other_sides(table)
        timed = state[TIMED] == LOOKED
        state[TIMED] = IDLE if timed and plan[CHANGES] == plan[BEFORE] else 0
        # Whoever looks at a clock never comes round to where it was.
        idle = state[TIMED] == IDLE
        park_at_turn_end(table, digest ^ state[ISSUED] if timed else digest, plan[CHANGES], idle)
    elif status == SYNC_WAIT:
        park(table, block, mask, top, AT_SYNC, table[ARGUMENT], state[INSTRUCTION])
    elif status == SPLIT_BARRIER:
        if table[ARGUMENT_2] != 0:
            plan[TOUCHED] = table[ARGUMENT]
        park(table, block, mask, top, AT_BARRIER, table[ARGUMENT], table[ARGUMENT_2])
    elif status == ARRIVED_ONLY:
        plan[TOUCHED] = table[ARGUMENT]
        state[ARRIVALS + table[ARGUMENT]] += threads_of(plan, mask)
        state[AWAITED + table[ARGUMENT]] = table[ARGUMENT_2]
        park(table, block, mask, top, READY, 0, 0)
    elif status == DIVERGED_STATUS:
        if plan[POLICY] == ADVERSARIAL:
            scatter(table, block, mask, top)
        else:
            start_other_sides(table)
            park(table, block, mask, top, READY, 0, 0)


@jitable
def scatter(table: Table, block: int, mask: int, node: int) -> None:
    """Set the lanes of a split going one by one, and those of the node that it has just made."""
    while node != NONE:
        at = node_at(node)
        park_separately(table, table[at + POINT], table[at + ARRIVED], NONE)
        park_separately(table, table[at + OTHER_BLOCK], table[at + OTHER_MASK], NONE)
        pop(table, node)
        node = table[TOP]
    park_separately(table, block, mask, NONE)


@jitable
def is_hopeless(plan: Words, states: Words, tables: Words, first: int) -> bool:
    """Returns whether no warp of a block gets anywhere unless somebody else changes memory."""
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        if state[STATUS] == RUNNABLE:
            if state[RESUME] != FROM_TABLE:
                return False
            if not has_ready(tables[warp]) or not is_stuck(tables[warp], plan[CHANGES]):
                return False
            if plan[INDEPENDENT] and has_reserves(tables[warp], plan[EXIT]):
                return False
    return True


@jitable
def count_hopeless(plan: Words, idle: bool) -> None:
    """Count the current block, which gets nowhere. Whoever was counted before memory changed last
    may go on. Time alone may be what an idle one waits for: others go on, and it is no deadlock."""
    if plan[HOPELESS_SINCE] != plan[CHANGES]:
        plan[HOPELESS_SINCE] = plan[CHANGES]
        plan[HOPELESS] = 0
    plan[HOPELESS] = 0 if idle else plan[HOPELESS] + 1


@jitable
def has_idle(plan: Words, states: Words, first: int) -> bool:
    """Returns whether some warp of a block has looked at a clock in vain."""
    for warp in range(first, first + plan[WARPS]):
        if states[warp][STATUS] == RUNNABLE and states[warp][TIMED] == IDLE:
            return True
    return False


@jitable
def has_reserves(table: Table, exit: int) -> bool:
    """Returns whether there are lanes that have not begun, or could stop gathering."""
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            if table[at + OTHER_MASK] != 0:
                return True
            if table[at + ARRIVED] != 0 and table[at + POINT] != exit:
                return True
    return False
