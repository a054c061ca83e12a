"""Lists the registers and symbols that an instruction reads and writes, and the lanes that it waits
for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.isa.instruction import (
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
    flatten_operands,
)
from warploom.isa.spec import Unit
from warploom.isa.special import SPECIAL_REGISTERS


def leaf_operands(operand: Operand) -> Iterator[Operand]:
    """Yields the operands that an operand consists of: the elements of a vector or pair (a pair's
    second is a predicate register); the register that is negated, or of which an element is
    selected; the base of an address, if it has one, without the offset. Any other operand consists
    of itself."""
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
    """Returns the operands that an instruction writes."""
    return instruction.operands[: len(instruction.operation.spec.destinations)]


def sources(instruction: Instruction) -> tuple[Operand, ...]:
    """Returns the operands that an instruction reads: those after its destinations, of which it may
    update some (`reads`)."""
    return instruction.operands[len(instruction.operation.spec.destinations) :]


def reads(instruction: Instruction) -> Iterator[Register]:
    """Yields the registers that an instruction reads: its guard's, those of sources and addresses,
    and those of destinations that it updates."""
    if instruction.guard is not None:
        yield instruction.guard.register
    yield from _registers(instruction.operands[i] for i in instruction.operation.spec.updated)
    yield from _registers(sources(instruction))


def writes(instruction: Instruction) -> Iterator[Register]:
    """Yields the registers that an instruction writes; a false guard leaves them unchanged."""
    return _registers(destinations(instruction))


def _registers(operands: Iterable[Operand]) -> Iterator[Register]:
    """Yields the registers that operands are or contain."""
    for operand in operands:
        if type(operand) is Register:  # as most are: no generator for it
            yield operand
        else:
            yield from (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Register))


def symbols(instruction: Instruction) -> Iterator[Symbol]:
    """Yields the symbols (variables, functions, labels) that the operands of an instruction
    name."""
    for operand in instruction.operands:
        if type(operand) is not Register:
            yield from (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Symbol))


def is_reducing_barrier(instruction: Instruction) -> bool:
    """Returns whether an instruction is a barrier that also reduces a predicate of all threads
    (`bar.red`)."""
    operation = instruction.operation
    return operation.spec.unit is Unit.BARRIER and "red" in operation.modifiers


def may_wait_before(instruction: Instruction) -> bool:
    """Returns whether lanes may have to wait for other lanes before they execute an instruction:
    it has a member mask, or is a reducing barrier. Such an instruction has a basic block of its
    own."""
    return member_mask(instruction) is not None or is_reducing_barrier(instruction)


WHOLE_WARP = Immediate(0xFFFFFFFF)


def member_mask(instruction: Instruction) -> Operand | None:
    """Returns the operand with the lanes that execute an instruction together, as bits; the
    constant of a whole warp for matrix instructions (PTX ISA, `.sync` of mma and its kin); None for
    instructions that each lane executes on its own."""
    operation = instruction.operation
    if operation.spec.unit is Unit.MATRIX and "sync" in operation.modifiers:
        return WHOLE_WARP
    position = operation.spec.member_mask
    return None if position is None else instruction.operands[position]


def gathering_mask(instruction: Instruction) -> Operand | None:
    """Returns the operand with the lanes that an instruction waits for; None if it waits for none.
    A guarded instruction waits only if it is a matrix instruction, whose guard is the same in the
    whole warp (PTX ISA, `.aligned`)."""
    mask = member_mask(instruction)
    return mask if instruction.guard is None or mask is WHOLE_WARP else None


def reads_clock(instructions: Iterable[Instruction]) -> bool:
    """Returns whether some instruction reads a special register that depends on the time, so that
    its results differ from run to run."""
    names = special_registers(instructions)
    return any(SPECIAL_REGISTERS[name].clock_bit is not None for name in names)


def special_registers(instructions: Iterable[Instruction]) -> frozenset[str]:
    """Returns the names of the special registers that instructions read."""
    return frozenset(
        operand.name
        for instruction in instructions
        for operand in flatten_operands(instruction.operands)
        if isinstance(operand, Special)
    )
