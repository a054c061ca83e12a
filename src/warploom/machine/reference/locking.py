"""Gives turns to one warp alone, outside the schedule of the reference machine: a debugger's
scheduler locking."""

from __future__ import annotations

from warploom.machine.reference.state import LaunchState
from warploom.simt.block_barriers import complete_barrier_if_full
from warploom.simt.block_slots import make_current
from warploom.simt.schedule_layout import table_of
from warploom.simt.scheduling import can_run, turn_length
from warploom.simt.warp_table import NONE


def locked_turn(run: LaunchState, warp: tuple[int, int]) -> int | None:
    """Begins a turn of a warp, given by its block and its number in that, and returns the number:
    makes the block current, counts the turn (`turns`), sets its `length`, and stores `changes` as
    `changes_before`. Returns None if its block is not resident or the warp waits or has ended, so
    that the schedule decides. The barrier at which the last turn arrived is released first if it is
    full, as the schedule would do."""
    plan, (block, number) = run.plan, warp
    slot = next(
        (
            slot_number
            for slot_number, resident_block in enumerate(run.slots.tolist())
            if resident_block == block
        ),
        None,
    )
    if slot is None:
        return None
    warps = plan.warps
    # The last turn arrived at a barrier; the schedule would check it before the next turn.
    if plan.touched_barrier != NONE:
        complete_barrier_if_full(
            plan, run.states, run.tables, plan.slot * warps, plan.touched_barrier
        )
        plan.touched_barrier = NONE
    index = slot * warps + number
    if not can_run(plan, run.states, run.tables, index):
        return None
    if plan.slot != slot:
        make_current(plan, run.slots, slot)
    plan.turns += 1
    plan.length = turn_length(plan, table_of(run.plan, run.tables, index))
    plan.changes_before = plan.changes
    return number
