"""Reads what a cubin has of a kernel's instructions: their encodings, and the lines of PTX for
which they were made.

    .text.k               16 bytes an instruction, lowest first
    .nv_debug_line_sass   a line table: from offset 0x10 of k on, line 120; from 0x30 on, line 124

A cubin is an ELF file. Its line tables are those of DWARF, whose only file is the PTX text. An
address there is relocated by the symbol of a function. nvdisasm prints the same, but not beside
life ranges, and needs a third of a second for each listing.

Sources: Tool Interface Standard, "ELF"; "DWARF Debugging Information Format", version 3, 6.2.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from warploom.machinecode.operands import ListingError

INSTRUCTION_BYTES = 16
LINES = ".nv_debug_line_sass"

_HEADER = struct.Struct("<40xQ12xHH")
_SECTION = struct.Struct("<II8x8xQQII8x8x")
_SYMBOL = struct.Struct("<4xBxHQ8x")
_RELOCATIONS = {".rela": struct.Struct("<Q4xIq"), ".rel": struct.Struct("<Q4xI")}
"""Relocations with an addend of their own, and those without: by the beginning of the name of their
section."""
_TABLE = struct.Struct("<IHI")

FUNCTION = 2
"""The type of a symbol that is a function."""

END_SEQUENCE, SET_ADDRESS = 1, 2
"""Extended opcodes of line tables."""

COPY, ADVANCE_PC, ADVANCE_LINE, CONST_ADD_PC, FIXED_ADVANCE_PC = 1, 2, 3, 8, 9
"""Standard opcodes of line tables, as far as they change the address or the line."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The encodings of a kernel's instructions, 128 bits each, and their lines of PTX (1-based),
    None for code that the assembler adds."""

    encodings: Sequence[int]
    lines: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a line table: from `offset` of section number `section` on, code is of a line; None
    after the end of a function."""

    section: int
    offset: int
    line: int | None


def code_of(cubin: bytes, kernel: str) -> KernelCode:
    """Returns the code of a kernel in a cubin. Raises ListingError if it has none."""
    elf = _Elf(cubin)
    number = elf.numbers.get(f".text.{kernel}")
    if number is None:
        raise ListingError(f"the cubin has no machine code for {kernel}")
    code = elf.data(number)
    offsets = range(0, len(code), INSTRUCTION_BYTES)
    # Functions that the assembler adds have no lines; a table goes on through them.
    begins = [_Row(section, offset, None) for section, offset in elf.functions()]
    rows = [row for row in (*begins, *_rows(elf)) if row.section == number]
    rows.sort(key=lambda row: row.offset)
    starts = [row.offset for row in rows]
    before = [bisect_right(starts, offset) for offset in offsets]
    return KernelCode(
        [int.from_bytes(code[at : at + INSTRUCTION_BYTES], "little") for at in offsets],
        [rows[count - 1].line if count else None for count in before],
    )


class _Symbol(NamedTuple):
    """A symbol of an ELF file: its type is in the low four bits of `kind`."""

    kind: int
    section: int
    value: int


class _Elf:
    """The sections of an ELF file, by number; `numbers` are those of names."""

    def __init__(self, file: bytes) -> None:
        """Reads the tables of sections and of symbols."""
        self._file = file
        start, count, names = _HEADER.unpack_from(file)
        table = file[start : start + count * _SECTION.size]
        self._sections = list(_SECTION.iter_unpack(table))
        texts = self.data(names)
        self.numbers: Mapping[str, int] = {
            texts[at : texts.index(b"\0", at)].decode(): number
            for number, (at, *_) in enumerate(self._sections)
        }
        symbols = self.data(self.numbers[".symtab"])
        self._symbols: Sequence[_Symbol] = [
            _Symbol(*words) for words in _SYMBOL.iter_unpack(symbols)
        ]

    def data(self, section: int) -> bytes:
        """Returns the contents of a section."""
        _, _, start, size, *_ = self._sections[section]
        return self._file[start : start + size]

    def targets(self, section: str) -> Mapping[int, tuple[int, int]]:
        """Returns what the relocations of a section put at its offsets: the number of a section,
        and an offset in that."""
        targets: dict[int, tuple[int, int]] = {}
        for prefix, layout in _RELOCATIONS.items():
            number = self.numbers.get(f"{prefix}{section}")
            relocations = b"" if number is None else self.data(number)
            for at, index, *addend in layout.iter_unpack(relocations):
                symbol = self._symbols[int(index)]
                targets[at] = symbol.section, symbol.value + sum(addend)
        return targets

    def functions(self) -> Iterator[tuple[int, int]]:
        """Yields the section, by its number, and the offset in it at which each function begins."""
        for symbol in self._symbols:
            if symbol.kind & 15 == FUNCTION:
                yield symbol.section, symbol.value


def _rows(elf: _Elf) -> Iterator[_Row]:
    """Yields the rows of all line tables of a cubin."""
    if LINES not in elf.numbers:
        return
    data, targets, at = elf.data(elf.numbers[LINES]), elf.targets(LINES), 0
    while at + _TABLE.size < len(data):
        length, _, header = _TABLE.unpack_from(data, at)
        yield from _LineTable(data, at).rows(at + _TABLE.size + header, at + 4 + length, targets)
        at += 4 + length


class _LineTable:
    """Runs the program of a line table, which has its header at an offset of some data."""

    def __init__(self, data: bytes, at: int) -> None:
        """Reads the header."""
        self._data, at = data, at + _TABLE.size
        self._unit, _, _, self._line_range, self._first_special = data[at : at + 5]
        self._line_base = struct.unpack_from("<b", data, at + 2)[0]
        self._operands = data[at + 5 : at + 4 + self._first_special]
        self._at = 0

    def rows(self, at: int, end: int, targets: Mapping[int, tuple[int, int]]) -> Iterator[_Row]:
        """Yields the rows that the program between two offsets makes."""
        section = offset = 0
        line, self._at = 1, at
        while self._at < end:
            opcode = self._byte()
            if opcode >= self._first_special:
                opcode -= self._first_special
                offset += opcode // self._line_range * self._unit
                line += self._line_base + opcode % self._line_range
                yield _Row(section, offset, line)
            elif opcode == 0:
                size = self._number()
                extended, following = self._data[self._at], self._at + size
                if extended == SET_ADDRESS:
                    section, offset = targets.get(self._at + 1, (0, 0))
                    offset += int.from_bytes(self._data[self._at + 1 : following], "little")
                elif extended == END_SEQUENCE:
                    yield _Row(section, offset, None)
                    line = 1
                self._at = following
            elif opcode == COPY:
                yield _Row(section, offset, line)
            elif opcode == ADVANCE_PC:
                offset += self._number() * self._unit
            elif opcode == ADVANCE_LINE:
                line += self._signed_number()
            elif opcode == CONST_ADD_PC:
                offset += (255 - self._first_special) // self._line_range * self._unit
            elif opcode == FIXED_ADVANCE_PC:
                offset += self._byte() | self._byte() << 8
            else:
                for _ in range(self._operands[opcode - 1]):
                    self._number()

    def _byte(self) -> int:
        """Reads a byte."""
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        """Reads a number of seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _signed_number(self) -> int:
        """Reads the same in two's complement."""
        start = self._at
        value = self._number()
        bits = 7 * (self._at - start)
        return value - (1 << bits) if value >> bits - 1 else value
