"""Emits the checks of member masks (`membermask` of `shfl.sync` and the like): a lane that is not
in its own mask faults; masks that name exited lanes are counted (as `machine.reference.members`
does).
"""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.core.types import B32
from warploom.isa.instruction import Immediate, Instruction, Operand
from warploom.llvm.lanes import I1, I32, I64, LANES, Value, lane_numbers, vector
from warploom.lower.frame.operands import Operands
from warploom.program.uses import member_mask

NOT_A_MEMBER = 6
"""The kind of the fault (`machine.faults.fault_errors`)."""

ALL_LANES = (1 << LANES) - 1


class MemberMaskCode:
    """Emits the checks and counts of the member masks in one warp function."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; emits nothing."""
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b

    def existing(self) -> Value:
        """Returns the lanes of the running warp that have a thread, exited or not, an i32; in a
        block's last warp not all may have."""
        b, frame = self.b, self.frame
        left = b.sub(frame.slot(Slot.THREADS), b.mul(frame.warp, I64(LANES)))
        # The count is reduced modulo 32 so that the shift is defined; a full warp does not use it.
        some = b.trunc(b.sub(b.shl(I64(1), b.and_(left, I64(LANES - 1))), I64(1)), I32)
        return b.select(b.icmp_signed(">=", left, I64(LANES)), I32(-1), some)

    def check(self, index: int, instruction: Instruction) -> None:
        """Emits a fault (NOT_A_MEMBER, with the lane's mask) of the lowest lane that executes an
        instruction and is not in its own member mask; nothing for an instruction without one, or
        with the constant of all lanes."""
        members = member_mask(instruction)
        if members is None or _names_all(members):
            return
        b = self.b
        named, numbers = self.operands.read(members, B32), lane_numbers(I32)
        # Bit l of the mask that lane l names: each lane's own place in its own mask.
        inside = b.trunc(b.lshr(named, numbers), vector(I1))
        outside = self.lanes.bits(b.and_(self.operands.execution_mask(instruction), b.not_(inside)))
        with b.if_then(b.icmp_unsigned("!=", outside, I32(0)), likely=False):
            lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [outside, I1(0)])
            own = b.zext(self.lanes.lane(named, lane), I64)
            self.frame.fault(NOT_A_MEMBER, index, lane, own, I64(0))

    def count_exited(self, index: int, instruction: Instruction, on: Value) -> None:
        """Adds 1 to the instruction's counter (`layout.members`) if the member mask of some
        executing lane, in `on`, names a lane that has exited; nothing for an instruction without a
        member mask.
        """
        members = member_mask(instruction)
        if members is None:
            return
        b, frame = self.b, self.frame
        gone = b.and_(self.existing(), b.not_(b.load(frame.active.live, typ=I32)))
        with b.if_then(b.icmp_unsigned("!=", gone, I32(0)), likely=False):
            named = b.select(on, self.operands.read(members, B32), self.lanes.splat(I32(0)))
            all_named = self.lanes.intrinsic(f"llvm.vector.reduce.or.v{LANES}i32", I32, [named])
            counts = b.icmp_unsigned("!=", b.and_(all_named, gone), I32(0))
            frame.counters.add(frame.layout.members[index], b.zext(counts, I64))


def _names_all(members: Operand) -> bool:
    """Returns whether a mask is the constant of all lanes, which needs no check."""
    return isinstance(members, Immediate) and members.value & ALL_LANES == ALL_LANES
