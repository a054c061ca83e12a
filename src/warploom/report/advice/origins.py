"""Follows the values of registers back to where they come from: parameters, variables, loads and
special registers. Names the buffer or the array that an access is to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from warploom.core.source_files import read_source
from warploom.isa.instruction import Address, Register, Space, Special, Symbol, flatten_operands
from warploom.program.accesses import accesses
from warploom.program.dominance import post_dominators
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Case, PointerParameter
from warploom.report.source import source_line, split_line

MEMORY = frozenset([Space.GLOBAL, Space.SHARED, Space.GENERIC, Space.LOCAL])
"""Spaces whose contents change while a kernel runs."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of some values: instructions that load them from memory, symbols of parameters
    and variables, and special registers."""

    loads: frozenset[int]
    symbols: frozenset[str]
    specials: frozenset[str]


def origins(program: Program, registers: Iterable[Register]) -> Origins:
    """Returns the origins of the values of registers, by all instructions that write them, in
    whatever order these execute. Loads are not followed further."""
    writers = _writers(program)
    waiting = [register.name for register in registers]
    seen, loads, symbols, specials = set(waiting), set[int](), set[str](), set[str]()
    while waiting:
        for index in writers.get(waiting.pop(), ()):
            one = program.instructions[index]
            for operand in flatten_operands(one.operands):
                base = operand.base if isinstance(operand, Address) else operand
                if isinstance(base, Symbol):
                    symbols.add(base.name)
                elif isinstance(base, Special):
                    specials.add(str(base.name))
            if any(space in MEMORY and op != "store" for space, op in accesses(one)):
                loads.add(index)
                continue
            for register in reads(one):
                if register.name not in seen:
                    seen.add(register.name)
                    waiting.append(register.name)
    return Origins(frozenset(loads), frozenset(symbols), frozenset(specials))


def address_origins(program: Program, index: int) -> Origins:
    """Returns the origins of the address of an access."""
    addresses = [o for o in program.instructions[index].operands if isinstance(o, Address)]
    bases = [o.base for o in addresses if isinstance(o.base, Register)]
    found = origins(program, bases)
    named = {o.base.name for o in addresses if isinstance(o.base, Symbol)}
    return Origins(found.loads, found.symbols | named, found.specials)


def pointer_of(case: Case, index: int) -> PointerParameter | None:
    """Returns the parameter by which an access gets at its buffer; None if that is not clear."""
    symbols = address_origins(case.program, index).symbols
    found = [pointer for pointer in case.pointers if pointer.symbol in symbols]
    return found[0] if len(found) == 1 else None


def array_of(case: Case, index: int) -> str:
    """Returns the name of the array or the buffer that an access is to, empty if it is not
    known."""
    pointer = pointer_of(case, index)
    if pointer is not None and pointer.name:
        return pointer.name
    for symbol in sorted(address_origins(case.program, index).symbols):
        slot = case.program.slots.get(symbol)
        if slot is not None and slot.space in (Space.SHARED, Space.CONST, Space.GLOBAL):
            return variable_name(symbol)
    return ""


def variable_name(symbol: str) -> str:
    """Returns the name of a variable as its source declares it: that of a static variable of a
    function is the last part of the mangled name (Itanium C++ ABI, "Local names")."""
    local = re.fullmatch(r"_ZZ.*E(\d+)(\w+?)(?:_\d+)?", symbol)
    if local is None:
        return re.sub(r"^_Z[NL]*\d+", "", symbol) if symbol.startswith("_Z") else symbol
    length, rest = int(local[1]), local[2]
    return rest[:length]


def declared_at(name: str, line: str) -> str | None:
    """Returns the line ("file:line") that declares an array of a name, the last one up to `line`;
    None if none is found in the source."""
    file, number = split_line(line)
    lines = (read_source(file) or "").splitlines()[:number]
    pattern = re.compile(rf"\b[A-Za-z_][\w:]*\s+(?:[\w\s]+,\s*)*{re.escape(name)}\s*\[")
    found = [at for at, text in enumerate(lines, 1) if pattern.search(text.split("//")[0])]
    return f"{file}:{found[-1]}" if found else None


def thread_array(line: str) -> str:
    """Returns the name of an array that the source at a line indexes and that a function declares
    for each thread; empty if there is none, or if it is not clear which."""
    file, number = split_line(line)
    text = source_line(file, number)
    names: list[str] = []
    for name in dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\s*\[", text)):
        declared = declared_at(name, line)
        if declared is not None and "__shared__" not in source_line(*split_line(declared)):
            names.append(name)
    return names[0] if len(names) == 1 else ""


def in_all_threads(program: Program, index: int) -> bool:
    """Returns whether every thread that enters the kernel executes an instruction: its block
    post-dominates the entry, and no condition guards it."""
    return program.instructions[index].guard is None and not _controlling(program, index)


def depends_on_data(program: Program, index: int) -> bool:
    """Returns whether a value loaded from memory decides on how often a thread executes an
    instruction."""
    for branch in _controlling(program, index):
        guard = program.instructions[branch].guard
        if guard is not None and origins(program, [guard.register]).loads:
            return True
    return False


def _controlling(program: Program, index: int) -> list[int]:
    """Returns the conditional branches on whose outcome it depends whether an instruction is
    executed, or how often."""
    after = post_dominators([block.successors for block in program.blocks])
    [own] = [block.index for block in program.blocks if block.start <= index < block.stop]
    found: list[int] = []
    for block in program.blocks:
        if len(block.successors) < 2:
            continue
        end, waiting, seen = after[block.index], list(block.successors), set[int]()
        while waiting:
            one = waiting.pop()
            if one not in (end, program.exit) and one not in seen:
                seen.add(one)
                waiting += program.blocks[one].successors
        if own in seen:
            found.append(block.stop - 1)
    return found


def _writers(program: Program) -> dict[str, list[int]]:
    """Returns the instructions that write each register."""
    if _writers not in program.cache:
        found = dict[str, list[int]]()
        for index, one in enumerate(program.instructions):
            for register in writes(one):
                found.setdefault(register.name, []).append(index)
        program.cache[_writers] = found
    return cast("dict[str, list[int]]", program.cache[_writers])
