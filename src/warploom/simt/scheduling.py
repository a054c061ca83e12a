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
the lanes of each warp (`simt.warp_table`). Rows are numbered slot * `warps` + warp; `first` is the
row of a block's first warp.
"""

from __future__ import annotations

from warploom.simt.block_barriers import (
    complete_barrier_if_full,
    complete_full_barriers,
    count_threads,
)
from warploom.simt.block_slots import can_start, enter_slot, leave_slot
from warploom.simt.clusters import end_block, release_cluster_waits
from warploom.simt.convergence import TURN_LIMIT, pop, release_more_lanes, start_other_sides
from warploom.simt.lane_counts import jitable
from warploom.simt.records import Words
from warploom.simt.schedule_layout import (
    ARRIVED_ONLY,
    BARRIER_WAIT,
    BLOCKED,
    CLOCK_READ,
    CLOCK_WAIT,
    DEADLOCK,
    DIVERGED,
    DONE,
    ENDED,
    FROM_TABLE,
    RUNNABLE,
    SPLIT_BARRIER,
    SYNC_WAIT,
    TURN_END,
    Plan,
    WarpState,
    table_of,
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
    AT_BARRIER,
    AT_SYNC,
    NONE,
    READY,
    WarpTable,
    node_count,
    node_of,
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
def turn_length(plan: Plan, table: WarpTable) -> int:
    """Returns the most warp instructions that a warp may issue in this turn: 1 to SHORT_TURN by a
    hash of seed and turn under RANDOM; SHORT_TURN under FAIR and ADVERSARIAL. Under CONVERGE it is
    WHOLE_TURN if all live lanes of the warp run together with no SIMT stack node, else TURN."""
    if plan.policy == RANDOM:
        return 1 + hash_pair(plan.seed, plan.turns) % SHORT_TURN
    if plan.policy != CONVERGE:
        return SHORT_TURN
    whole = table.top == NONE and table.mask == table.live
    return WHOLE_TURN if whole else TURN


@jitable
def branch_first(plan: Plan, table: WarpTable, warp: int) -> int:
    """Returns 1 if the taken side of a divergent branch runs before the fall-through side, else 0.
    It is 1 under ADVERSARIAL; under RANDOM a bit hashed from the seed, the warp and the number of
    its divergent branches so far (`divergences`, which it increments); 0 under other policies, and
    under any from 7.0 on.

    Below compute capability 7.0 one side runs to the reconvergence point before the other begins;
    which is first is unspecified."""
    if plan.independent or plan.policy not in (RANDOM, ADVERSARIAL):
        return 0
    if plan.policy == ADVERSARIAL:
        return 1
    table.divergences += 1
    # Blocks have at most 32 warps, so with 64 numbers a block no two warps share one.
    own = hash_pair(plan.seed, plan.current_block * 64 + warp)
    return hash_pair(own, table.divergences) & 1


@jitable
def next_warp(plan: Plan, slots: Words, states: Words, tables: Words) -> int:
    """Returns the warp of `current_block` (its number in the block) that runs next; counts its turn
    (`turns`), and sets `length` to the turn's length and `changes_before` to `changes`. Returns
    DONE if every block has ended. Returns DEADLOCK if all warps of the block wait at its own
    barriers, or if no resident block can progress and no other can begin.

    Gives each warp of the current block a turn, then ends the round (`end_round`). `slots` holds
    the block in each slot.
    """
    warps = plan.warps
    while True:
        if plan.slot == NONE:
            if not enter_slot(plan, slots, states, tables):
                return DONE if plan.resident == 0 else DEADLOCK
            continue
        # A barrier with a thread count is completed as soon as it is full, before the end of the
        # round: other warps of the block may have nothing to do with it.
        first_warp = plan.slot * warps
        if plan.touched_barrier != NONE:
            complete_barrier_if_full(plan, states, tables, first_warp, plan.touched_barrier)
            plan.touched_barrier = NONE
        while plan.position < warps:
            warp = warp_at_position(plan)
            plan.position += 1
            if can_run(plan, states, tables, first_warp + warp):
                plan.turns += 1
                plan.length = turn_length(plan, table_of(plan, tables, first_warp + warp))
                plan.changes_before = plan.changes
                return warp
        if not end_round(plan, slots, states, tables):
            return DEADLOCK


@jitable
def end_round(plan: Plan, slots: Words, states: Words, tables: Words) -> bool:
    """Ends a round of turns of the current block: completes full barriers, and ends the block if
    its warps have ended. Switches to another block if this one is stuck or cancels a cluster, and,
    after a round that completed no barrier, if the policy is not CONVERGE or the block has had more
    than TURN_LIMIT such rounds. Returns False for a deadlock: of the block or of its cluster."""
    slot, first_warp = plan.slot, plan.slot * plan.warps
    plan.position = 0
    plan.round += 1
    outcome = complete_full_barriers(plan, states, tables, first_warp)
    if plan.cluster_waits and outcome != ENDED:
        released = release_cluster_waits(plan, slots, states, tables, first_warp)
        if released == 1:
            outcome = RUNNABLE
        elif released == 2 and outcome == BLOCKED:
            # Another block of the cluster can release it: that is no deadlock yet.
            outcome = TURN_END
    if outcome == ENDED:
        end_block(plan, slots, slot)
        plan.stuck_blocks = 0
        plan.slot = NONE
    elif outcome == TURN_END:
        plan.rounds += 1
        if is_block_stuck(plan, states, tables, first_warp):
            # Every resident block stuck, with no change of memory between: a deadlock.
            count_stuck_block(plan, has_clock_wait(plan, states, first_warp))
            if plan.stuck_blocks >= plan.resident and not can_start(plan):
                return False
            leave_slot(plan, slots)
        else:
            plan.stuck_blocks = 0
            if plan.rounds > TURN_LIMIT or plan.yields_slot or plan.policy != CONVERGE:
                leave_slot(plan, slots)
    elif outcome == BLOCKED:
        # All warps wait at barriers of their block, which no other block can complete.
        return False
    elif plan.yields_slot:
        leave_slot(plan, slots)
    return True


@jitable
def warp_at_position(plan: Plan) -> int:
    """Returns the warp at the current `position` of the round: in order, reversed under
    ADVERSARIAL, rotated by a hash of the seed and the round under RANDOM."""
    position, warps = plan.position, plan.warps
    if plan.policy == ADVERSARIAL:
        return warps - 1 - position
    if plan.policy == RANDOM:
        return (position + hash_pair(plan.seed, plan.round)) % warps
    return position


@jitable
def can_run(plan: Plan, states: Words, tables: Words, index: int) -> bool:
    """Returns whether the warp in row `index` can run now: it is RUNNABLE, and either resumes in
    compiled code or has a ready split (lanes that execute together) in its table. Makes that split
    the running one; a RUNNABLE warp without one becomes BLOCKED. From 7.0 on, lanes that wait too
    long for others are released first."""
    state, table = WarpState(states, 0, index), table_of(plan, tables, index)
    if state.status != RUNNABLE:
        return False
    if state.resume != FROM_TABLE:
        return True
    policy = 0
    if plan.independent:
        policy = plan.policy
        release_more_lanes(table, plan.changes, plan.exit)
    # A seed of its own for each warp.
    if resume_next_split(table, policy, plan.seed + 64 * index) == NONE:
        state.status = BLOCKED
        return False
    return True


@jitable
def after_run(plan: Plan, state: WarpState, table: WarpTable, status: int, digest: int) -> None:
    """Updates a warp's state and table after it returned to the scheduler with `status`. ENDED and
    BARRIER_WAIT (it waits whole) become its status, and nothing is parked but the split of a
    waiting warp that resumes from its table. With others it stays RUNNABLE and resumes from its
    table, where the running split (lanes that execute together) is parked as ready, or with the
    barrier or member mask that it waits for (with RECONVERGING nothing is parked: its lanes wait at
    a node). Records arrivals at barriers with a thread count (`touched_barrier`; `arrivals` and
    `awaited` for `bar.arrive`). With DIVERGED, under ADVERSARIAL each lane becomes a split of its
    own; else, and from 7.0 on at the end of a turn, pending sides of branches become ready, too.
    `digest`: a hash of the warp's registers; a split that ends a turn with the digest of its last
    turn makes no progress, unless it reads the clock (`timed`)."""
    state.status = status if status in (ENDED, BARRIER_WAIT) else RUNNABLE
    block, mask, top = table.block, table.mask, table.top
    if status not in (ENDED, BARRIER_WAIT):
        state.resume = FROM_TABLE
    if status == BARRIER_WAIT:
        if state.barrier_threads != 0:
            plan.touched_barrier = state.barrier
        # Ready, but `status` keeps the warp from running: it resumes there once it is released.
        if state.resume == FROM_TABLE:
            park(table, block, mask, top, READY, 0, 0)
    elif status == TURN_END:
        # From 7.0 on, all sides of a branch progress: pending ones get turns of their own.
        if plan.independent:
            start_other_sides(table)
        has_read_clock = state.timed == CLOCK_READ
        state.timed = CLOCK_WAIT if has_read_clock and plan.changes == plan.changes_before else 0
        # A loop that reads the clock can end by the time alone, so equal registers do not mean that
        # it repeats forever: `issued` makes the hash differ from turn to turn.
        waits_for_clock = state.timed == CLOCK_WAIT
        park_at_turn_end(
            table,
            digest ^ state.issued if has_read_clock else digest,
            plan.changes,
            waits_for_clock,
        )
    elif status == SYNC_WAIT:
        park(table, block, mask, top, AT_SYNC, table.argument, state.instruction)
    elif status == SPLIT_BARRIER:
        if table.argument_2 != 0:
            plan.touched_barrier = table.argument
        park(table, block, mask, top, AT_BARRIER, table.argument, table.argument_2)
    elif status == ARRIVED_ONLY:
        plan.touched_barrier = table.argument
        state.arrivals[table.argument] += count_threads(plan, mask)
        state.awaited[table.argument] = table.argument_2
        park(table, block, mask, top, READY, 0, 0)
    elif status == DIVERGED:
        if plan.policy == ADVERSARIAL:
            split_into_lanes(table, block, mask, top)
        else:
            start_other_sides(table)
            park(table, block, mask, top, READY, 0, 0)


@jitable
def split_into_lanes(table: WarpTable, block: int, mask: int, node: int) -> None:
    """Parks each lane of a split (lanes that execute together) as a ready split of its own;
    likewise the lanes that wait in the nodes that contain the split (arrived, or of a side that has
    not begun). Frees these nodes: under ADVERSARIAL, lanes that have diverged never reconverge.
    `block` and `mask` are those of the split, `node` its innermost node."""
    while node != NONE:
        entry = node_of(table, node)
        park_separately(table, entry.point, entry.arrived, NONE)
        park_separately(table, entry.other_block, entry.other_mask, NONE)
        pop(table, node)
        node = table.top
    park_separately(table, block, mask, NONE)


@jitable
def is_block_stuck(plan: Plan, states: Words, tables: Words, first_warp: int) -> bool:
    """Returns whether no warp of a block can progress unless another block changes memory. That is
    so if each warp is not RUNNABLE (it has ended or waits), or all of its ready splits repeat the
    same instructions with the same registers, and (from 7.0 on) `release_more_lanes` could make no
    more lanes ready. `first_warp`: the row of the block's first warp."""
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        if state.status == RUNNABLE:
            if state.resume != FROM_TABLE:
                return False
            if not has_ready(table) or not is_stuck(table, plan.changes):
                return False
            if plan.independent and has_releasable_lanes(table, plan.exit):
                return False
    return True


@jitable
def count_stuck_block(plan: Plan, waits_for_clock: bool) -> None:
    """Adds the current block to the consecutive stuck ones (`stuck_blocks`). Restarts the count if
    memory has changed since, as blocks counted before may progress now, or if the block waits for
    the clock: time passes while other blocks run, so that is no deadlock."""
    if plan.stuck_since != plan.changes:
        plan.stuck_since = plan.changes
        plan.stuck_blocks = 0
    plan.stuck_blocks = 0 if waits_for_clock else plan.stuck_blocks + 1


@jitable
def has_clock_wait(plan: Plan, states: Words, first_warp: int) -> bool:
    """Returns whether some runnable warp of a block only polls the clock (CLOCK_WAIT)."""
    for warp in range(first_warp, first_warp + plan.warps):
        state = WarpState(states, 0, warp)
        if state.status == RUNNABLE and state.timed == CLOCK_WAIT:
            return True
    return False


@jitable
def has_releasable_lanes(table: WarpTable, exit: int) -> bool:
    """Returns whether `release_more_lanes` could make lanes of a warp ready: of a pending side of a
    branch, or that wait for reconvergence at a block other than `exit`."""
    for node in range(node_count(table.lanes)):
        if (table.free >> node) & 1 == 0:
            entry = node_of(table, node)
            if entry.other_mask != 0:
                return True
            if entry.arrived != 0 and entry.point != exit:
                return True
    return False
