"""Forms *teams*: a few thread blocks that run a loop together, their warps in turn
(`lower.loops.interleaved_batches`).

    slot 0: block 0 to the loop; waits
    slot 1: block 1 to the loop; waits
    ...
    slot 15: block 15 to the loop; all 16 blocks in turn; block 15 to its end
    slot 0: block 0 from the loop to its end; slot 1: block 1; ...

A block joins a team when it begins, in the slot after those of the blocks that wait, so that the
contexts of a team are adjacent. When code has run a team's loop, its blocks end before others
begin, which leaves the first slots for the next team. A team is not a cluster: its blocks know
nothing of each other, and their order must not be observable (`Interleaving.ACROSS_BLOCKS`)."""

from __future__ import annotations

from warploom.simt.block_order import last_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan
from warploom.simt.warp_table import NONE

TEAM_WARPS = 256
"""The most warps of a team: 32 blocks of 256 threads. On an AMD EPYC, the code of loops over a grid
of 264 such blocks that copy an array of 16 MiB, or add two, took 1.15 and 1.48 ms with 128 warps,
1.09 and 1.48 with 192, 1.09 and 1.43 with 256; 0.75 and 1.21 without the loop. The state of each
warp is kilobytes, but it is only read before and after the loop
(`lower.loops.interleaved_registers`)."""

NO_TEAM, MAY_WAIT, LAST, WAITS, CONTINUES = range(5)
"""Roles of the current block. MAY_WAIT: it joins, and others can join after it. LAST: it joins as
the last one. WAITS: it has joined, and waits. CONTINUES: its team has run."""


@jitable
def role_at_start(plan: Plan, resume: int) -> int:
    """Returns the role of the current block, whose warps are about to run in order from the resume
    point `resume` (0: they begin)."""
    if resume != 0:
        return CONTINUES if plan.team_ends else NO_TEAM
    if plan.slot != plan.team_waiting:
        return NO_TEAM
    full = (plan.team_waiting + 2) * plan.warps > TEAM_WARPS
    has_next = plan.next_block < last_block(plan) and plan.slot + 1 < plan.available
    return MAY_WAIT if has_next and not full else LAST


@jitable
def leave_to_next(plan: Plan) -> None:
    """Leaves the current block, which waits for its team, so that the next block begins."""
    plan.team_role = NO_TEAM
    plan.slot = NONE


def disband(plan: Plan) -> None:
    """Has the blocks that wait continue by themselves: later blocks begin a new team."""
    plan.team_waiting = plan.team_ends = 0
