"""Checks the program of a Warp IR: that its basic blocks cover its operations and lead where these
branch to, and that operands name registers, variables and labels that exist.

    add.s32 %r1, %r2, %r9;    -> an error, if %r9 is not declared
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Space,
    Special,
    Symbol,
    flatten_operands,
)
from warploom.isa.kinds import OpKind
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.program.accesses import space_of
from warploom.program.cfg import ProgramBlock, successors_of
from warploom.program.layout import DYNAMIC_SHARED_ALIGNMENT, reserved_bytes
from warploom.program.program import PARAMETERS, Program

MOST_ALIGNED = 1 << 10
"""More than the bytes that alignment leaves between two variables."""

FLOAT_BITS = (0, 32, 64)
"""The widths of literals: 0 for integers."""

JUMPS = (OpKind.BRANCH, OpKind.INDEXED_BRANCH)


def program_errors(program: Program) -> Iterator[str]:
    """Yields what is wrong with a program, as sentences for messages: its operands, blocks,
    registers and memory."""
    yield from _operand_errors(program)
    yield from _block_errors(program)
    yield from _register_errors(program)
    yield from _memory_errors(program)


def _operand_errors(program: Program) -> Iterator[str]:
    """Yields operations that have a wrong number of operands, or that name an undeclared variable
    or label; neither is checked for calls. Yields as well those with a literal of another width
    than FLOAT_BITS, an unknown special register, a label with an offset, or an address of a
    variable that is undeclared or in another space."""
    for index, instruction in enumerate(program.instructions):
        spec, count = instruction.operation.spec, len(instruction.written)
        is_call = instruction.operation.kind is OpKind.CALL
        if not is_call and not spec.needed <= count <= len(spec.shown):
            yield f"operation {index} has the wrong number of operands, {count}"
        for operand in _leaves(instruction.operands):
            if isinstance(operand, Immediate) and operand.float_bits not in FLOAT_BITS:
                yield (
                    f"operation {index} has a floating-point number of {operand.float_bits} bits, "
                    "which is not a valid size"
                )
            if isinstance(operand, Special) and operand.name not in SPECIAL_REGISTERS:
                yield f"operation {index} names {operand.name}, which is not a special register"
            if isinstance(operand, Address) and isinstance(operand.base, Symbol):
                yield from _variable_errors(program, index, operand.base)
            if isinstance(operand, Symbol) and not is_call:
                if operand.name not in program.slots and operand.name not in program.targets:
                    yield f"operation {index} names {operand.name}, which is not declared"
                if operand.name in program.targets and operand.offset:
                    yield f"operation {index} branches to an offset from the label {operand.name}"


def _variable_errors(program: Program, index: int, symbol: Symbol) -> Iterator[str]:
    """Yields what is wrong with the variable at whose address an operation accesses memory: it does
    not exist, or is in another space than the operation names (a generic one may access any)."""
    slot = program.slots.get(symbol.name)
    if slot is None:
        yield f"operation {index} names {symbol.name}, which is not a variable"
    elif space_of(program.instructions[index]) not in (slot.space, Space.GENERIC):
        yield (
            f"operation {index} names {symbol.name}, which is in {slot.space.value} memory, but "
            "accesses a different space"
        )


def _block_errors(program: Program) -> Iterator[str]:
    """Yields blocks that are empty or do not follow each other, labels at no block, and blocks
    whose successors are not those of their last operation; `local_successors` may differ where a
    function is called or left. Stops at the first error that later checks would trip over."""
    # Each block has to begin where the one before ends, so one list has the starts of all.
    starts = [0, *(block.stop for block in program.blocks)]
    if starts[-1] != len(program.instructions):
        yield f"its blocks contain {starts[-1]} of its {len(program.instructions)} operations"
    for index, (block, start) in enumerate(zip(program.blocks, starts, strict=False)):
        if (block.index, block.start) != (index, start) or block.stop <= start:
            yield (
                f"block {index} has the wrong index or range: index {block.index}, range "
                f"{block.start} to {block.stop}"
            )
            return
    if len(program.local_successors) != len(program.blocks):
        yield "its list of local successors does not have one entry for each block"
        return
    ends = (program.exit, *program.targets.values())
    if not all(0 <= target <= program.exit for target in ends):
        yield "a label does not refer to a block"
        return
    for block in program.blocks:
        yield from _successor_errors(program, block)


def _successor_errors(program: Program, block: ProgramBlock) -> Iterator[str]:
    """Yields what is wrong with the end of a block: its last operation branches to a name that is
    no label (nothing else is checked then); `successors` are not those that this operation leads
    to; `local_successors` has a number that is neither a block nor the program's exit, or differs
    from `successors`. It may differ only where a function is called or left: at a jump, in a
    program whose calls are not all inlined (`depth`)."""
    last = program.instructions[block.stop - 1]
    label = last.operands[0] if last.operation.kind is OpKind.BRANCH else None
    if isinstance(label, Symbol) and label.name not in program.targets:
        yield f"block {block.index} branches to {label.name}, which is not a label"
        return
    expected = successors_of(last, block.index, program.exit, program.targets)
    if block.successors != expected:
        yield (
            f"block {block.index} has the successors {block.successors}, but its last operation"
            f" leads to {expected}"
        )
    local = program.local_successors[block.index]
    # A call that is not inlined is a jump to its callee, a return a jump to all its return points.
    # For the analyses of one function they lead to the instruction after the call, and to the end.
    is_call = program.depth is not None and last.operation.kind in JUMPS
    if local != block.successors and not is_call:
        yield f"block {block.index} has the local successors {local} but does not end with a call"
    if not all(0 <= to <= program.exit for to in local):
        yield f"block {block.index} has a local successor that is not a block"


def _register_errors(program: Program) -> Iterator[str]:
    """Yields registers that are declared twice, or named (by an operation, or as the depth of
    calls) and not declared; and marks (hidden, private) of operations that do not exist."""
    declared = {register.name: register for register in program.registers}
    if len(declared) != len(program.registers):
        yield "a register is declared twice"
    for index, instruction in enumerate(program.instructions):
        for register in _registers(instruction):
            if declared.get(register.name) != register:
                yield f"operation {index} names {register.name}, which is not declared"
    if program.depth is not None and program.depth not in program.registers:
        yield f"the call-depth register, {program.depth.name}, is not declared"
    for name, marked in (("hidden", program.hidden), ("private", program.private)):
        if not marked <= set(range(len(program.instructions))):
            yield f"the set of {name} operations contains an index that refers to no operation"


def _registers(instruction: Instruction) -> Iterator[Register]:
    """Yields the registers that an operation names: its guard's, operands, also in vectors and
    negated, and bases of addresses."""
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
    for operand in flatten_operands(operands):
        parts = tuple(flatten_operands((operand,)))
        yield from (operand,) if parts == (operand,) else _leaves(parts)


def _memory_errors(program: Program) -> Iterator[str]:
    """Yields variables that do not follow the one before in their space, with a gap for alignment
    of less than MOST_ALIGNED bytes; globals that are not at their number; spaces whose size is not
    the end of their last variable; and wrong begins or sizes of dynamic and reserved shared
    memory."""
    ends = {
        (Space.PARAM, False): program.parameter_bytes,
        (Space.PARAM, True): program.frame_bytes,
        (Space.SHARED, False): program.shared_bytes,
        (Space.LOCAL, False): program.local_bytes,
    }
    taken = dict.fromkeys(ends, 0)
    for name, slot in program.slots.items():
        storage = slot.space, slot.frame
        if slot.space in (Space.GLOBAL, Space.CONST):
            at_end = name == PARAMETERS and slot.offset == len(program.globals)
            if slot.frame or not (at_end or _global(program, slot.offset) == name):
                yield f"the global variable {name} does not have the index {slot.offset}"
        elif storage not in taken:
            yield f"the variable {name} cannot be in {slot.space.value} memory"
        elif slot.space is Space.SHARED and slot.size == 0:
            if slot.offset not in (taken[storage], program.dynamic_shared_offset):
                yield f"the array {name} does not begin at the start of dynamic shared memory"
        elif not taken[storage] <= slot.offset < taken[storage] + MOST_ALIGNED:
            yield f"the variable {name} does not start where the previous variable ends"
        else:
            taken[storage] = slot.offset + slot.size
    for (space, _), end in ends.items():
        if end != taken[space, _]:
            yield f"the variables in {space.value} memory occupy {taken[space, _]} bytes, not {end}"
    declared_end, begin = program.shared_bytes, program.dynamic_shared_offset
    if not declared_end <= begin < declared_end + MOST_ALIGNED or begin % DYNAMIC_SHARED_ALIGNMENT:
        yield "dynamic shared memory does not start where static shared memory ends"
    if program.reserved_shared_bytes != reserved_bytes(program.instructions):
        yield (
            f"it reserves {program.reserved_shared_bytes} bytes of shared memory, but must reserve "
            f"{reserved_bytes(program.instructions)}"
        )


def _global(program: Program, index: int) -> str | None:
    """Returns the global variable of a number, None if there is none."""
    return program.globals[index] if 0 <= index < len(program.globals) else None
