"""Lets a launch that has paused go on in other code of its kernel.

Both codes keep the registers that basic blocks share at the same places of a warp's context
(`abi.context_layout`), lane by lane, while lanes are apart or wait; so every warp is made one
that goes on from its table. All else that a launch has is laid out alike.
"""

from __future__ import annotations

import numpy as np

from warploom.abi.environment import Slot
from warploom.machine.compiled.launch_template import LaunchBuffers, LaunchTemplate
from warploom.program.program import Program
from warploom.simt import schedule_layout
from warploom.simt.convergence import park
from warploom.simt.warp_table import MASK, NONE, READY

_NO_BLOCK = -2
"""No block's number: the grid's code points the environment at the block that runs next."""


def hand_over(before: LaunchTemplate, old: LaunchBuffers, after: LaunchTemplate) -> LaunchBuffers:
    """Returns the arrays of a paused launch as code of another outfit takes them up."""
    new = after.buffers()
    copied = np.ones(len(Slot), bool)
    copied[after.address_slots] = False
    copied[Slot.CONTEXT_BYTES] = False
    new.environment[copied] = old.environment[copied]
    same_layout = slice(after.starts[Slot.PLAN_AT], after.starts[Slot.STATES_BASE])
    new.arena[same_layout] = old.arena[same_layout]
    if not after.kernel.suspends:
        return new  # it paused between two blocks
    new.environment[Slot.BLOCK] = _NO_BLOCK
    used = int(old.plan[schedule_layout.MOST_RESIDENT])
    for base in (Slot.STATES_BASE, Slot.SHARED_BASE, Slot.LOCAL_BASE):
        _slot_bytes(after, new, base, used)[...] = _slot_bytes(before, old, base, used)
    warps = used * after.bytes_per_slot[Slot.STATES_BASE] // (8 * schedule_layout.STATE_WORDS)
    source, target = (
        _slot_bytes(launch_template, buffers, Slot.CONTEXTS_BASE, used).reshape(warps, -1)
        for launch_template, buffers in ((before, old), (after, new))
    )
    size = min(source.shape[1], target.shape[1])
    target[:, :size] = source[:, :size]
    states = _slot_bytes(after, new, Slot.STATES_BASE, used).view(np.int64).reshape(warps, -1)
    _resume_from_tables(after.kernel.program, states, target.view(np.int64))
    return new


def _slot_bytes(
    launch_template: LaunchTemplate, buffers: LaunchBuffers, base: Slot, used: int
) -> np.ndarray:
    """Returns what the first blocks have of one kind, as bytes."""
    start = launch_template.starts[base]
    return buffers.arena[start : start + used * launch_template.bytes_per_slot[base]]


def _resume_from_tables(program: Program, states: np.ndarray, tables: np.ndarray) -> None:
    """Has warps that wait, or go on, behind a barrier do so from their tables."""
    sites = states[:, schedule_layout.RESUME]
    for warp in np.flatnonzero(sites > 0):
        # A site's number is one more than that of the block that ends there.
        following = program.blocks[int(sites[warp]) - 1].successors[-1]
        table = tables[warp]
        park(table, following, int(table[MASK]), NONE, READY, 0, 0)
        sites[warp] = schedule_layout.FROM_TABLE
