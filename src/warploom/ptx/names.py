"""Resolves identifiers at a place in a PTX text, scope within scope.

A name that is declared again in an inner scope, or in another scope of the same function, is
renamed, so that the flattened function has one meaning for each name.
Source: PTX ISA, "Identifiers" and "Labels and Function Scope" of the directives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches

from warploom.core.types import ScalarType
from warploom.isa.instruction import Register
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.module import Variable

Meaning = Register | tuple[Register, ...] | str
"""A register, the parts of a vector register, or the IR's name of anything else."""

PARTS = ("x", "y", "z", "w")
COLOURS = ("r", "g", "b", "a")
"""The second set of names for the parts of a vector (PTX ISA, "Vectors as Operands")."""


@dataclass
class Outside:
    """The declarations of a module so far: the names of its variables and functions, the variables
    by name, how wide an address is, and its version of PTX."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    address_bits: int = 32
    """Where `.address_size` is left out."""

    version: tuple[int, int] = (1, 0)


class Names:
    """The names of one function, over those of its module; without `renaming`, the module's own,
    which keep their names whatever was declared before.

    `known` maps the names of the text to what they mean here, `variables` the names of the IR to
    what was declared; `registers` are all that were declared, in order; `implicit` those that
    instructions use and no text shows.
    """

    def __init__(self, cursor: Cursor, outside: Outside, *, renaming: bool = True) -> None:
        self.cursor = cursor
        self.address_bits, self.version = outside.address_bits, outside.version
        self.known: dict[str, Meaning] = dict(outside.names)
        self.variables = dict(outside.variables)
        self.registers: list[Register] = []
        self.implicit: list[Register] = []
        self._used = set(self.known) if renaming else set[str]()
        self._hidden: list[dict[str, Meaning | None]] = [{}]

    def enter(self) -> None:
        """Open a scope."""
        self._hidden.append({})

    def leave(self) -> None:
        """Close the innermost scope: its names mean again what they meant outside."""
        for name, meaning in self._hidden.pop().items():
            if meaning is None:
                del self.known[name]
            else:
                self.known[name] = meaning

    def declare(self, name: str, at: int) -> str:
        """Give `name`, declared at token `at`, a meaning here; its name in the IR."""
        unique = self._unique(name)
        self._mean(name, unique, at)
        return unique

    def declare_register(self, name: str, type: ScalarType, vector: int, at: int) -> str:
        """Declare a register, or a vector of them whose parts are registers of their own; gives
        its name in the IR."""
        unique, span = self._unique(name), self.cursor.span(at)
        if vector == 1:
            register = Register(unique, type, span)
            self._mean(name, register, at)
            self.registers.append(register)
            return unique
        parts = tuple(Register(f"{unique}.{part}", type, span) for part in PARTS[:vector])
        self._mean(name, parts, at)
        for part, colour, register in zip(PARTS, COLOURS, parts, strict=False):
            self._mean(f"{name}.{part}", register, at)
            self._mean(f"{name}.{colour}", register, at)
        self.registers.extend(parts)
        return unique

    def temporary(self, name: str, type: ScalarType) -> Register:
        """Return a register that the text does not declare, for a step that it leaves out."""
        register = Register(self._unique(name), type)
        self.registers.append(register)
        return register

    def implicit_register(self, name: str, type: ScalarType) -> Register:
        """Return a register that no text shows, the same throughout the function."""
        register = Register(name, type)
        if register not in self.implicit:
            self.implicit.append(register)
        return register

    def undeclared(self, name: str) -> str:
        """Return the message that nobody declared `name`."""
        near = get_close_matches(name, [*self.known, *SPECIAL_REGISTERS], 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        if name.startswith("%"):
            return f"`{name}` is neither a declared register nor a known special register{hint}"
        return f"`{name}` is not declared{hint}"

    def _unique(self, name: str) -> str:
        """`name`, or where the function has used it before, one made from it."""
        unique, count = name, 0
        while unique in self._used:
            count += 1
            unique = f"{name}${count}"
        self._used.add(unique)
        return unique

    def _mean(self, name: str, meaning: Meaning, at: int) -> None:
        hidden = self._hidden[-1]
        if name in hidden:
            raise self.cursor.error(f"`{name}` is declared twice in one scope", at)
        hidden[name] = self.known.get(name)
        self.known[name] = meaning


def labels_by_scope(cursor: Cursor) -> dict[int, list[int]]:
    """Return the labels of a function whose opening brace comes next.

    Token indices of labels by the index of the brace that opens their scope: a branch may name a
    label of its scope before the text defines it.
    """
    texts, at, end = cursor.texts, cursor.at, len(cursor.texts)
    found: dict[int, list[int]] = {}
    open_braces: list[int] = []
    opens, closes = (_places(texts, brace, at, end) for brace in "{}")
    opening, closing = next(opens, end), next(closes, end)
    while True:
        brace = min(opening, closing)
        for colon in _places(texts, ":", at, brace):
            if texts[colon - 2] != "?" and NAME.fullmatch(texts[colon - 1]):
                found.setdefault(open_braces[-1], []).append(colon - 1)
        at = brace
        if brace == end:
            return found
        if brace == opening:
            open_braces.append(brace)
            opening = next(opens, end)
        else:
            open_braces.pop()
            if not open_braces:
                return found
            closing = next(closes, end)


def _places(texts: list[str], mark: str, start: int, stop: int) -> Iterator[int]:
    """Yield where a token stands from `start` on and before `stop`."""
    with suppress(ValueError):  # there is none
        while True:
            start = texts.index(mark, start, stop) + 1
            yield start - 1
