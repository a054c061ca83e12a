"""Interrupts: lanes that give up their turn before an instruction, wherever that is in a block."""

from __future__ import annotations

from warploom.machine.reference.control import enter_block
from warploom.machine.reference.state import Warp
from warploom.simt.schedule_layout import RUNNABLE


def interrupt(warp: Warp) -> None:
    """Notes where the running lanes go on when they have their next turn."""
    warp.interrupted[warp.splits.active] = warp.next


def resume(warp: Warp) -> int:
    """Begins a turn of the running lanes: at their block, or where they were interrupted."""
    following = warp.interrupted.pop(warp.splits.active, None)
    if following is None:
        return enter_block(warp, warp.splits.block)
    warp.next = following
    return RUNNABLE
