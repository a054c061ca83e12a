"""Member masks: which lanes an instruction names to take part, and whether they can (PTX ISA,
"membermask" of shfl.sync and the others).

A lane that executes it must be in its own mask. A lane that has exited may be named, but has
nothing to give.
"""

from __future__ import annotations

from warploom.core.types import B32
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.lanes import lanes_of
from warploom.machine.reference.operands import guard_mask, read
from warploom.machine.reference.state import Warp
from warploom.program.uses import member_mask
from warploom.ptx.ir import Instruction


def check_members(warp: Warp, index: int, instruction: Instruction) -> None:
    """Raise the fault of the lowest lane that is not in the mask which it names."""
    members = member_mask(instruction)
    if members is None:
        return
    named = read(warp, members, B32)
    for lane in lanes_of(warp.splits.active & guard_mask(warp, instruction)):
        if not int(named[lane]) >> lane & 1:
            place = (index, warp.block.number, warp.number, lane)
            fault = Fault(FaultKind.NOT_A_MEMBER, *place, int(named[lane]))
            raise fault_error(fault, warp.run.program, warp.run.launch, None)


def count_exited(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Count the instruction if a lane of `mask`, which execute it, names one that has exited."""
    members = member_mask(instruction)
    gone = warp.existing & ~warp.splits.live
    if members is None or not gone:
        return
    named = read(warp, members, B32)
    warp.run.tally.exited_members[index] += any(int(named[lane]) & gone for lane in lanes_of(mask))
