"""Checks member masks on the reference machine: the lanes that an instruction names as participants
(PTX ISA, "membermask" of shfl.sync and others).

A lane that executes the instruction must be in its own mask. A lane that has exited may be named,
but contributes nothing; such uses are counted.
"""

from __future__ import annotations

from warploom.core.types import B32
from warploom.isa.instruction import Instruction
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.lanes import lanes_of
from warploom.machine.reference.operands import guard_mask, read
from warploom.machine.reference.state import Warp
from warploom.program.uses import member_mask


def check_members(warp: Warp, index: int, instruction: Instruction) -> None:
    """Raises the fault of the lowest lane that executes the instruction and is not in its own
    member mask; nothing if the instruction has no such mask."""
    members = member_mask(instruction)
    if members is None:
        return
    masks = read(warp, members, B32)
    for lane in lanes_of(warp.splits.active & guard_mask(warp, instruction)):
        if not int(masks[lane]) >> lane & 1:
            position = (index, warp.block.number, warp.number, lane)
            fault = Fault(FaultKind.NOT_A_MEMBER, *position, int(masks[lane]))
            raise fault_error(fault, warp.run.program, warp.run.launch, None)


def count_exited(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Adds 1 to the instruction's `exited_members` if any lane of `mask`, which executes it, names
    a lane that has exited; nothing if it has no member mask."""
    members = member_mask(instruction)
    exited = warp.existing & ~warp.splits.live
    if members is None or not exited:
        return
    masks = read(warp, members, B32)
    warp.run.tally.exited_members[index] += any(
        int(masks[lane]) & exited for lane in lanes_of(mask)
    )
