"""Schedules the blocks and warps of a launch on one worker: functions that both machines
(interpreter and compiled kernels) call, so that they use the same order.

Resident blocks occupy slots. The warps of the current block have turns in rounds: a warp runs until
it ends, waits, or has used up its turn at the end of a loop iteration. After a round, full barriers
release their threads. A block that makes no progress, or has had many rounds, is switched for
another: a new one if a slot is free, else the next resident one. The launch is deadlocked if no
resident block can progress and none can begin.

    one block of two warps, `while (flag == 0)` in warp 0:   turn of warp 0 (ends stuck), turn of
    warp 1 (sets the flag), turn of warp 0 (leaves the loop), ...

`plan`: the state of the launch, `states`: a row for each warp (`simt.schedule_layout`); `tables`:
the lanes of each warp (`simt.warp_table`). Rows are numbered slot * WARPS + warp; `first` is the
row of a block's first warp.
"""

from __future__ import annotations

from warploom.simt.block_barriers import (
    complete_barrier_if_full,
    complete_full_barriers,
    count_threads,
)
from warploom.simt.block_order import block_at, last_block
from warploom.simt.clusters import end_block, release_cluster_waits
from warploom.simt.convergence import TURN_LIMIT, begin, pop, release_more_lanes, start_other_sides
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import (
    ARRIVALS,
    ARRIVED_ONLY,
    AWAITED,
    BARRIER,
    BARRIER_THREADS,
    BARRIER_WAIT,
    BEGUN,
    BLOCKED,
    CANCELED,
    CANCELS,
    CHANGES,
    CHANGES_BEFORE,
    CLOCK_READ,
    CLOCK_WAIT,
    CLUSTER,
    CLUSTER_WAITS,
    CURRENT_BLOCK,
    DEADLOCK,
    DIVERGED,
    DONE,
    ENDED,
    EXIT,
    FRESH,
    FROM_TABLE,
    HELD,
    INDEPENDENT,
    INSTRUCTION,
    ISSUED,
    LENGTH,
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
    STUCK_BLOCKS,
    STUCK_SINCE,
    SYNC_WAIT,
    THREADS,
    TIMED,
    TOUCHED_BARRIER,
    TURN_END,
    TURNS,
    WARP_SIZE,
    WARPS,
    YIELDS_SLOT,
    Words,
)
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE, RANDOM, hash_pair, resume_next_split
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
"""Warp instructions in a turn of a diverged warp, by default."""

WHOLE_TURN = 1 << 13
"""Warp instructions in a turn of a converged warp: longer, as its lanes cannot wait for each
other."""

SHORT_TURN = 64
"""The most warp instructions in a turn under the policies FAIR, RANDOM and ADVERSARIAL, which
interleave splits finely."""


@jitable
def start_blocks(plan: Words, slots: Words) -> None:
    """Initialises the scheduler's state for a launch: all slots empty, no current block, no barrier
    touched; 0 for the counts of resident blocks and their most, of held, stuck and cancelled
    blocks, of waits for a cluster, of rounds over all slots (ROUND), and for YIELDS_SLOT. Leaves
    NEXT_BLOCK, the first block to begin, to the caller."""
    plan[RESIDENT] = plan[MOST_RESIDENT] = 0
    plan[SLOT] = NONE
    plan[STUCK_BLOCKS] = 0
    plan[ROUND] = 0
    plan[HELD] = plan[CLUSTER_WAITS] = plan[CANCELED] = plan[YIELDS_SLOT] = 0
    plan[TOUCHED_BARRIER] = NONE
    for slot in range(plan[SLOTS]):
        slots[slot] = NONE


@jitable
def turn_length(plan: Words, table: Table) -> int:
    """Returns the most warp instructions that a warp may issue in this turn: 1 to SHORT_TURN by a
    hash of seed and turn under RANDOM, SHORT_TURN under FAIR and ADVERSARIAL; under CONVERGE
    WHOLE_TURN if all its live lanes run together with no SIMT stack node, else TURN."""
    if plan[POLICY] == RANDOM:
        return 1 + hash_pair(plan[SEED], plan[TURNS]) % SHORT_TURN
    if plan[POLICY] != CONVERGE:
        return SHORT_TURN
    whole = table[TOP] == NONE and table[MASK] == table[LIVE]
    return WHOLE_TURN if whole else TURN


@jitable
def branch_first(plan: Words, table: Table, warp: int) -> int:
    """Returns 1 if the taken side of a divergent branch runs before the fall-through side, else 0:
    1 under ADVERSARIAL, a bit hashed from the seed, the warp and the number of its divergent
    branches (DIVERGENCES, which it increments) under RANDOM, 0 under the others and always from 7.0
    on.

    Below compute capability 7.0 one side runs to the reconvergence point before the other begins;
    which is first is unspecified."""
    if plan[INDEPENDENT] or plan[POLICY] not in (RANDOM, ADVERSARIAL):
        return 0
    if plan[POLICY] == ADVERSARIAL:
        return 1
    table[DIVERGENCES] += 1
    # Blocks have at most 32 warps, so with 64 numbers a block no two warps share one.
    own = hash_pair(plan[SEED], plan[CURRENT_BLOCK] * 64 + warp)
    return hash_pair(own, table[DIVERGENCES]) & 1


@jitable
def next_warp(plan: Words, slots: Words, states: Words, tables: Words) -> int:
    """Returns the warp of CURRENT_BLOCK (its number in the block) that runs next, counts its turn
    (TURNS), sets LENGTH to the turn's length and CHANGES_BEFORE to CHANGES; DONE if every block has
    ended, DEADLOCK if all warps of the block wait at its own barriers, or resident blocks remain,
    none of which can progress, and none can begin.

    Gives each warp of the current block a turn; then completes full barriers, and ends the block if
    its warps have ended. Switches to another block if this one is stuck, has had more than
    TURN_LIMIT rounds or cancels a cluster, and after every round unless the policy is CONVERGE.
    `slots` holds the block in each slot.
    """
    warps = plan[WARPS]
    while True:
        slot = plan[SLOT]
        if slot == NONE:
            if not enter_slot(plan, slots, states, tables):
                return DONE if plan[RESIDENT] == 0 else DEADLOCK
            continue
        # A barrier with a thread count is completed as soon as it is full, before the end of the
        # round: other warps of the block may have nothing to do with it.
        if plan[TOUCHED_BARRIER] != NONE:
            complete_barrier_if_full(plan, states, tables, slot * warps, plan[TOUCHED_BARRIER])
            plan[TOUCHED_BARRIER] = NONE
        while plan[POSITION] < warps:
            warp = warp_at_position(plan)
            plan[POSITION] += 1
            if can_run(plan, states, tables, slot * warps + warp):
                plan[TURNS] += 1
                plan[LENGTH] = turn_length(plan, tables[slot * warps + warp])
                plan[CHANGES_BEFORE] = plan[CHANGES]
                return warp
        plan[POSITION] = 0
        plan[ROUND] += 1
        outcome = complete_full_barriers(plan, states, tables, slot * warps)
        if plan[CLUSTER_WAITS] and outcome != ENDED:
            released = release_cluster_waits(plan, slots, states, tables, slot * warps)
            if released == 1:
                outcome = RUNNABLE
            elif released == 2 and outcome == BLOCKED:
                # Another block of the cluster can release it: that is no deadlock yet.
                outcome = TURN_END
        if outcome == ENDED:
            end_block(plan, slots, slot)
            plan[STUCK_BLOCKS] = 0
            plan[SLOT] = NONE
        elif outcome == TURN_END:
            plan[ROUNDS] += 1
            if is_block_stuck(plan, states, tables, slot * warps):
                # Every resident block stuck, with no change of memory between: a deadlock.
                count_stuck_block(plan, has_clock_wait(plan, states, slot * warps))
                if plan[STUCK_BLOCKS] >= plan[RESIDENT] and not can_start(plan):
                    return DEADLOCK
                leave_slot(plan, slots)
            else:
                plan[STUCK_BLOCKS] = 0
                if plan[ROUNDS] > TURN_LIMIT or plan[YIELDS_SLOT] or plan[POLICY] != CONVERGE:
                    leave_slot(plan, slots)
        elif outcome == BLOCKED:
            # All warps wait at barriers of their block, which no other block can complete.
            return DEADLOCK
        elif plan[YIELDS_SLOT]:
            leave_slot(plan, slots)


@jitable
def warp_at_position(plan: Words) -> int:
    """Returns the warp at the current POSITION of the round: in order, reversed under ADVERSARIAL,
    rotated by a hash of the seed and the round under RANDOM."""
    position, warps = plan[POSITION], plan[WARPS]
    if plan[POLICY] == ADVERSARIAL:
        return warps - 1 - position
    if plan[POLICY] == RANDOM:
        return (position + hash_pair(plan[SEED], plan[ROUND])) % warps
    return position


@jitable
def can_start(plan: Words) -> bool:
    """Returns whether another block can begin beside those that are resident."""
    return plan[NEXT_BLOCK] < last_block(plan) and plan[RESIDENT] + plan[HELD] < plan[SLOTS]


@jitable
def enter_slot(plan: Words, slots: Words, states: Words, tables: Words) -> bool:
    """Begins the next block (NEXT_BLOCK, which it advances) in a free slot, if one can start
    (`can_start`), with the state and table of each of its warps initialised; or else resumes the
    first resident block. Makes it the current block. Returns False if there is neither.

    A new block is FRESH, counts in RESIDENT, and ends the count of stuck blocks (STUCK_BLOCKS). Its
    warps begin at block 0 (RESUME 0), or, under ADVERSARIAL from 7.0 on, from their tables with
    each lane a split; then their registers are cleared, as those of the slot's last block are still
    there.
    """
    if not can_start(plan):
        return resume_slot(plan, slots, 0)
    slot = free_slot(plan, slots)
    plan[BEGUN] = slot
    slots[slot] = block_at(plan, plan[NEXT_BLOCK])
    plan[NEXT_BLOCK] += 1
    plan[RESIDENT] += 1
    plan[MOST_RESIDENT] = max(plan[MOST_RESIDENT], plan[RESIDENT] + plan[HELD])
    plan[STUCK_BLOCKS] = 0
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
        # Before 7.0, a warp has one program counter: its lanes cannot begin as separate splits.
        policy = plan[POLICY] if plan[INDEPENDENT] else CONVERGE
        separate = begin(tables[index], live, plan[WARP_SIZE], policy)
        state[RESUME] = FROM_TABLE if separate else 0
        if separate:
            # The warp's registers follow its table.
            for word in range(table_words(plan[WARP_SIZE]), tables.shape[1]):
                tables[index, word] = 0
    return True


@jitable
def free_slot(plan: Words, slots: Words) -> int:
    """Returns the slot of the block that begins next, and changes nothing: the one after its
    predecessor's in its cluster, or the first free one if it is the first of a cluster. A slot must
    be free (`can_start`)."""
    if plan[NEXT_BLOCK] % plan[CLUSTER] != 0:
        return plan[BEGUN] + 1
    # The slots of a cluster are freed together, so if the first is free, all are.
    slot = 0
    while slots[slot] != NONE:
        slot += 1
    return slot


@jitable
def make_current(plan: Words, slots: Words, slot: int) -> None:
    """Makes the block in a slot the current one (SLOT, CURRENT_BLOCK), at the start of a round over
    its warps (POSITION 0); resets the count of its rounds, and that it gives way to other slots
    (YIELDS_SLOT)."""
    plan[SLOT] = slot
    plan[CURRENT_BLOCK] = slots[slot]
    plan[POSITION] = 0
    plan[ROUNDS] = plan[YIELDS_SLOT] = 0


@jitable
def leave_slot(plan: Words, slots: Words) -> None:
    """Leaves the current block. If a new one can begin and the policy does not delay it
    (`delays_next_block`), sets SLOT to NONE, and `enter_slot` begins it; else resumes the next
    resident block, which may be the same one, or one chosen by the seed under RANDOM.

    Blocks that are stuck are visited in turn, also under RANDOM, so that each of them has been
    tried before the launch counts as deadlocked.
    """
    if can_start(plan) and not delays_next_block(plan):
        plan[SLOT] = NONE
    elif plan[POLICY] == RANDOM and plan[STUCK_BLOCKS] == 0:
        resume_slot(plan, slots, hash_pair(plan[SEED], plan[ROUND]) % plan[SLOTS])
    else:
        resume_slot(plan, slots, plan[SLOT] + 1)


@jitable
def delays_next_block(plan: Words) -> bool:
    """Returns whether no block begins now although a slot is free, so that running blocks can
    cancel it. Only if blocks of the program cancel clusters (CANCELS) and no resident block is
    stuck, as it may wait for the next one: always under ADVERSARIAL, by a hash of seed and round
    under RANDOM, never under other policies."""
    if not plan[CANCELS] or plan[STUCK_BLOCKS] != 0:
        return False
    if plan[POLICY] == RANDOM:
        return hash_pair(plan[SEED], plan[ROUND]) & 1 == 1
    return plan[POLICY] == ADVERSARIAL


@jitable
def resume_slot(plan: Words, slots: Words, first: int) -> bool:
    """Makes the block in the next occupied slot the current one, searching cyclically from slot
    `first`. Returns False, and changes nothing, if no block is resident."""
    for step in range(plan[SLOTS]):
        slot = (first + step) % plan[SLOTS]
        if slots[slot] >= 0:
            make_current(plan, slots, slot)
            return True
    return False


@jitable
def can_run(plan: Words, states: Words, tables: Words, index: int) -> bool:
    """Returns whether the warp in row `index` can run now: only if it is RUNNABLE and resumes in
    compiled code, or resumes from its table and one of its splits (lanes that execute together) is
    ready, which becomes the running one; without a ready split it becomes BLOCKED. From 7.0 on,
    lanes that wait too long for others are released first."""
    state = states[index]
    if state[STATUS] != RUNNABLE:
        return False
    if state[RESUME] != FROM_TABLE:
        return True
    policy = 0
    if plan[INDEPENDENT]:
        policy = plan[POLICY]
        release_more_lanes(tables[index], plan[CHANGES], plan[EXIT])
    # A seed of its own for each warp.
    if resume_next_split(tables[index], policy, plan[SEED] + 64 * index) == NONE:
        state[STATUS] = BLOCKED
        return False
    return True


@jitable
def after_run(plan: Words, state: Words, table: Table, status: int, digest: int) -> None:
    """Updates a warp's state and table after it returned to the scheduler with `status`. ENDED and
    BARRIER_WAIT (it waits whole) become its status, and nothing is parked but the split of a
    waiting warp that resumes from its table. With others it stays RUNNABLE and resumes from its
    table, where the running split (lanes that execute together) is parked as ready, or with the
    barrier or member mask that it waits for (with RECONVERGING nothing is parked: its lanes wait at
    a node). Records arrivals at barriers with a thread count (TOUCHED_BARRIER; ARRIVALS and AWAITED
    for `bar.arrive`). With DIVERGED, under ADVERSARIAL each lane becomes a split of its own; else,
    and from 7.0 on at the end of a turn, pending sides of branches become ready, too. `digest`: a
    hash of the warp's registers; a split that ends a turn with the digest of its last turn makes no
    progress, unless it reads the clock (TIMED)."""
    state[STATUS] = status if status in (ENDED, BARRIER_WAIT) else RUNNABLE
    block, mask, top = table[BLOCK], table[MASK], table[TOP]
    if status not in (ENDED, BARRIER_WAIT):
        state[RESUME] = FROM_TABLE
    if status == BARRIER_WAIT:
        if state[BARRIER_THREADS] != 0:
            plan[TOUCHED_BARRIER] = state[BARRIER]
        # Ready, but STATUS keeps the warp from running: it resumes there once it is released.
        if state[RESUME] == FROM_TABLE:
            park(table, block, mask, top, READY, 0, 0)
    elif status == TURN_END:
        # From 7.0 on, all sides of a branch progress: pending ones get turns of their own.
        if plan[INDEPENDENT]:
            start_other_sides(table)
        has_read_clock = state[TIMED] == CLOCK_READ
        state[TIMED] = CLOCK_WAIT if has_read_clock and plan[CHANGES] == plan[CHANGES_BEFORE] else 0
        # A loop that reads the clock can end by the time alone, so equal registers do not mean that
        # it repeats forever: ISSUED makes the hash differ from turn to turn.
        waits_for_clock = state[TIMED] == CLOCK_WAIT
        park_at_turn_end(
            table,
            digest ^ state[ISSUED] if has_read_clock else digest,
            plan[CHANGES],
            waits_for_clock,
        )
    elif status == SYNC_WAIT:
        park(table, block, mask, top, AT_SYNC, table[ARGUMENT], state[INSTRUCTION])
    elif status == SPLIT_BARRIER:
        if table[ARGUMENT_2] != 0:
            plan[TOUCHED_BARRIER] = table[ARGUMENT]
        park(table, block, mask, top, AT_BARRIER, table[ARGUMENT], table[ARGUMENT_2])
    elif status == ARRIVED_ONLY:
        plan[TOUCHED_BARRIER] = table[ARGUMENT]
        state[ARRIVALS + table[ARGUMENT]] += count_threads(plan, mask)
        state[AWAITED + table[ARGUMENT]] = table[ARGUMENT_2]
        park(table, block, mask, top, READY, 0, 0)
    elif status == DIVERGED:
        if plan[POLICY] == ADVERSARIAL:
            split_into_lanes(table, block, mask, top)
        else:
            start_other_sides(table)
            park(table, block, mask, top, READY, 0, 0)


@jitable
def split_into_lanes(table: Table, block: int, mask: int, node: int) -> None:
    """Parks each lane of a split, and of the nodes that contain it (the lanes that have arrived
    there, and those of the side that has not begun), as a ready split of its own, and frees the
    nodes: under ADVERSARIAL, lanes that have diverged never reconverge. `block` and `mask` are
    those of the split, `node` its innermost node."""
    while node != NONE:
        at = node_at(node)
        park_separately(table, table[at + POINT], table[at + ARRIVED], NONE)
        park_separately(table, table[at + OTHER_BLOCK], table[at + OTHER_MASK], NONE)
        pop(table, node)
        node = table[TOP]
    park_separately(table, block, mask, NONE)


@jitable
def is_block_stuck(plan: Words, states: Words, tables: Words, first: int) -> bool:
    """Returns whether no warp of a block can progress unless another block changes memory: each is
    not RUNNABLE (has ended or waits), or has ready splits that all repeat the same instructions
    with the same registers, and (from 7.0 on) no lanes that `release_more_lanes` could make ready.
    `first`: the row of the block's first warp."""
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        if state[STATUS] == RUNNABLE:
            if state[RESUME] != FROM_TABLE:
                return False
            if not has_ready(tables[warp]) or not is_stuck(tables[warp], plan[CHANGES]):
                return False
            if plan[INDEPENDENT] and has_releasable_lanes(tables[warp], plan[EXIT]):
                return False
    return True


@jitable
def count_stuck_block(plan: Words, waits_for_clock: bool) -> None:
    """Adds the current block to the consecutive stuck ones (STUCK_BLOCKS). Restarts the count if
    memory has changed since, as blocks counted before may progress now, or if the block waits for
    the clock: time passes while other blocks run, so that is no deadlock."""
    if plan[STUCK_SINCE] != plan[CHANGES]:
        plan[STUCK_SINCE] = plan[CHANGES]
        plan[STUCK_BLOCKS] = 0
    plan[STUCK_BLOCKS] = 0 if waits_for_clock else plan[STUCK_BLOCKS] + 1


@jitable
def has_clock_wait(plan: Words, states: Words, first: int) -> bool:
    """Returns whether some runnable warp of a block only polls the clock (CLOCK_WAIT)."""
    for warp in range(first, first + plan[WARPS]):
        if states[warp][STATUS] == RUNNABLE and states[warp][TIMED] == CLOCK_WAIT:
            return True
    return False


@jitable
def has_releasable_lanes(table: Table, exit: int) -> bool:
    """Returns whether `release_more_lanes` could make lanes of a warp ready: of a pending side of a
    branch, or that wait for reconvergence at a block other than `exit`."""
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            if table[at + OTHER_MASK] != 0:
                return True
            if table[at + ARRIVED] != 0 and table[at + POINT] != exit:
                return True
    return False
