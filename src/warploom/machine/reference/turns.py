"""Determines which warps of the reference machine can run, for launches in which a chooser (the
explorer of interleavings, or a list of turns) selects the next warp instead of the schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from warploom.machine.launch import WarpId
from warploom.machine.reference.state import LaunchState
from warploom.simt import schedule_layout as p
from warploom.simt.block_barriers import complete_barrier_if_full, complete_full_barriers
from warploom.simt.block_slots import can_start, enter_slot
from warploom.simt.clusters import end_block
from warploom.simt.convergence import release_more_lanes
from warploom.simt.schedule_layout import WarpState, table_of
from warploom.simt.waiting_splits import has_ready
from warploom.simt.warp_table import NONE

Choose = Callable[[Sequence[WarpId]], WarpId | None]
"""Selects one of the runnable warps; None leaves the choice to the schedule."""


def choice_from_list(turns: Iterable[WarpId]) -> Choose:
    """Returns a chooser that selects at each call the next warp of a list, runnable or not, and
    None after the last."""
    remaining = iter(turns)
    return lambda runnable: next(remaining, None)


def runnable_warps(run: LaunchState, begin_block: Callable[[], None]) -> list[WarpId]:
    """Brings the schedule up to date, and returns the runnable warps, slot by slot. Releases the
    barrier at which the last turn arrived, if it is full; starts every thread block for which there
    is a slot (calling `begin_block`); releases full barriers of blocks that cannot run otherwise;
    and ends blocks that have finished. Does nothing and returns none for clusters, whose blocks
    start and wait together: the schedule decides there."""
    plan = run.plan
    if plan.cluster > 1:
        return []
    if plan.touched_barrier != NONE:
        first_state = plan.slot * plan.warps
        complete_barrier_if_full(plan, run.states, run.tables, first_state, plan.touched_barrier)
        plan.touched_barrier = NONE
    # A block that ends frees its slot for another, so repeat until no block can start.
    while True:
        while can_start(plan) and enter_slot(plan, run.slots, run.states, run.tables):
            begin_block()
        runnable = [warp for slot in range(len(run.slots)) for warp in _runnable_in_slot(run, slot)]
        if not can_start(plan):
            return runnable


def _runnable_in_slot(run: LaunchState, slot: int) -> list[WarpId]:
    """Returns the runnable warps of the block in a slot; none for an empty slot. If the block has
    none, releases its full barriers and tries again. If all its warps have ended, ends the block:
    that frees the slot, ends the count of stuck blocks (`stuck_blocks`) and, if the slot was the
    current one, leaves none current (`slot`)."""
    plan, block = run.plan, int(run.slots[slot])
    if block < 0:
        return []
    running = _runnable_without_release(run, slot)
    if running:
        return running
    outcome = complete_full_barriers(plan, run.states, run.tables, slot * plan.warps)
    if outcome == p.ENDED:
        end_block(plan, run.slots, slot)
        plan.stuck_blocks = 0
        if plan.slot == slot:
            plan.slot = NONE
    return _runnable_without_release(run, slot) if outcome == p.RUNNABLE else []


def _runnable_without_release(run: LaunchState, slot: int) -> list[WarpId]:
    """Returns the warps in a slot that can run without a barrier being released (`_can_run`, which
    may make more of their lanes ready)."""
    warps, block = run.plan.warps, int(run.slots[slot])
    return [(block, number) for number in range(warps) if _can_run(run, slot * warps + number)]


def _can_run(run: LaunchState, index: int) -> bool:
    """Returns true if `scheduling.can_run` would find runnable lanes in warp `index` (slot * warps
    per block + number). Unlike that, makes no split the running one. A runnable warp whose lanes
    are together can run; of one that resumes from its table of splits, some split must be ready.
    With independent thread scheduling, if none is, `release_more_lanes` makes more lanes ready:
    those of complete member masks, of other sides of branches, or that wait for reconvergence."""
    state, table = WarpState(run.states, 0, index), table_of(run.plan, run.tables, index)
    if state.status != p.RUNNABLE or state.resume != p.FROM_TABLE:
        return bool(state.status == p.RUNNABLE)
    if run.plan.independent and not has_ready(table):
        release_more_lanes(table, run.plan.changes, run.plan.exit)
    return bool(has_ready(table))
