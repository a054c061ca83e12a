"""Finds the registers in which emitted code may leave any NaN, so that a NaN is made canonical only
where its bits are read.

PTX arithmetic returns one canonical NaN; the host's processor returns one of many. Canonicalizing
each result would cost two vector operations per floating-point instruction, though a NaN's bits
matter only where bits are read: a store, a move to an integer, a shuffle. So a register that is
written by arithmetic alone holds any NaN ("open"), and reads of its bits canonicalize it:

    add.f32 %f1, %f2, %f3;     %f1 is open: no canonicalization
    mul.f32 %f4, %f1, %f1;     reads %f1 as a number: none either
    st.global.f32 [%rd1], %f4; reads bits: canonicalizes %f4

A register that a load or an integer instruction writes as well is not open."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Immediate, Instruction, Operand, Pair, Register, Vector
from warploom.isa.kinds import OpKind
from warploom.program.program import Program


def open_nan_registers(program: Program, *, baseline: bool) -> frozenset[Register]:
    """Returns the registers of 32 and 64 bits all of whose writers are floating-point arithmetic
    with canonical NaNs, moves of finite float literals, or moves from other such registers (the
    greatest fixed point); among them those that nothing writes. In baseline code there are none:
    its shared functions read registers as they are."""
    if baseline:
        return frozenset()
    written = {r: list[Instruction]() for r in program.registers}
    for instruction in program.instructions:
        for register in destinations(instruction):
            written.setdefault(register, []).append(instruction)
    # From all candidates downwards, as moves may form a cycle (`a = b` and, in a loop, `b = a`):
    # both are open unless another writer closes one of them, which closes the other as well.
    candidates = {r for r in written if r.type.bits in (32, 64)}
    while True:
        closed = {
            r
            for r in candidates
            if not all(_leaves_nan_bits_open(i, r, candidates) for i in written[r])
        }
        if not closed:
            return frozenset(candidates)
        candidates -= closed


def _leaves_nan_bits_open(
    instruction: Instruction, register: Register, candidates: set[Register]
) -> bool:
    """Returns whether the NaN that an instruction leaves in a register may have any bits. It may if
    the instruction is arithmetic whose result is canonicalized at the register's width, a move from
    a register of that width in `candidates`, or a move of a finite literal. A literal NaN or
    infinity has its own bits, so that a move of it gives False."""
    if is_copy(instruction):
        source = instruction.operands[1]
        if isinstance(source, Immediate):
            return _is_number(source, register.type.bits)
        return (
            isinstance(source, Register) and source in candidates and _same_width(source, register)
        )
    terms = instruction.operation.terms
    return len(terms) == 1 and terms[0].op == "canonical" and _same_width(terms[0], register)


def _is_number(literal: Immediate, bits: int) -> bool:
    """Returns whether a literal is a float of `bits` bits that is neither NaN nor infinite (its
    exponent is not all ones)."""
    exponent = {32: 0x7F800000, 64: 0x7FF << 52}[bits]
    return literal.float_bits == bits and literal.value & exponent != exponent


def _same_width(a: object, register: Register) -> bool:
    """Returns whether the type of `a`, a register or a term, has as many bits as a register's."""
    return getattr(a, "type").bits == register.type.bits  # noqa: B009


def is_copy(instruction: Instruction) -> bool:
    """Returns whether an instruction is a `mov` that leaves each value as it is: from a register or
    an immediate to a register, or element by element (`mov.v2`, `mov.v4`). One that packs or
    unpacks a vector, or computes an address, is none."""
    if instruction.operation.kind is not OpKind.MOVE:
        return False
    target, source = instruction.operands
    whole = isinstance(target, Register) and isinstance(source, Register | Immediate)
    return whole or "vec" in instruction.operation.modifiers


def destinations(instruction: Instruction) -> Iterator[Register]:
    """Yields the registers that an instruction writes, also those in vectors and pairs; of a call,
    the registers of its results."""
    count = len(instruction.operation.spec.destinations)
    operands = instruction.operands[:count]
    if instruction.operation.kind is OpKind.CALL:
        operands = instruction.operands[:1]
    for operand in operands:
        yield from _registers(operand)


def _registers(operand: Operand) -> Iterator[Register]:
    """Yields the registers that an operand is, or holds as a pair or a vector; not those of
    addresses."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from _registers(element)
