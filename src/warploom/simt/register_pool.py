"""The registers of a block's warps as `setmaxnreg` moves them: PTX ISA, "setmaxnreg".

A block has as many registers as its warps were launched with; a warp that takes more gets what
others have given up. Here a warp does not wait for them: when every warp of the block has said how
many it has, their sum is known, and one that is too large would never be there.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import LAUNCH_REGISTERS, REGISTERS, WARPS, Words

FAULT = 60
"""The kind of fault, as `machine.faults.fault_errors.FaultKind` numbers it."""

HAS_LESS, HAS_MORE, BEYOND_BLOCK = 1, 2, 3
"""What is wrong: a warp releases registers and has fewer, asks for more and has more, or the warps
have more than the block."""

CODE_AT = 32
"""An answer is the code shifted by this, and a number: the registers of a thread, or the sum of
those of a thread of each warp."""


@jitable
def set_registers(plan: Words, states: Words, warp: int, count: int, grows: int) -> int:
    """Note that a warp has `count` registers a thread from now on; returns what is wrong, or 0.

    `states` are those of the block's warps. Nothing is checked where the kernel names no number of
    registers: `setmaxnreg` may have no effect then.
    """
    launched = plan[LAUNCH_REGISTERS]
    if launched == 0:
        return 0
    before = states[warp, REGISTERS]
    if before == 0:
        before = launched
    if grows and before > count:
        return int(HAS_MORE << CODE_AT | before)
    if not grows and before < count:
        return int(HAS_LESS << CODE_AT | before)
    states[warp, REGISTERS] = count
    total = 0
    for other in range(plan[WARPS]):
        if states[other, REGISTERS] == 0:
            return 0
        total += states[other, REGISTERS]
    if total > launched * plan[WARPS]:
        return int(BEYOND_BLOCK << CODE_AT | total)
    return 0
