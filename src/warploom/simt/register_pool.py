"""Records and checks the register counts that the warps of a block set by `setmaxnreg` (PTX ISA,
"setmaxnreg").

A block has the registers that its warps were launched with. A warp that increases its count gets
registers that other warps have released; as long as there are too few, it waits.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.records import Words
from warploom.simt.schedule_layout import Plan, WarpState

FAULT = 60
"""The number of the fault in `machine.faults.fault_errors.FaultKind`."""

HAS_LESS, HAS_MORE = 1, 2
"""Error codes: a warp decreases its count to more registers than it has, or increases it to
fewer."""

CODE_AT = 32
"""Position of the error code in the result of `set_registers`. The bits below hold the previous
registers per thread."""

REQUESTED_AT = 32
"""Position in `WarpState.registers` of the count that a warp waits for, 0 if it does not wait; the
bits below hold the count that it has, 0 if it is that of the launch."""

HELD = (1 << REQUESTED_AT) - 1


@jitable
def set_registers(plan: Plan, states: Words, warp: int, count: int, grows: int) -> int:
    """Sets the registers per thread of a warp to `count` in its state, or requests them if the
    block has too few left; returns 0 or an error (above CODE_AT, with the previous count below it):
    `setmaxnreg.inc` to fewer registers than the warp has, or `.dec` to more.

    `states` are the states of the block's warps; `grows` is 1 for `setmaxnreg.inc`. Does nothing,
    and returns 0, if the kernel's directives give no register count: `setmaxnreg` may have no
    effect then.
    """
    launched = plan.launch_registers
    if launched == 0:
        return 0
    state = WarpState(states, 0, warp)
    before = state.registers & HELD
    if before == 0:
        before = launched
    if grows and before > count:
        return int(HAS_MORE << CODE_AT | before)
    if not grows and before < count:
        return int(HAS_LESS << CODE_AT | before)
    if grows:
        state.registers = before | count << REQUESTED_AT
        grant_request(plan, states, 0, warp)
    else:
        state.registers = count
    return 0


@jitable
def grant_request(plan: Plan, states: Words, first_warp: int, warp: int) -> bool:
    """Gives a warp of a block the registers that it has requested, if other warps hold so few that
    they are there; returns whether it waits for none now. `first_warp` is the index of the block's
    first warp in `states`."""
    requested = WarpState(states, 0, warp).registers >> REQUESTED_AT
    if requested == 0:
        return True
    total = requested
    for other in range(first_warp, first_warp + plan.warps):
        if other != warp:
            held = WarpState(states, 0, other).registers & HELD
            total += held if held > 0 else plan.launch_registers
    if total > plan.launch_registers * plan.warps:
        return False
    WarpState(states, 0, warp).registers = requested
    return True
