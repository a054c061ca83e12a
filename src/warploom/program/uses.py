"""Finds the registers and symbols that an instruction reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.isa.spec import Unit
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.ptx.ir import (
    Address,
    Element,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
    spread,
)


def leaf_operands(operand: Operand) -> Iterator[Operand]:
    """Yield the operands that an operand is made of: itself, or what its brackets and braces
    hold."""
    match operand:
        case Vector(elements):
            for element in elements:
                yield from leaf_operands(element)
        case Pair(first, second):
            yield from leaf_operands(first)
            yield second
        case Negated(register) | Element(register):
            yield register
        case Address(base):
            if base is not None:
                yield base
        case _:
            yield operand


def destinations(instruction: Instruction) -> tuple[Operand, ...]:
    """Return the operands that an instruction writes."""
    return instruction.operands[: len(instruction.operation.spec.destinations)]


def sources(instruction: Instruction) -> tuple[Operand, ...]:
    """Return the operands that an instruction reads."""
    return instruction.operands[len(instruction.operation.spec.destinations) :]


def reads(instruction: Instruction) -> Iterator[Register]:
    """Yield the registers that an instruction reads: its guard's, those of sources and addresses,
    and of destinations that it updates."""
    if instruction.guard is not None:
        yield instruction.guard.register
    yield from _registers(instruction.operands[i] for i in instruction.operation.spec.updated)
    yield from _registers(sources(instruction))


def writes(instruction: Instruction) -> Iterator[Register]:
    """Yield the registers that an instruction writes, where its guard lets it."""
    return _registers(destinations(instruction))


def _registers(operands: Iterable[Operand]) -> Iterator[Register]:
    """Yield the registers among operands and in them."""
    for operand in operands:
        if type(operand) is Register:
            yield operand
        else:
            yield from (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Register))


def symbols(instruction: Instruction) -> Iterator[Symbol]:
    """Yield the symbols that an instruction names."""
    for operand in instruction.operands:
        if type(operand) is not Register:
            yield from (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Symbol))


def is_reducing_barrier(instruction: Instruction) -> bool:
    """Returns whether it is a barrier that counts over all threads, and tells them (`bar.red`)."""
    operation = instruction.operation
    return operation.spec.unit is Unit.BARRIER and "red" in operation.modifiers


def may_wait_before(instruction: Instruction) -> bool:
    """Returns whether lanes may have to wait before they execute it: it has a block of its own."""
    return member_mask(instruction) is not None or is_reducing_barrier(instruction)


WHOLE_WARP = Immediate(0xFFFFFFFF)


def member_mask(instruction: Instruction) -> Operand | None:
    """Return the operand that names the lanes which an instruction brings together, if it has one;
    a matrix instruction brings together the whole warp (PTX ISA, `.sync` of mma and its kin)."""
    operation = instruction.operation
    if operation.spec.unit is Unit.MATRIX and "sync" in operation.modifiers:
        return WHOLE_WARP
    place = operation.spec.member_mask
    return None if place is None else instruction.operands[place]


def gathering_mask(instruction: Instruction) -> Operand | None:
    """Return the operand that names the lanes for which an instruction waits; None where it waits
    for none. Under a guard only an aligned one waits: its guard is the same in the whole warp (PTX
    ISA, `.aligned`)."""
    mask = member_mask(instruction)
    return mask if instruction.guard is None or mask is WHOLE_WARP else None


def changes_register_count(instructions: Iterable[Instruction]) -> bool:
    """Returns whether one of them releases registers or asks for more."""
    return any(instruction.operation.name == "setmaxnreg" for instruction in instructions)


def reads_clock(instructions: Iterable[Instruction]) -> bool:
    """Returns whether one of them looks at a clock."""
    operands = (operand for instruction in instructions for operand in spread(instruction.operands))
    specials = (operand.name for operand in operands if isinstance(operand, Special))
    return any(SPECIAL_REGISTERS[name].clock_bit is not None for name in specials)
