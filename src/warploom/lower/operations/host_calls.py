"""Emits calls of host functions (printf, malloc, free, assert, ...): arguments are stored in a
buffer, a host callback serves the call, results are loaded from the buffer
(`machine.compiled.host_callbacks`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.core.types import U64
from warploom.isa.instruction import Instruction, Operand, Vector
from warploom.llvm.lanes import I8, I64, LANES, PTR, Value, vector
from warploom.lower.frame.operands import Operands

MOST_ARGUMENTS = 5  # of `__assertfail`
SIGNATURE = ir.FunctionType(I64, [PTR, I64, I64, I64, PTR])
"""The type of `failed = serve(environment, warp, instruction, mask, buffer)`. If it fails, the
environment has the record of the fault. The buffer has 32 lanes of 64 bits for each argument."""


class HostCallCode:
    """Emits the host calls (printf, malloc, free, assert, ...) of one warp function."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; the first call allocates the buffer."""
        self.operands, self.frame, self.b = operands, operands.frame, operands.b

    def call(self, index: int, instruction: Instruction, on: Value) -> list[tuple[Operand, Value]]:
        """Emits the call of instruction `index` to the host callback for the lanes `on`, and the
        exit with a fault if it fails; a mask without lanes calls nothing. Returns the registers
        that it writes, with values of 64 bits, which the callback has stored over the first
        argument."""
        b, frame = self.b, self.frame
        returns, arguments = instruction.operands[0], instruction.operands[2]
        assert isinstance(returns, Vector)
        assert isinstance(arguments, Vector)
        buffer = self._buffer()
        for number, argument in enumerate(arguments.elements):
            at = b.gep(buffer, [I64(8 * LANES * number)], source_etype=I8)
            b.store(self.operands.read(argument, U64), at, align=64)
        bits = frame.lanes.bits(on)
        # The host must not be called for no lanes: printf would print, malloc allocate.
        with b.if_then(b.icmp_unsigned("!=", bits, bits.type(0))):
            serve = b.inttoptr(frame.slot(Slot.SERVICE_AT), ir.PointerType(SIGNATURE))
            callback_arguments = [frame.warp, I64(index), b.zext(bits, I64), buffer]
            failed = b.call(serve, [frame.environment, *callback_arguments])
            with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
                frame.leave(Status.FAULT)
        results = b.load(buffer, typ=vector(I64), align=64)
        return [(register, results) for register in returns.elements]

    def _buffer(self) -> Value:
        """Returns the buffer on the stack for arguments and results, which all calls of the
        function share.
        """
        if not hasattr(self, "_data"):
            size = ir.ArrayType(I8, 8 * LANES * MOST_ARGUMENTS)
            self._data = self.frame.prologue.alloca(size, align=64)
        return self._data
