"""Finds registers that hold the value of a parameter or a variable of the source.

Optimized PTX does not map registers to variables. Some mappings can be inferred: a register that is
loaded from a parameter, or copied from such a register; and the single result of a line that only
assigns to a variable. For `int i = blockIdx.x * blockDim.x + threadIdx.x;`, compiled to

    mad.lo.s32 %r4, %r1, %r2, %r3;

`%r4` is `i`: it is the register that other lines use and that line itself does not. If a line has
several such registers, none of them gets the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from warploom.core.types import PRED
from warploom.isa.instruction import Address, Instruction, Register, Symbol
from warploom.isa.kinds import OpKind
from warploom.program.program import Program
from warploom.program.uses import reads, writes

_ASSIGNED = re.compile(
    r"\s*(?:(?:const|volatile|unsigned|signed|long|short|char|bool|int|float|double|half|auto"
    r"|size_t|u?int\d+_t)\s+)*(?P<name>[A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=[^=;][^;]*;\s*(?://.*)?"
)
"""Matches a line that is one assignment to a plain variable, or its declaration with a value."""

COPIES = (OpKind.MOVE, OpKind.CONVERT_ADDRESS)


def variables_of(
    program: Program, parameters: Mapping[str, str], lines: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Returns the names of parameters and variables by register. `parameters` maps PTX parameters
    to source names, `lines` source files to their lines."""
    written = Counter(
        r for instruction in program.instructions for r in dict.fromkeys(writes(instruction))
    )
    names = _parameter_registers(program, parameters, written)
    used = _use_lines(program)
    results: dict[tuple[str, int], list[Register]] = {}
    for instruction in program.instructions:
        if instruction.location is None:
            continue
        location = instruction.location.written.file, instruction.location.written.line
        for register in writes(instruction):
            lines_of_uses = used.get(register, set())
            is_result = bool(lines_of_uses) and location not in lines_of_uses
            if register.type != PRED and written[register] == 1 and is_result:
                results.setdefault(location, []).append(register)
    for (file, line), registers in results.items():
        text = lines.get(file, ())
        assigned = _ASSIGNED.fullmatch(text[line - 1]) if 0 < line <= len(text) else None
        unnamed = [candidate for candidate in registers if candidate.name not in names]
        if assigned and len(unnamed) == 1:
            names[unnamed[0].name] = assigned["name"]
    return names


def _parameter_registers(
    program: Program, parameters: Mapping[str, str], written: Mapping[Register, int]
) -> dict[str, str]:
    """Returns the parameter names of registers into which a parameter is loaded or copied."""
    names: dict[str, str] = {}
    for instruction in program.instructions:
        results = tuple(writes(instruction))
        # A register with several definitions, or a guarded one, may hold other values as well.
        if len(results) != 1 or written[results[0]] != 1 or instruction.guard is not None:
            continue
        name = _loaded_parameter(instruction, parameters)
        if instruction.operation.kind in COPIES:
            sources = tuple(reads(instruction))
            name = names.get(sources[0].name) if len(sources) == 1 else None
        if name:
            names[results[0].name] = name
    return names


def _loaded_parameter(instruction: Instruction, parameters: Mapping[str, str]) -> str | None:
    """Returns the name of the parameter that an instruction loads as a whole, None for other
    instructions."""
    if instruction.operation.kind is not OpKind.LOAD:
        return None
    for operand in instruction.operands:
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return parameters.get(operand.base.name) if not operand.offset else None
    return None


def _use_lines(program: Program) -> dict[Register, set[tuple[str, int]]]:
    """Returns the (file, line) of each instruction that reads a register, by register."""
    uses: dict[Register, set[tuple[str, int]]] = {}
    for instruction in program.instructions:
        if instruction.location is not None:
            location = instruction.location.written.file, instruction.location.written.line
            for register in reads(instruction):
                uses.setdefault(register, set()).add(location)
    return uses
