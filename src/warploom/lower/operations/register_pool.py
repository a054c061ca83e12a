"""Emits `setmaxnreg`: sets or requests a warp's number of registers per thread, and faults if `inc`
lowers or `dec` raises it (`simt.register_pool`)."""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.isa.instruction import Immediate, Instruction
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.frame.frame import Frame
from warploom.simt.register_pool import FAULT


def emit_register_count(frame: Frame, index: int, instruction: Instruction, on: Value) -> None:
    """Emits a `setmaxnreg`, if `on` has lanes: the call `set_registers`, which sets or requests the
    warp's registers per thread, and a fault if that returns an error: `inc` to fewer registers, or
    `dec` to more."""
    lanes, b = frame.lanes, frame.lanes.b
    count = instruction.operands[0]
    assert isinstance(count, Immediate)
    grows = int("inc" in instruction.operation.modifiers.values.values())
    with b.if_then(lanes.any(on)):
        wrong = call(
            lanes,
            "set_registers",
            frame.pointer(Slot.PLAN_AT),
            frame.pointer(Slot.STATES_AT),
            frame.warp,
            I64(count.value),
            I64(grows),
        )
        with b.if_then(b.icmp_unsigned("!=", wrong, I64(0)), likely=False):
            lane = lanes.intrinsic("llvm.cttz.i32", I32, [lanes.bits(on), I1(0)])
            frame.fault(FAULT, index, lane, I64(count.value), wrong)
