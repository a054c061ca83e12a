"""Finds where a program of the host calls from: the frames of its C stack, with source lines."""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from warploom.core.mangled import shown_name

DEPTH = 64
"""So many frames are looked at."""

KEPT = 6
"""So many frames of the program are kept."""

OWN = Path(__file__).parent / "lib"
"""The stand-in libraries: the program is what calls them."""

START = ("__libc_start_main", "_start", "__libc_start_call_main")
"""The functions in which a program begins, which say nothing."""

WRAPPER = re.compile(r"cuda[A-Z]\w*<")
"""How the names of the toolkit's wrappers begin, which are templates."""


class _Found(ctypes.Structure):
    """`Dl_info` of dladdr."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the host's stack: the file of its code, and the offset in it."""

    file: str
    offset: int

    @property
    def function(self) -> str:
        """Returns the function, where the file has its name."""
        return _at(_symbols(self.file), self.offset)

    @property
    def line(self) -> str:
        """Returns the source line as `file:line`, where the file has debug information; nothing for
        those of the toolkit's headers, which wrap calls."""
        found = _at(_lines(self.file), self.offset)
        return "" if found.startswith("cuda_runtime") else found

    def __str__(self) -> str:
        place = self.line or f"{Path(self.file).name}+{self.offset:#x}"
        return f"{shown_name(self.function)} ({place})" if self.function else place


def shown_frames(frames: Sequence[Frame]) -> tuple[str, ...]:
    """Returns the frames of a program's own functions, as text: without the toolkit's wrappers, and
    those in which a program begins."""
    return tuple(
        str(one)
        for one in frames
        if one.function not in START and not WRAPPER.match(shown_name(one.function))
    )


@cache
def is_program() -> bool:
    """Returns whether this process is a program of its own, and not Python."""
    try:
        name = Path("/proc/self/exe").resolve().name
    except OSError:
        return False
    return not name.startswith("python")


def file_at(address: int) -> str:
    """Returns the name of the program or library that an address is in; nothing where that is
    memory of no file."""
    try:
        return Path(_frame(ctypes.CDLL(None), address).file).name
    except (OSError, AttributeError):  # the C library has no `dladdr`
        return ""


def library_at(address: int) -> str:
    """Returns the name of the library that an address is in; nothing where that is the program
    itself, or memory of no file."""
    name = file_at(address)
    return name if ".so" in name else ""


def calling_library() -> str:
    """Returns the name of the library that has called a stand-in library; nothing where that is the
    program itself."""
    name = Path(frames[0].file).name if (frames := program_frames()) else ""
    return name if ".so" in name else ""


def program_frames() -> tuple[Frame, ...]:
    """Returns the frames of the program that has called a stand-in library, the innermost first;
    none where the C library has no `backtrace`."""
    try:
        library = ctypes.CDLL(None)
        addresses = (ctypes.c_void_p * DEPTH)()
        count = library.backtrace(addresses, DEPTH)
        frames = [_frame(library, addresses[n] or 0) for n in range(count)]
    except (OSError, AttributeError):
        return ()
    own = [place for place, frame in enumerate(frames) if _is_own(frame.file)]
    outside = frames[own[-1] + 1 :] if own else []
    others = ("/libc.", "/libOpenCL.")
    return tuple(one for one in outside if not any(n in one.file for n in others))[:KEPT]


@cache
def _is_own(file: str) -> bool:
    """Returns whether a file is a stand-in library, or a link to one."""
    return Path(file).resolve().parent == OWN


def _frame(library: ctypes.CDLL, address: int) -> Frame:
    """Returns the frame that an address of code, after a call, belongs to."""
    found = _Found()
    if not library.dladdr(ctypes.c_void_p(address), ctypes.byref(found)) or not found.file:
        return Frame("", address)
    return Frame(found.file.decode(), address - 1 - (found.base or 0))


def _at(table: Sequence[tuple[int, str]], offset: int) -> str:
    """Returns what a table, ascending, has for an offset: the last entry that begins before it."""
    place = bisect_right(table, offset, key=lambda entry: entry[0])
    return table[place - 1][1] if place else ""


@cache
def _lines(file: str) -> tuple[tuple[int, str], ...]:
    """Returns the offsets at which lines begin, ascending; nothing stands for a gap."""

    def read(elf: ELFFile, base: int) -> Iterator[tuple[int, str]]:
        if elf.has_dwarf_info():
            dwarf = elf.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is not None:
                    yield from ((at - base, text) for at, text in _rows(program, unit["version"]))

    return _table(file, read)


@cache
def _symbols(file: str) -> tuple[tuple[int, str], ...]:
    """Returns the offsets at which functions begin, ascending; nothing stands for a gap."""

    def read(elf: ELFFile, base: int) -> Iterator[tuple[int, str]]:
        for name in (".symtab", ".dynsym"):
            section = elf.get_section_by_name(name)
            if isinstance(section, SymbolTableSection):
                for one in section.iter_symbols():
                    if one["st_info"]["type"] == "STT_FUNC" and one["st_shndx"] != "SHN_UNDEF":
                        start = int(one["st_value"]) - base
                        yield start, one.name
                        yield start + int(one["st_size"]), ""

    return _table(file, read)


def _table(
    file: str, read: Callable[[ELFFile, int], Iterator[tuple[int, str]]]
) -> tuple[tuple[int, str], ...]:
    """Returns what `read` finds in an ELF file and the address of its first byte, ascending;
    nothing where it is none. A gap stands before what begins where it does."""
    try:
        with Path(file).open("rb") as stream:
            elf = ELFFile(stream)
            base = 0 if elf["e_type"] == "ET_DYN" else _first_address(elf)
            return tuple(sorted(read(elf, base)))
    except (OSError, ELFError, DWARFError, KeyError, ValueError):
        return ()


def _first_address(elf: ELFFile) -> int:
    """Returns where the first segment of an executable is loaded."""
    return min(
        int(segment["p_vaddr"]) for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"
    )


def _rows(program: LineProgram, version: int) -> list[tuple[int, str]]:
    """Returns the addresses and lines of a unit."""
    names = program["file_entry"]
    first = 0 if version >= 5 else 1
    rows: list[tuple[int, str]] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        place = state.file - first
        known = not state.end_sequence and 0 <= place < len(names)
        text = f"{names[place].name.decode()}:{state.line}" if known else ""
        rows.append((int(state.address), text))
    return rows
