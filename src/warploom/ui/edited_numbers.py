"""Compiles a kernel for other values of each number in its source, for pages without a compiler.

A page that was exported can run PTX, but has no compiler of CUDA C++. So that a reader can change a
number in a kernel there, the export compiles the kernel for a range of values of each number, one
number at a time. What NVRTC makes of them mostly differs in few lines, which are stored as changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from warploom.core.errors import CompileError
from warploom.ui.schema import Change, CompiledKernel, EditableNumber

_TOKENS = re.compile(
    r"""(?P<skipped>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|\#\s*include[^\n]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?))
     (?P<suffix>[uUlLfF]*)""",
    re.VERBOSE | re.DOTALL,
)

WHOLE = (
    *range(18),
    *(20, 24, 28, 30, 31, 32, 33, 34, 36, 40, 48, 63, 64, 65, 96, 100, 128, 256, 512, 1024),
)
"""The values that every integer is compiled for, beside those next to it and its multiples."""

REALS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 10.0, 100.0)
"""The values that every floating-point number is compiled for, beside its multiples."""

MOST_LINES = 8000
"""So many different lines the PTX of a kernel and its variants has at most, so that a page stays
below 1 MB; a value that brings more of them is left out."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number in a source, without its suffix."""

    start: int
    end: int
    text: str
    real: bool


def literals_of(source: str) -> Iterator[Literal]:
    """Yields the numbers in a source of C++, those of comments, strings and included names
    excepted."""
    for found in _TOKENS.finditer(source):
        text = found["number"]
        if text is None:
            continue
        hexadecimal = text[:2] in ("0x", "0X")
        real = not hexadecimal and bool(re.search(r"[.eE]", text) or "f" in found["suffix"].lower())
        yield Literal(*found.span("number"), text, real)


def values_for(literal: Literal) -> tuple[str, ...]:
    """Returns the texts of the values that a number is compiled for, its own excepted, the nearest
    first."""
    if literal.real:
        own = float(literal.text)
        reals = sorted({*REALS, 2 * own, own / 2, own + 1}, key=lambda value: abs(value - own))
        return tuple(repr(value) for value in reals if value != own)
    octal = re.fullmatch(r"0\d+", literal.text)
    whole = int(literal.text, 8 if octal else 0)
    near = {whole // 2, 2 * whole, *range(max(0, whole - 2), whole + 3)}
    wholes = sorted({*WHOLE, *near}, key=lambda value: abs(value - whole))
    return tuple(str(value) for value in wholes if value != whole)


def compiled_kernel(device: str, source: str, compile_text: Callable[[str], str]) -> CompiledKernel:
    """Returns the PTX of a source and of its variants. Raises CompileError where the source itself
    does not compile; values for which it does not are left out."""
    table: dict[str, int] = {}
    base = _numbered(compile_text(source), table)
    known: dict[tuple[Change, ...], int] = {}

    def changes_of(text: str) -> int | None:
        """Returns the number of the changes that a variant's PTX has; None if it does not compile,
        or has too many lines of its own."""
        try:
            ptx = compile_text(text)
        except CompileError:
            return None
        if len(table) + len(set(ptx.split("\n")).difference(table)) > max(MOST_LINES, len(base)):
            return None
        found = tuple(_changes(base, _numbered(ptx, table)))
        return known.setdefault(found, len(known))

    numbers: list[EditableNumber] = []
    for literal in literals_of(source):
        before, after = source[: literal.start], source[literal.end :]
        found = {value: changes_of(f"{before}{value}{after}") for value in values_for(literal)}
        usable = {value: number for value, number in found.items() if number is not None}
        if usable:
            numbers.append(EditableNumber(literal.start, literal.end, usable))
    return CompiledKernel(device, source, tuple(table), base, tuple(known), tuple(numbers))


def plain_kernel(device: str, source: str, ptx: str) -> CompiledKernel:
    """Returns the PTX of a source none of whose numbers can be changed."""
    table: dict[str, int] = {}
    lines = _numbered(ptx, table)
    return CompiledKernel(device, source, tuple(table), lines)


def _numbered(ptx: str, table: dict[str, int]) -> tuple[int, ...]:
    """Returns a text as numbers of lines in a table, to which new lines are added."""
    return tuple(table.setdefault(line, len(table)) for line in ptx.split("\n"))


def _changes(base: tuple[int, ...], other: tuple[int, ...]) -> Iterator[Change]:
    """Yields what replaces parts of `base` to make `other`."""
    matcher = SequenceMatcher(None, base, other, autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind != "equal":
            yield start, end, other[first:last]
