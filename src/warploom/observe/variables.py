"""Finds registers that hold the value of a parameter or a variable of the source.

Optimised PTX does not say which register is which variable. Some follow all the same: a register
that is loaded from a parameter, or copied from such a one; and the one result of a line that does
nothing but assign to a variable (`int i = blockIdx.x * blockDim.x + threadIdx.x;`): the register
that other lines use, and the line itself does not. Where a line leaves several such registers, none
of them gets the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from warploom.core.types import PRED
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.ir import Address, Instruction, Register, Symbol

_ASSIGNED = re.compile(
    r"\s*(?:(?:const|volatile|unsigned|signed|long|short|char|bool|int|float|double|half|auto"
    r"|size_t|u?int\d+_t)\s+)*(?P<name>[A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=[^=;][^;]*;\s*(?://.*)?"
)
"""A line that is one assignment to a plain variable, or its declaration with a value."""

COPIES = ("mov", "cvta")


def variables_of(
    program: Program, parameters: Mapping[str, str], lines: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Returns names of parameters and variables by register. `parameters` has the source's name of
    each PTX parameter, `lines` the lines of each source file."""
    written = Counter(r for made in program.instructions for r in dict.fromkeys(writes(made)))
    found = _parameter_registers(program, parameters, written)
    used = _use_lines(program)
    results: dict[tuple[str, int], list[Register]] = {}
    for made in program.instructions:
        if made.location is None:
            continue
        place = made.location.written.file, made.location.written.line
        for register in writes(made):
            lines_of_uses = used.get(register, set())
            is_result = bool(lines_of_uses) and place not in lines_of_uses
            if register.type != PRED and written[register] == 1 and is_result:
                results.setdefault(place, []).append(register)
    for (file, line), registers in results.items():
        text = lines.get(file, ())
        assigned = _ASSIGNED.fullmatch(text[line - 1]) if 0 < line <= len(text) else None
        left = [one for one in registers if one.name not in found]
        if assigned and len(left) == 1:
            found[left[0].name] = assigned["name"]
    return found


def _parameter_registers(
    program: Program, parameters: Mapping[str, str], written: Mapping[Register, int]
) -> dict[str, str]:
    """Returns the registers that hold a parameter, loaded or copied."""
    found: dict[str, str] = {}
    for made in program.instructions:
        results = tuple(writes(made))
        if len(results) != 1 or written[results[0]] != 1 or made.guard is not None:
            continue
        name = _loaded_parameter(made, parameters)
        if made.operation.name in COPIES:
            sources = tuple(reads(made))
            name = found.get(sources[0].name) if len(sources) == 1 else None
        if name:
            found[results[0].name] = name
    return found


def _loaded_parameter(made: Instruction, parameters: Mapping[str, str]) -> str | None:
    """Returns the parameter that an instruction loads as a whole."""
    if made.operation.name != "ld":
        return None
    for operand in made.operands:
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return parameters.get(operand.base.name) if not operand.offset else None
    return None


def _use_lines(program: Program) -> dict[Register, set[tuple[str, int]]]:
    found: dict[Register, set[tuple[str, int]]] = {}
    for made in program.instructions:
        if made.location is not None:
            place = made.location.written.file, made.location.written.line
            for register in reads(made):
                found.setdefault(register, set()).add(place)
    return found
