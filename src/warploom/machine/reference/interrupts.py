"""Lets lanes of the reference machine yield before any instruction, also in the middle of a basic
block, where the schedule cannot end a turn."""

from __future__ import annotations

from warploom.machine.reference.control import enter_block
from warploom.machine.reference.state import Warp
from warploom.simt.schedule_layout import RUNNABLE


def interrupt(warp: Warp) -> None:
    """Stores the warp's next instruction in `warp.interrupted`, by the mask of the active lanes;
    `resume` continues there in their next turn."""
    warp.interrupted[warp.splits.active] = warp.next


def resume(warp: Warp) -> int:
    """Begins a turn of the active lanes: at the instruction where exactly these lanes were
    interrupted (`warp.interrupted`, from which it is removed), if they were, else by entering their
    basic block. Sets `warp.next`. Returns the status: RUNNABLE, or why they wait."""
    following = warp.interrupted.pop(warp.splits.active, None)
    if following is None:
        return enter_block(warp, warp.splits.block)
    warp.next = following
    return RUNNABLE
