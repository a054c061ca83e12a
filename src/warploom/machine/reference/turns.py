"""Turns that somebody chooses, beside the schedule: who can run at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from warploom.machine.launch import WarpId
from warploom.machine.reference.state import LaunchState
from warploom.simt import schedule_layout as p
from warploom.simt.block_barriers import settle, settle_one
from warploom.simt.clusters import end_block
from warploom.simt.convergence import find_more
from warploom.simt.scheduling import can_start, enter_slot
from warploom.simt.waiting_splits import has_ready
from warploom.simt.warp_table import NONE

Choose = Callable[[Sequence[WarpId]], WarpId | None]
"""Chooses one of the warps that can run; None: whom the schedule chooses."""


def listed_choice(turns: Iterable[WarpId]) -> Choose:
    """Return a choice of those warps, one after the other; then of none."""
    left = iter(turns)
    return lambda runnable: next(left, None)


def runnable_warps(run: LaunchState, begin_block: Callable[[], None]) -> list[WarpId]:
    """Begin all blocks that there is room for, each by `begin_block` when it has its slot, and end
    those that have ended; return the warps that can run, block by block. None where blocks form
    clusters, which begin and wait together."""
    plan = run.plan
    if plan[p.CLUSTER] > 1:
        return []
    if plan[p.TOUCHED] != NONE:
        first = plan[p.SLOT] * plan[p.WARPS]
        settle_one(plan, run.states, run.tables, first, plan[p.TOUCHED])
        plan[p.TOUCHED] = NONE
    while True:
        while can_start(plan) and enter_slot(plan, run.slots, run.states, run.tables):
            begin_block()
        runnable = [who for slot in range(len(run.slots)) for who in _runnable_in_slot(run, slot)]
        if not can_start(plan):
            return runnable


def _runnable_in_slot(run: LaunchState, slot: int) -> list[WarpId]:
    """Return the warps of the block in a slot that can run, once barriers that are complete have
    let them go; end the block where all have ended."""
    plan, block = run.plan, int(run.slots[slot])
    if block < 0:
        return []
    found = _running(run, slot)
    if found:
        return found
    outcome = settle(plan, run.states, run.tables, slot * plan[p.WARPS])
    if outcome == p.ENDED:
        end_block(plan, run.slots, slot)
        plan[p.HOPELESS] = 0
        if plan[p.SLOT] == slot:
            plan[p.SLOT] = NONE
    return _running(run, slot) if outcome == p.RUNNABLE else []


def _running(run: LaunchState, slot: int) -> list[WarpId]:
    """Return the warps in a slot that can run as they are."""
    warps, block = int(run.plan[p.WARPS]), int(run.slots[slot])
    return [(block, number) for number in range(warps) if _can_run(run, slot * warps + number)]


def _can_run(run: LaunchState, index: int) -> bool:
    """Return whether `scheduling.can_run` would find lanes of a warp that run, and take none."""
    state, table = run.states[index], run.tables[index]
    if state[p.STATUS] != p.RUNNABLE or state[p.RESUME] != p.FROM_TABLE:
        return bool(state[p.STATUS] == p.RUNNABLE)
    if run.plan[p.INDEPENDENT] and not has_ready(table):
        find_more(table, run.plan[p.CHANGES], run.plan[p.EXIT])
    return bool(has_ready(table))
