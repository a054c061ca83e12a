"""Emits where a warp leaves at an access that faults."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame

SLOTS = (Slot.FAULT_INSTRUCTION, Slot.FAULT_WARP, Slot.FAULT_SPACE)


class FaultExit:
    """Emits jumps to the one block of a warp function in which it leaves with the record of a
    fault."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.b = frame, frame.lanes.b
        self._block: ir.Block | None = None
        self._record: list[Value] = []

    def leave(self, instruction: Value, fault: Value, space: Value) -> None:
        """Leave where `fault` is not 0, with the record of a fault of an instruction in the space
        of that code."""
        after = self.b.append_basic_block("accessed")
        where = instruction, self.frame.warp, space
        faulted = self._begun()
        for known, value in zip(self._record, where, strict=True):
            known.add_incoming(value, self.b.block)
        bad = self.b.icmp_unsigned("!=", fault, I64(0))
        self.b.cbranch(bad, faulted, after).set_weights([1, 1 << 20])
        self.b.position_at_end(after)

    def _begun(self) -> ir.Block:
        """Return the block to which all accesses that fault go."""
        if self._block is None:
            self._block = self.frame.function.append_basic_block("faulted")
            with self.b.goto_block(self._block):
                self._record = [self.b.phi(I64) for _ in SLOTS]
                for slot, value in zip(SLOTS, self._record, strict=True):
                    self.frame.record(slot, value)
                self.frame.leave(Status.FAULT)
        return self._block
