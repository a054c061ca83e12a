"""Emits the exit of a warp function at an access that faults, shared by all its accesses."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame

SLOTS = (Slot.FAULT_INSTRUCTION, Slot.FAULT_WARP, Slot.FAULT_SPACE)


class FaultExit:
    """Emits branches to one LLVM block that returns with a fault; phis in it select the record. One
    block for all accesses makes their code small."""

    def __init__(self, frame: Frame) -> None:
        """Begins without the shared block, which `leave` emits at its first use."""
        self.frame, self.b = frame, frame.lanes.b
        self._block: ir.Block | None = None
        self._phis: list[Value] = []

    def leave(self, instruction: Value, fault: Value, space: Value) -> None:
        """Emits a branch, taken if `fault` is not 0, to the block that records the instruction, the
        warp and the space in the environment and returns FAULT; else code continues in a new block.

        `instruction` and `space` are i64: the instruction's number and the code of the state space
        (`abi.environment.SPACE_CODES`); the check has recorded lane, address and kind.
        """
        after = self.b.append_basic_block("accessed")
        record = instruction, self.frame.warp, space
        target = self._fault_block()
        for phi, value in zip(self._phis, record, strict=True):
            phi.add_incoming(value, self.b.block)
        bad = self.b.icmp_unsigned("!=", fault, I64(0))
        # Weights move the fault block out of the fast path's layout.
        self.b.cbranch(bad, target, after).set_weights([1, 1 << 20])
        self.b.position_at_end(after)

    def _fault_block(self) -> ir.Block:
        """Returns the block that all faulting accesses branch to; at its first use emits it, with a
        phi for each of SLOTS (instruction, warp, space), whose values it records before it leaves
        with FAULT."""
        if self._block is None:
            self._block = self.frame.function.append_basic_block("faulted")
            with self.b.goto_block(self._block):
                self._phis = [self.b.phi(I64) for _ in SLOTS]
                for slot, value in zip(SLOTS, self._phis, strict=True):
                    self.frame.record(slot, value)
                self.frame.leave(Status.FAULT)
        return self._block
