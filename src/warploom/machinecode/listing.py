"""Reads what nvdisasm prints of a kernel: instructions, and life ranges of registers (`--print-code
--print-life-ranges --life-range-mode narrow`).

Source: CUDA Binary Utilities, "nvdisasm".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from warploom.machinecode.control import Control, control_of
from warploom.machinecode.cubin import INSTRUCTION_BYTES, KernelCode
from warploom.machinecode.operands import ListingError, Operand, read_operands


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One machine instruction.

    `offset` is in bytes from the start of its section; `guard` is "P0", "!UP1" or empty; `opcode`
    has its modifiers. `targets` are the offsets that it can branch to or call. `line` is the line
    of PTX that it was made for (1-based), None in code that the assembler adds. `reads` and
    `writes` are registers ("R4", "P0", "UR2", "UP1"), wide operands with all of theirs.
    """

    offset: int
    guard: str
    opcode: str
    operands: tuple[Operand, ...]
    targets: tuple[int, ...]
    line: int | None
    control: Control
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Returns the opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    @property
    def is_off(self) -> bool:
        """Returns whether the guard is never true: ptxas pads code with such loads between reads of
        shared memory and asynchronous copies to it."""
        return self.guard == "!PT"

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(one.text for one in self.operands)}".rstrip()


@dataclass(frozen=True)
class Listing:
    """The machine code of one kernel: its instructions in the order of their offsets, and the
    offsets at which its functions begin, by name; the kernel itself begins at 0."""

    kernel: str
    instructions: tuple[MachineInstruction, ...]
    functions: Mapping[str, int]


_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+")
_LABEL = re.compile(r"^([.$\w@]+):")
_FUNCTION = re.compile(r"^\s*\.type\s+(\S+),@function")
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[\dT]+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
_OFFSET = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")
_TARGET = re.compile(r"`\(([^)\s]+)\)")
_TARGETS = re.compile(r"BRANCH_TARGETS ([^\"*]+)")


def read_listing(kernel: str, listing: str, code: KernelCode) -> Listing:
    """Returns the machine code of a kernel from a listing and its cubin; ListingError where they
    have what is not known, or do not belong together."""
    labels, functions, rows = _read_code(kernel, listing)
    if not rows:
        raise ListingError(f"nvdisasm printed no machine code for {kernel}")
    if rows[-1].offset >= INSTRUCTION_BYTES * len(code.encodings):
        raise ListingError(f"nvdisasm printed more than the cubin has of {kernel}")
    registers = dict(_read_ranges(kernel, listing))
    known = {row.offset for row in rows}
    made: list[MachineInstruction] = []
    for offset, guard, opcode, operands in rows:
        number = offset // INSTRUCTION_BYTES
        text, _, note = operands.partition("(*")
        target_list = _TARGETS.search(note)
        names = target_list[1].split(",") if target_list else _TARGET.findall(text)
        targets = tuple(labels[name.strip()] for name in names if name.strip() in labels)
        reads, writes = registers.get(offset, ((), ()))
        if opcode.partition(".")[0] in _WRITES_NONE:
            writes = ()
        made.append(
            MachineInstruction(
                offset,
                guard,
                opcode,
                read_operands(text),
                tuple(target for target in targets if target in known),
                code.lines[number],
                control_of(code.encodings[number]),
                reads,
                writes,
            )
        )
    return Listing(kernel, tuple(made), functions)


class _Row(NamedTuple):
    """An instruction as it is printed, its operands not yet read."""

    offset: int
    guard: str
    opcode: str
    operands: str


def _read_code(kernel: str, text: str) -> tuple[dict[str, int], dict[str, int], list[_Row]]:
    """Returns the offsets of labels and of functions, and the instructions of the kernel's
    section."""
    labels: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows: list[_Row] = []
    waiting: list[str] = []
    for written in _section(kernel, text):
        if found := _CODE.match(written):
            offset = int(found[1], 16)
            labels.update((label, offset) for label in waiting)
            waiting.clear()
            rows.append(_Row(offset, found[2] or "", found[3], found[4]))
        elif found := _LABEL.match(written):
            waiting.append(found[1])
        elif found := _FUNCTION.match(written):
            functions[found[1]] = -1
    return labels, {name: labels.get(name, 0) for name in functions}, rows


def _section(kernel: str, text: str) -> Iterator[str]:
    """Yields the lines of the section with a kernel's code."""
    inside = False
    for written in text.splitlines():
        if written.startswith("//--"):
            found = _SECTION.match(written)
            inside = found is not None and found[1] == kernel
        elif inside:
            yield written


# ---- life ranges --------------------------------------------------------------------------------

_PREFIXES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_WRITES_NONE = ("LDGSTS",)
"""Opcodes of which nvdisasm marks the predicate as written, too, by which lanes copy zeros."""
_READ, _WRITTEN, _MARK = "vx", "^x", re.compile(r"[vx^]")
"""Marks of a register that an instruction reads, and of one that it writes; ":" is one that is
live."""


def _read_ranges(
    kernel: str, text: str
) -> Iterator[tuple[int, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Yields the registers that each instruction reads and writes, by its offset."""
    head: list[str] = []
    columns: dict[int, str] = {}
    for written in _section(kernel, text):
        before, mark, table = written.partition("// ")
        if not mark or table[:1] not in "+|":
            continue
        found = _OFFSET.match(before)
        if not found:
            if not before.strip():
                head.append(table)
            continue
        columns = columns or _columns(head)
        marks = [(columns[m.start()], m[0]) for m in _MARK.finditer(table) if m.start() in columns]
        reads = tuple(name for name, mark in marks if mark in _READ)
        writes = tuple(name for name, mark in marks if mark in _WRITTEN)
        yield int(found[1], 16), (reads, writes)


def _columns(head: list[str]) -> dict[int, str]:
    """Returns the register at each place of the table, from its head: a row of names, then the
    digits of the registers' numbers, one below the other."""
    lines = [row for row in head if row.startswith("|")]
    if not lines:
        raise ListingError("nvdisasm printed no header for the live ranges")
    bars = [at for at, character in enumerate(lines[0]) if character == "|"]
    found: dict[int, str] = {}
    for left, right in pairwise(bars):
        name = lines[0][left + 1 : right].strip()
        if name not in _PREFIXES:
            raise ListingError(
                f"nvdisasm printed live ranges of {name!r}, an unknown kind of register"
            )
        start = lines[-1].index("#", left, right) + 1
        for at in range(start, right):
            digits = "".join(row[at] for row in lines[1:]).strip()
            if digits.isdigit():
                found[at] = f"{_PREFIXES[name]}{int(digits)}"
    return found
