"""Adapts the scheduler (`simt.scheduling`) to compiled code: helpers on plain pointers, by which
kernels choose the next warp and end its turn; compiled by Numba.

`plan`, `slots`, `states` and `contexts` are the arrays of `simt.schedule_layout`. In warp order,
all warps of a thread block run from barrier to barrier one after the other in one call of `warp`
(`lower.control.warp_order`)."""

from __future__ import annotations

from typing import Any

from warploom.abi.environment import Slot
from warploom.llvm.lanes import LANES
from warploom.simt import (
    block_slots,
    clusters,
    indexed_branch,
    register_pool,
    schedule_layout,
    scheduling,
    teams,
)
from warploom.simt.block_order import last_block
from warploom.simt.convergence import begin
from warploom.simt.schedule_layout import BARRIER_WAIT, ENDED, RUNNABLE, Plan, WarpState, table_of
from warploom.simt.split_policy import CONVERGE
from warploom.simt.warp_table import NONE, WarpTable, table_words

_WARP, _SITE, _START, _OWN_SITE = (
    int(s) for s in (Slot.WARP, Slot.SITE, Slot.START, Slot.OWN_SITE)
)
_TABLE_WORDS = table_words(LANES)

Words = Slots = States = Contexts = Any
"""Arrays of 64-bit integers, pointers in compiled code: the scheduler's state, the thread block in
each slot, and the scheduler state and the context of each warp in the slots."""


def begin_launch(plan: Words, slots: Slots) -> int:
    """Initializes the schedule for a launch: all slots are empty, no block is resident
    (`simt.block_slots.start_blocks`). Leaves `next_block`, the first to begin, as the host wrote
    it. Returns 0."""
    block_slots.start_blocks(Plan(plan, 0), slots)
    return 0


def choose_warp(plan: Words, slots: Slots, states: States, contexts: Contexts) -> int:
    """Begins the next turn: returns the number, in its thread block, of the warp that
    `simt.scheduling.next_warp` selects, whose block the plan then names; DONE if all blocks have
    ended, DEADLOCK if the current block, or all resident ones, can never progress."""
    return scheduling.next_warp(Plan(plan, 0), slots, states, contexts)


def end_turn(plan: Words, state: Any, context: Any, status: int, words: int) -> int:
    """Updates a warp's `state` and the table in its `context` for the `status` with which it
    returned (`simt.scheduling.after_run`). Returns 0.

    For the status TURN_END, the words of the context from after the table up to number `words`,
    its registers, are digested: equal digests show that a warp spins without a change.
    """
    digest = 0
    if status == schedule_layout.TURN_END:
        for word in range(_TABLE_WORDS, words):
            # The step of FNV-1a, with its 64-bit prime, on words.
            digest = (digest ^ context[word]) * 1099511628211
    table = WarpTable(context, 0)
    scheduling.after_run(Plan(plan, 0), WarpState(state, 0), table, status, digest)
    return 0


def branch_first(plan: Words, context: Any, warp: int) -> int:
    """Returns 1 if the taken side of a divergent branch runs first (`simt.scheduling`), else 0. To
    be called once for each divergent branch: under RANDOM it counts it in the warp's table
    (`divergences`), from which the result is computed."""
    return scheduling.branch_first(Plan(plan, 0), WarpTable(context, 0), warp)


def diverge_by_index(
    context: Any, lane_targets: Any, on: int, branch_targets: Any, count: int, following: int,
    point: int, branch: int, level: int,
) -> int:  # fmt: skip
    """Executes `brx.idx` on the table in `context` by `simt.indexed_branch.diverge_by_index`,
    which has the same operands; returns the block of the lanes that run first, or NONE if an index
    has no target."""
    table = WarpTable(context, 0)
    return indexed_branch.diverge_by_index(
        table, lane_targets, on, branch_targets, count, following, point, branch, level
    )


def warp_order_start(schedule: Words, states: States, warp: int) -> int:
    """Returns the resume point of the current block's warps if they can run in warp order, else
    NONE. They can if all warps that have not ended are runnable at one resume point, `warp` is the
    first of them, and the policy is CONVERGE, which leaves the order of warps open. Then stores
    whether none has ended, and the role of the block in a team. `states` are those of the
    block."""
    plan, start = Plan(schedule, 0), WarpState(states, 0, warp).resume
    if plan.policy != CONVERGE:
        return NONE
    plan.none_ended = 1
    for other in range(plan.warps):
        state = WarpState(states, 0, other)
        if state.status == ENDED:
            plan.none_ended = 0
        else:
            runs = state.status == RUNNABLE and state.resume == start
            if other < warp or not runs:
                return NONE
    plan.team_role = teams.role_at_start(plan, start)
    return start


def end_warp_order(
    schedule: Words, environment: Any, states: States, contexts: Contexts, sites: Any
) -> int:
    """Writes the states of the block's warps, which warp order does not update, when a call in warp
    order returns before the end of the block. Returns 0. `states` are those of the block,
    `contexts` their contexts, `sites` has two words for each site: the instruction, and the number
    of its barrier, NONE at a site where no barrier makes warps wait.

    The environment has where the warps are (`Slot.WARP`: the one that stopped). Warps before it
    wait at SITE, or are runnable there without a barrier. Warps after it are runnable at START,
    where the region began (0: they begin, with
    new tables). The stopped one waits at OWN_SITE, or if that is NONE has the state that `end_turn`
    recorded. Warps that have ended stay so. The next turn is that of the warp after the stopped one
    (`position`), or, if the block waits for its team, of the next block.
    """
    plan, stopped, own = Plan(schedule, 0), environment[_WARP], environment[_OWN_SITE]
    for warp in range(plan.warps):
        state = WarpState(states, 0, warp)
        if state.status == ENDED or (warp == stopped and own == NONE):
            continue
        if warp > stopped:
            state.status = RUNNABLE
            state.resume = environment[_START]
            if environment[_START] == 0:
                live = (1 << min(plan.threads - 32 * warp, 32)) - 1
                begin(table_of(plan, contexts, warp), live, LANES, CONVERGE)
        else:
            site = environment[_SITE] if warp < stopped else own
            waits = sites[2 * site + 1] != NONE
            state.status = BARRIER_WAIT if waits else RUNNABLE
            state.resume = site
            state.instruction = sites[2 * site]
            state.barrier = sites[2 * site + 1] if waits else 0
            state.barrier_threads = 0
    plan.position = min(stopped + 1, plan.warps)
    if plan.team_role == teams.WAITS:
        teams.leave_to_next(plan)
    return 0


def next_in_warp_order(schedule: Words, slots: Slots, states: States) -> int:
    """Begins the next thread block in the slot of one that has ended in warp order: makes it
    current and `fresh`, with its warps runnable from their start and their turns counted anew.
    Returns 1; or 0, and changes nothing, if several blocks are resident, none is left to begin, or
    the next one begins a team in the first slot, so that the scheduler has to choose."""
    plan = Plan(schedule, 0)
    if plan.resident != 1 or plan.team_ends or plan.next_block >= last_block(plan):
        return 0
    plan.current_block = slots[plan.slot] = plan.next_block
    plan.next_block += 1
    plan.fresh = 1
    plan.position = plan.rounds = 0
    for warp in range(plan.warps):
        state = WarpState(states, 0, warp)
        state.status = RUNNABLE
        state.resume = 0
    plan.none_ended = 1
    plan.team_role = teams.role_at_start(plan, 0)
    return 1


def cluster_wait(
    schedule: Words,
    slots: Slots,
    states: States,
    contexts: Contexts,
    warp: int,
    live: int,
    mask: int,
) -> int:
    """Returns 1 if lanes `mask` of warp number `warp` of the current block have to wait at the
    barrier of their cluster, and sets `cluster_waits` in the schedule; else 0, and if all threads
    have arrived, begins the next phase (`simt.clusters.must_wait`). `live`: the warp's lanes that
    have not exited."""
    plan = Plan(schedule, 0)
    own = plan.slot * plan.warps + warp
    return 1 if clusters.must_wait(plan, slots, states, contexts, own, live, mask) else 0


def live_ranks(plan: Words, slots: Slots) -> int:
    """Returns the ranks of the live blocks of the current block's cluster, one bit for each."""
    return clusters.live_blocks(Plan(plan, 0), slots)


def set_registers(plan: Words, states: States, warp: int, count: int, grows: int) -> int:
    """Sets the registers per thread of a warp of the current block to `count` by
    `simt.register_pool.set_registers`; returns 0, or its error (fewer for `inc`, more for `dec`, or
    too many in the block, in which case the count is stored as well). `grows`: 1 for `inc`, 0 for
    `dec`. Without a register count in the kernel's directives sets nothing and returns 0."""
    return register_pool.set_registers(Plan(plan, 0), states, warp, count, grows)
