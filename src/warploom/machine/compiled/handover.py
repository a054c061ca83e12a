"""Converts the buffers of a paused launch so that it continues in another code tier of its kernel.

Both codes store the registers that basic blocks share at the same offsets of a warp's context
(`abi.context_layout`), lane by lane, while the warp is diverged or waits. So each warp is marked to
resume from its state table, which both codes can do; schedule, shared and local memory and counts
have the same layout in both.
"""

from __future__ import annotations

import numpy as np

from warploom.abi.environment import Slot
from warploom.abi.sites import block_after_site
from warploom.machine.compiled.launch_template import LaunchBuffers, LaunchTemplate
from warploom.program.program import Program
from warploom.simt import schedule_layout, teams
from warploom.simt.convergence import park
from warploom.simt.schedule_layout import WarpState
from warploom.simt.warp_table import NONE, READY, WarpTable

_NO_BLOCK = -2
"""A number that no thread block has, so that the grid code sets up the environment for the block
that runs next."""


def hand_over(before: LaunchTemplate, old: LaunchBuffers, after: LaunchTemplate) -> LaunchBuffers:
    """Returns new buffers for code of template `after` that continue the paused launch in the
    buffers `old` of template `before`. Copies the environment (but for addresses in the arena) and
    all arrays from the plan up to the block slots' (arguments, globals, counts among them); the
    plan gets the size of the new code's contexts. If the code suspends warps, also copies the
    states, shared and local memory of all block slots that were used, and the common leading part
    of their contexts; then no block is current, and warps resume from their tables of splits."""
    new = after.buffers()
    copied = np.ones(len(Slot), bool)
    # Addresses point into the arena, and the new arena is elsewhere.
    copied[after.address_slots] = False
    np.asarray(new.environment)[copied] = np.asarray(old.environment)[copied]
    # Everything from the plan up to the arrays of the block slots has one layout in both codes.
    same_layout = slice(after.starts[Slot.PLAN_AT], after.starts[Slot.STATES_BASE])
    new.arena[same_layout] = old.arena[same_layout]
    new.plan.table_stride = after.kernel.context_bytes // 8
    # Without suspended warps there are no contexts to convert.
    if not after.kernel.suspends:
        return new  # it paused between two blocks
    new.environment[Slot.BLOCK] = _NO_BLOCK
    # Blocks whose contexts are converted cannot run in one call with new ones.
    teams.disband(new.plan)
    used = old.plan.most_resident
    for base in (Slot.STATES_BASE, Slot.SHARED_BASE, Slot.LOCAL_BASE):
        _slot_bytes(after, new, base, used)[...] = _slot_bytes(before, old, base, used)
    warps = used * after.bytes_per_slot[Slot.STATES_BASE] // (8 * WarpState.WORDS)
    source, target = (
        _slot_bytes(launch_template, buffers, Slot.CONTEXTS_BASE, used).reshape(warps, -1)
        for launch_template, buffers in ((before, old), (after, new))
    )
    # The contexts may differ in size: what follows the common part belongs to one code alone.
    size = min(source.shape[1], target.shape[1])
    target[:, :size] = source[:, :size]
    states = _slot_bytes(after, new, Slot.STATES_BASE, used).view(np.int64).reshape(warps, -1)
    _resume_from_tables(after.kernel.program, states, target.view(np.int64))
    return new


def _slot_bytes(
    launch_template: LaunchTemplate, buffers: LaunchBuffers, base: Slot, used: int
) -> np.ndarray:
    """Returns a view of the bytes of one kind of array (`base`: the environment slot of its
    address) for the first `used` block slots."""
    start = launch_template.starts[base]
    return buffers.arena[start : start + used * launch_template.bytes_per_slot[base]]


def _resume_from_tables(program: Program, states: np.ndarray, tables: np.ndarray) -> None:
    """Marks warps that wait at a site (`abi.sites`), or continue after one, to resume from their
    state tables: parks the active lanes in the table, at the basic block after the site, and writes
    FROM_TABLE as `resume` to the warp's scheduler state. `states` and `tables` have a row for each
    warp."""
    sites = states[:, WarpState.resume]
    for warp in np.flatnonzero(sites > 0):
        following = block_after_site(program, int(sites[warp]))
        table = WarpTable(tables[warp], 0)
        park(table, following, table.mask, node=NONE, status=READY, argument=0, argument_2=0)
        sites[warp] = schedule_layout.FROM_TABLE
