"""Records and checks the register counts that the warps of a block set by `setmaxnreg` (PTX ISA,
"setmaxnreg").

A block has the registers that its warps were launched with; a warp that increases its count gets
registers that other warps have released. On hardware it waits for them. Here it does not wait: once
every warp of the block has set a count, their sum is checked against the block's registers, as a
warp would wait forever if the sum were larger.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.records import Words
from warploom.simt.schedule_layout import Plan, WarpState

FAULT = 60
"""The number of the fault in `machine.faults.fault_errors.FaultKind`."""

HAS_LESS, HAS_MORE, BEYOND_BLOCK = 1, 2, 3
"""Error codes: a warp decreases its count to more registers than it has, or increases it to fewer,
or the warps together have more than the block."""

CODE_AT = 32
"""Position of the error code in the result of `set_registers`. The bits below hold the previous
registers per thread or, for BEYOND_BLOCK, the sum over the warps of their registers per thread."""


@jitable
def set_registers(plan: Plan, states: Words, warp: int, count: int, grows: int) -> int:
    """Sets the registers per thread of a warp to `count` in its state; returns 0 or an error (above
    CODE_AT, with a count below it): `setmaxnreg.inc` to fewer registers than it has (that count),
    `.dec` to more, or, once each warp of the block has set a count, a sum over warps above that at
    launch (the sum).

    `states` are the states of the block's warps; `grows` is 1 for `setmaxnreg.inc`. The count is
    stored even if it makes the block's sum too large. Does nothing, and returns 0, if the kernel's
    directives give no register count: `setmaxnreg` may have no effect then.
    """
    launched = plan.launch_registers
    if launched == 0:
        return 0
    state = WarpState(states, 0, warp)
    before = state.registers
    if before == 0:
        before = launched
    if grows and before > count:
        return int(HAS_MORE << CODE_AT | before)
    if not grows and before < count:
        return int(HAS_LESS << CODE_AT | before)
    state.registers = count
    total = 0
    for other_warp in range(plan.warps):
        # A warp that has set no count yet may still release registers.
        registers = WarpState(states, 0, other_warp).registers
        if registers == 0:
            return 0
        total += registers
    if total > launched * plan.warps:
        return int(BEYOND_BLOCK << CODE_AT | total)
    return 0
