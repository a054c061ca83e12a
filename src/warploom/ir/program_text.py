"""Prints the program of a Warp IR: its memory, variables, registers, labels and operations.

`ir.program_parser` reads the lines back. An operation is printed as in PTX, but with all operands
in their positions, also those that PTX leaves out, and with the decorations of operands (`.b0`,
`-`) as modifiers of the opcode. After it follow its attributes: `hidden` and `private` (`Program`),
`plan` for accesses, and `at`, the source line.

    memory parameters=20 shared=1024 dynamic=1024
    variables
      n param 0 4
      tile shared 0 1024
    labels
      $L__BB0_2 b2
    block b0 to=b2,b1
      0: ld.param.u32 %r2, [n]; at=saxpy.cu:4
      1: @%p1 bra $L__BB0_2; at=saxpy.cu:6
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from warploom.core.source import Location
from warploom.ir.lines import INDENT, attributes
from warploom.isa.instruction import Instruction, Symbol, flatten_operands
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.ptx.printer import print_operand

MEMORY = {
    "parameters": "parameter_bytes",
    "frame": "frame_bytes",
    "shared": "shared_bytes",
    "dynamic": "dynamic_shared_offset",
    "local": "local_bytes",
    "reserved": "reserved_shared_bytes",
}
"""The attributes of the line `memory`, and the fields of `Program` that they show."""


def memory_lines(program: Program) -> Iterator[str]:
    """Yields the lines of a program's memory: sizes in bytes, the register with the depth of calls,
    variables (name, space, offset, size), the names of global variables by their index, and the
    functions of the host that it calls."""
    sizes = {name: getattr(program, field) or None for name, field in MEMORY.items()}
    depth = program.depth and program.depth.name
    yield "memory" + attributes(**sizes, depth=depth, all_live=program.all_live)
    yield "variables"
    for name, slot in program.slots.items():
        line = f"{INDENT}{name} {slot.space.value} {slot.offset} {slot.size}"
        yield line + attributes(frame=slot.frame)
    yield "globals" + "".join(f" {name}" for name in program.globals)
    yield "functions" + "".join(f" {name}" for name in sorted(_functions(program)))


def label_lines(program: Program, label: Callable[[int], str]) -> Iterator[str]:
    """Yields the line `labels`, and a line for each label that operations name, with the block that
    it stands before; `label` returns the name of a block."""
    yield "labels"
    yield from (f"{INDENT}{name} {label(block)}" for name, block in program.targets.items())


def operation_lines(
    program: Program, block: ProgramBlock, plans: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    """Yields the lines of the operations of a basic block: index, operation, and its attributes
    hidden, private (`Program`), plan, and at (source position). `plans` has, by index, the texts of
    an access's plans at any addresses, `space:plan`."""
    for index in range(block.start, block.stop):
        instruction = program.instructions[index]
        yield f"{INDENT}{index}: {print_operation(instruction)}" + attributes(
            hidden=index in program.hidden,
            private=index in program.private,
            plan=plans.get(index, ()),
            at=instruction.location and _position(instruction.location),
        )


def print_operation(instruction: Instruction) -> str:
    """Returns the text of an instruction with its guard and all operands, which ends with `;`."""
    guard = instruction.guard
    before = f"@{'!' * guard.negated}{guard.register.name} " if guard is not None else ""
    operands = ", ".join(map(print_operand, instruction.operands))
    return f"{before}{instruction.operation.text} {operands}".rstrip() + ";"


def _functions(program: Program) -> set[str]:
    """Returns the symbols that are neither variables nor labels: functions of the host that the
    program calls."""
    operands: Iterable[object] = (
        operand
        for instruction in program.instructions
        for operand in flatten_operands(instruction.operands)
    )
    symbols = {operand.name for operand in operands if isinstance(operand, Symbol)}
    return symbols - {*program.slots, *program.targets}


def _position(location: Location) -> str:
    """Returns a source position as one word, with the file's name percent-encoded."""
    return f"{quote(location.file)}:{location.line}"
