"""Checks the program of a Warp IR: that its basic blocks cover its operations and lead where these
branch to, and that operands name registers, variables and labels that exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.isa.kinds import OpKind
from warploom.program.cfg import ProgramBlock, successors_of
from warploom.program.program import PARAMETERS, Program
from warploom.ptx.ir import Address, Instruction, Negated, Operand, Register, Space, Symbol, spread

JUMPS = (OpKind.BRANCH, OpKind.INDEXED_BRANCH)


def program_errors(program: Program) -> Iterator[str]:
    """Yields what is wrong with a program, as sentences for messages."""
    yield from _block_errors(program)
    yield from _register_errors(program)
    yield from _memory_errors(program)


def _block_errors(program: Program) -> Iterator[str]:
    """Yields blocks that do not follow each other, or whose successors are not those of their last
    operation; `local_successors` may differ where a function is called or left."""
    starts = [0, *(block.stop for block in program.blocks)]
    if starts[-1] != len(program.instructions):
        yield f"its blocks have {starts[-1]} of its {len(program.instructions)} operations"
    for index, (block, start) in enumerate(zip(program.blocks, starts, strict=False)):
        if (block.index, block.start) != (index, start) or block.stop <= start:
            yield f"block {index} is number {block.index}, from {block.start} to {block.stop}"
            return
    if len(program.local_successors) != len(program.blocks):
        yield "not every block has local successors"
        return
    ends = (program.exit, *program.targets.values())
    if not all(0 <= target <= program.exit for target in ends):
        yield "a label is at no block"
        return
    for block in program.blocks:
        yield from _successor_errors(program, block)


def _successor_errors(program: Program, block: ProgramBlock) -> Iterator[str]:
    """Yields what is wrong with the successors of a block."""
    last = program.instructions[block.stop - 1]
    label = last.operands[0] if last.operation.kind is OpKind.BRANCH else None
    if isinstance(label, Symbol) and label.name not in program.targets:
        yield f"block {block.index} branches to {label.name}, which is no label"
        return
    expected = successors_of(last, block.index, program.exit, program.targets)
    if block.successors != expected:
        yield f"block {block.index} leads to {block.successors}, its last operation to {expected}"
    local = program.local_successors[block.index]
    is_call = program.depth is not None and last.operation.kind in JUMPS
    if local != block.successors and not is_call:
        yield f"block {block.index} has local successors {local} and no call"
    if not all(0 <= to <= program.exit for to in local):
        yield f"block {block.index} has a local successor that is no block"


def _register_errors(program: Program) -> Iterator[str]:
    """Yields registers that operations name and nobody declares, and operations beyond the last."""
    declared = {register.name: register for register in program.registers}
    if len(declared) != len(program.registers):
        yield "a register is declared twice"
    for index, instruction in enumerate(program.instructions):
        for register in _registers(instruction):
            if declared.get(register.name) != register:
                yield f"operation {index} names {register.name}, which is not declared"
    if program.depth is not None and program.depth not in program.registers:
        yield f"the depth of calls is in {program.depth.name}, which is not declared"
    for name, marked in (("hidden", program.hidden), ("private", program.private)):
        if not marked <= set(range(len(program.instructions))):
            yield f"an operation that does not exist is {name}"


def _registers(instruction: Instruction) -> Iterator[Register]:
    """Yields the registers that an operation names."""
    if instruction.guard is not None:
        yield instruction.guard.register
    for operand in _leaves(instruction.operands):
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Negated):
            yield operand.operand
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            yield operand.base


def _leaves(operands: Iterable[Operand]) -> Iterator[Operand]:
    """Yields operands one by one, also those in vectors of a pair."""
    for operand in spread(operands):
        parts = tuple(spread((operand,)))
        yield from (operand,) if parts == (operand,) else _leaves(parts)


def _memory_errors(program: Program) -> Iterator[str]:
    """Yields variables that are not within the memory of their space."""
    sizes = {
        (Space.PARAM, False): program.parameter_bytes,
        (Space.PARAM, True): program.frame_bytes,
        (Space.SHARED, False): max(program.shared_bytes, program.dynamic_shared_offset),
        (Space.LOCAL, False): program.local_bytes,
    }
    for name, slot in program.slots.items():
        if slot.space in (Space.GLOBAL, Space.CONST):
            at_end = name == PARAMETERS and slot.offset == len(program.globals)
            if not at_end and program.globals[slot.offset : slot.offset + 1] != (name,):
                yield f"the global variable {name} is not number {slot.offset}"
        elif slot.offset < 0 or slot.offset + slot.size > sizes.get((slot.space, slot.frame), 0):
            yield f"the variable {name} is not within the {slot.space.value} memory"
