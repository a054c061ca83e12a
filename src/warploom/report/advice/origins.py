"""Follows the values of registers back to where they come from: parameters, variables, loads and
special registers. Names the buffer or the array that an access is to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    and variables, and special registers; `writers` are all instructions that compute them."""

    loads: frozenset[int]
    symbols: frozenset[str]
    specials: frozenset[str]
    writers: frozenset[int]


def origins(program: Program, registers: Iterable[Register]) -> Origins:
    """Returns the origins of the values of registers, by all instructions that write them, in
    whatever order these execute. Loads are not followed further."""
    writers = register_writers(program)
    waiting = [register.name for register in registers]
    seen, loads, symbols, specials = set(waiting), set[int](), set[str](), set[str]()
    passed: set[int] = set()
    while waiting:
        for index in writers.get(waiting.pop(), ()):
            one = program.instructions[index]
            passed.add(index)
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
    return Origins(frozenset(loads), frozenset(symbols), frozenset(specials), frozenset(passed))


def address_origins(program: Program, index: int) -> Origins:
    """Returns the origins of the address of an access, each computed once."""
    known = cast("dict[int, Origins]", program.cache.setdefault(address_origins, {}))
    if index not in known:
        addresses = [o for o in program.instructions[index].operands if isinstance(o, Address)]
        bases = [o.base for o in addresses if isinstance(o.base, Register)]
        named = {o.base.name for o in addresses if isinstance(o.base, Symbol)}
        found = origins(program, bases)
        known[index] = replace(found, symbols=found.symbols | named)
    return known[index]


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


@dataclass(frozen=True, slots=True)
class BufferUse:
    """The bytes of a buffer in global memory, and those that some kinds of accesses to it move."""

    size: int
    moved: int


def buffer_uses(case: Case, *ops: str) -> tuple[BufferUse, ...] | None:
    """Returns the buffers in global memory that some kinds of accesses are to; None if it is not
    clear which these are."""
    sizes, moved = dict[int, int](), dict[int, int]()
    for index, op, counts in case.accesses(Space.GLOBAL):
        if op in ops:
            pointer = pointer_of(case, index)
            if pointer is None or pointer.size is None:
                return None
            sizes[pointer.start] = pointer.size
            moved[pointer.start] = moved.get(pointer.start, 0) + counts[f"global_{op}_bytes_moved"]
    return tuple(BufferUse(size, moved[start]) for start, size in sizes.items())


def enumerated(names: Sequence[str]) -> str:
    """Returns names as a text, the last after "and"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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
    """Returns whether every thread that enters the kernel executes an instruction: no branch
    decides on it, and no condition guards it."""
    if program.instructions[index].guard is not None:
        return False
    return not any(_block_of(program, index) in blocks for blocks in _controlled(program).values())


def is_decided_by_data(program: Program, index: int) -> bool:
    """Returns whether the address of an access depends on values that were loaded from memory: it
    is computed from them, or in a loop whose end they decide on."""
    found = address_origins(program, index)
    if found.loads:
        return True
    blocks = {_block_of(program, writer) for writer in found.writers}
    for branch, controlled in _controlled(program).items():
        guard = program.instructions[branch].guard
        is_loop = _block_of(program, branch) in controlled
        is_merged = _block_of(program, index) not in controlled
        if guard is None or not (is_loop or is_merged) or not blocks & controlled:
            continue
        if origins(program, [guard.register]).loads:
            return True
    return False


def has_same_values(program: Program, index: int) -> bool:
    """Returns whether an access to an array of each thread stores the same values in all threads,
    or is no store."""
    one = program.instructions[index]
    if all(op == "load" for _, op in accesses(one)):
        return True
    values = [o for o in flatten_operands(one.operands) if isinstance(o, Register | Special)]
    found = origins(program, [o for o in values if isinstance(o, Register)])
    is_same = not found.loads and not found.specials
    return is_same and not any(isinstance(o, Special) for o in values)


def _block_of(program: Program, index: int) -> int:
    return next(block.index for block in program.blocks if block.start <= index < block.stop)


def _controlled(program: Program) -> dict[int, set[int]]:
    """Returns for each conditional branch the basic blocks that lie between it and the point where
    its paths meet again."""
    if _controlled not in program.cache:
        after = post_dominators([block.successors for block in program.blocks])
        found = dict[int, set[int]]()
        for block in program.blocks:
            if len(block.successors) < 2:
                continue
            waiting, seen = list(block.successors), set[int]()
            while waiting:
                one = waiting.pop()
                if one not in (after[block.index], program.exit) and one not in seen:
                    seen.add(one)
                    waiting += program.blocks[one].successors
            found[block.stop - 1] = seen
        program.cache[_controlled] = found
    return cast("dict[int, set[int]]", program.cache[_controlled])


def register_writers(program: Program) -> dict[str, list[int]]:
    """Returns the instructions that write each register."""
    if register_writers not in program.cache:
        found = dict[str, list[int]]()
        for index, one in enumerate(program.instructions):
            for register in writes(one):
                found.setdefault(register.name, []).append(index)
        program.cache[register_writers] = found
    return cast("dict[str, list[int]]", program.cache[register_writers])
