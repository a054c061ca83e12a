"""Emits `mov` that packs or unpacks vectors or reads addresses and special registers, and
conversions between generic addresses and those of a state space.

    mov.b64 %rd1, {%r1, %r2};        ->   zext %r1 | zext %r2 << 32
    cvta.shared.u64 %rd2, %rd1;      ->   %rd1 + SHARED_WINDOW
"""

from __future__ import annotations

from warploom.core.types import PRED, U64, ScalarType, unsigned
from warploom.isa.instruction import Instruction, Operand, Space, Symbol, Vector
from warploom.llvm.lanes import Value
from warploom.lower.frame.operands import WINDOWS, Operands

Result = tuple[Operand, Value, ScalarType]
"""A result of an instruction: the operand to write, the value, and its type."""


class MoveCode:
    """Emits `mov`, `cvta` and `isspacep.param`; returns their results, which the caller writes."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their program; emits nothing."""
        self.operands, self.b = operands, operands.b
        self.program = operands.frame.program

    def convert_address(self, instruction: Instruction, width: int) -> tuple[ScalarType, Value]:
        """Emits `cvta`, which adds the begin of a space's generic window to an address of the space
        (0 for all but shared and local; for `.param` the parameters' address), or `cvta.to`, which
        subtracts it. Returns type and value, in `width` lanes."""
        modifiers = instruction.operation.modifiers
        type = modifiers.scalar("size")
        space = Space(modifiers.text("space", "").partition("::")[0])
        value = self.operands.read(instruction.operands[1], type, width=width)
        window = self.operands.lowerings[width].vectors.constant(WINDOWS.get(space, 0), type)
        if space is Space.PARAM:
            window = self.operands.parameters(type, width)
        change = self.b.sub if "to" in modifiers else self.b.add
        return type, change(value, window)

    def test_parameter_window(self, instruction: Instruction) -> Result:
        """Emits `isspacep.param`; returns its destination with a predicate that is true in lanes
        whose generic address lies in the kernel's parameters."""
        target, source = instruction.operands
        offset = self.b.sub(self.operands.read(source, U64), self.operands.parameters(U64))
        size = self.operands.lower.vectors.constant(self.program.parameter_bytes, U64)
        # Without sign, the difference of an address below the parameters is greater than any size:
        # one comparison tests both ends.
        return target, self.b.icmp_unsigned("<", offset, size), PRED

    def move(self, instruction: Instruction) -> list[Result]:
        """Emits a `mov` that packs a vector into a register, unpacks a register into a vector, or
        reads an address (then unsigned) or a special register; returns its results."""
        target, source = instruction.operands
        type = instruction.operation.modifiers.scalar()
        if isinstance(source, Vector):
            return [(target, self._pack(source, type), type)]
        if isinstance(target, Vector):
            return self._unpack(target, source, type)
        if isinstance(source, Symbol):
            type = unsigned(type.bits)
        return [(target, self.operands.read(source, type), type)]

    def _unpack(self, target: Vector, source: Operand, type: ScalarType) -> list[Result]:
        """Returns the elements of `target`, each with its part of a value as an unsigned integer,
        the lowest bits first."""
        lower, part = self.operands.lower, unsigned(type.bits // len(target.elements))
        whole = self.operands.read(source, unsigned(type.bits))
        results: list[Result] = []
        for number, element in enumerate(target.elements):
            shifted = self.b.lshr(
                whole, lower.vectors.constant(number * part.bits, unsigned(type.bits))
            )
            results.append((element, self.b.trunc(shifted, lower.vectors.type(part)), part))
        return results

    def _pack(self, source: Vector, type: ScalarType) -> Value:
        """Returns the value whose parts are the elements of a vector, the first in the lowest
        bits."""
        part = unsigned(type.bits // len(source.elements))
        whole = self.operands.lower.vectors.type(unsigned(type.bits))
        value = self.operands.lower.vectors.constant(0, unsigned(type.bits))
        for number, element in enumerate(source.elements):
            wide = self.b.zext(self.operands.read(element, part), whole)
            shift = self.operands.lower.vectors.constant(number * part.bits, unsigned(type.bits))
            value = self.b.or_(value, self.b.shl(wide, shift))
        return value
