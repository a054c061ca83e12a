"""Finds the registers that may hold any NaN for the canonical one.

PTX arithmetic gives one canonical NaN; a processor gives one of many. Making each result canonical
would cost every floating-point instruction two vector operations, though a NaN's bits show only
where somebody looks at bits: a store, a move to an integer, a shuffle. So a register that only
arithmetic writes keeps whatever NaN came, and readers of bits make it canonical.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.program.program import Program
from warploom.ptx.ir import Immediate, Instruction, Operand, Pair, Register, Vector


def open_nan_registers(program: Program) -> frozenset[Register]:
    """Registers all of whose writers are arithmetic, or moves from such registers or of numbers."""
    written = {r: list[Instruction]() for r in program.registers}
    for instruction in program.instructions:
        for register in destinations(instruction):
            written.setdefault(register, []).append(instruction)
    found = {r for r in written if r.type.bits in (32, 64)}
    while True:
        closed = {r for r in found if not all(_is_open(i, r, found) for i in written[r])}
        if not closed:
            return frozenset(found)
        found -= closed


def _is_open(instruction: Instruction, register: Register, candidates: set[Register]) -> bool:
    if is_copy(instruction):
        source = instruction.operands[1]
        if isinstance(source, Immediate):
            return _is_number(source, register.type.bits)
        return isinstance(source, Register) and source in candidates and _same(source, register)
    terms = instruction.operation.terms
    return len(terms) == 1 and terms[0].op == "canonical" and _same(terms[0], register)


def _is_number(literal: Immediate, bits: int) -> bool:
    """Returns whether a literal is a float of so many bits, and no NaN: its exponent is not all
    ones."""
    exponent = {32: 0x7F800000, 64: 0x7FF << 52}[bits]
    return literal.float_bits == bits and literal.value & exponent != exponent


def _same(a: object, register: Register) -> bool:
    return getattr(a, "type").bits == register.type.bits  # noqa: B009


def is_copy(instruction: Instruction) -> bool:
    """Returns whether it is a `mov` of whole registers or immediates to other registers, and of
    nothing that is packed, taken apart or an address."""
    if instruction.operation.name != "mov":
        return False
    target, source = instruction.operands
    whole = isinstance(target, Register) and isinstance(source, Register | Immediate)
    return whole or "vec" in instruction.operation.modifiers


def destinations(instruction: Instruction) -> Iterator[Register]:
    """Yield the registers that an instruction writes."""
    count = len(instruction.operation.spec.destinations)
    operands = instruction.operands[:count]
    if instruction.operation.name == "call":
        operands = instruction.operands[:1]
    for operand in operands:
        yield from _registers(operand)


def _registers(operand: Operand) -> Iterator[Register]:
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from _registers(element)
