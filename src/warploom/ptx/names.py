"""Resolves identifiers at a place in a PTX text, scope within scope.

A name that is declared again in an inner scope, or in another scope of the same function, is
renamed, so that the flattened function has one meaning for each name.
Source: PTX ISA, "Identifiers" and "Labels and Function Scope" of the directives.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import itemgetter

from warploom.core.types import ScalarType
from warploom.isa.instruction import Register
from warploom.isa.since import OLDEST, Release
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.module import Variable
from warploom.ptx.scopes import Meaning, RegisterRange, Scope

PARTS = ("x", "y", "z", "w")
COLOURS = ("r", "g", "b", "a")
"""The second set of names for the parts of a vector (PTX ISA, "Vectors as Operands")."""


@dataclass
class Outside:
    """The declarations of a module so far: the names of its variables and functions, the variables
    by name, how wide an address is, its version of PTX, and the compute capability in its
    `.target`."""

    names: dict[str, Meaning] = field(default_factory=dict[str, Meaning])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    address_bits: int = 32
    """Where `.address_size` is left out."""

    version: Release = OLDEST
    target: Release = OLDEST
    registers: list[int] = field(default_factory=list[int])
    """The tokens at which registers are declared, as PTX before 3.0 allows; each kernel has them
    as its own."""


class Names:
    """The names of one function, over those of its module; without `renaming`, the module's own,
    which keep their names whatever was declared before.

    `variables` maps the names of the IR to what was declared.
    """

    def __init__(self, cursor: Cursor, outside: Outside, *, renaming: bool = True) -> None:
        self.cursor = cursor
        self.address_bits = outside.address_bits
        self.version, self.target = outside.version, outside.target
        self.variables = ChainMap[str, Variable]({}, outside.variables)
        self._registers: list[tuple[int, int, Register]] = []
        self._implicit: list[Register] = []
        self._outside, self._renaming = outside.names, renaming
        self._used = set[str]()
        self._function = ""
        self._innermost = Scope()
        self._scopes = [Scope(), self._innermost]

    def get(self, name: str) -> Meaning | None:
        """Returns what a name means here; None if nobody declared it."""
        meaning = self._innermost.names.get(name)
        if meaning is not None:
            return meaning
        for scope in reversed(self._scopes):
            meaning = scope.names.get(name)
            if meaning is None and scope.ranges:
                meaning = self._of_range(scope, name)
            if meaning is not None:
                return meaning
        return self._outside.get(name)

    @property
    def registers(self) -> tuple[Register, ...]:
        """Returns the registers that the text declares by name or uses, in the order of their
        declarations, and behind them those that no text shows."""
        ordered = sorted(self._registers, key=itemgetter(0, 1))
        return (*(register for _, _, register in ordered), *self._implicit)

    def enter(self) -> None:
        """Open a scope."""
        self._innermost = Scope()
        self._scopes.append(self._innermost)

    def leave(self) -> None:
        """Close the innermost scope: its names mean again what they meant outside."""
        self._scopes.pop()
        self._innermost = self._scopes[-1]

    def name_function(self, name: str) -> None:
        """Let a function name itself, unless it declares that name."""
        self._function = self._scopes[0].names[name] = name

    def declare(self, name: str, at: int, *, static: bool = False) -> str:
        """Give `name`, declared at token `at`, a meaning here; its name in the IR. One that is
        `static`, of the module, has its function's name in it."""
        unique = self._unique(f"{name}${self._function}" if static and self._function else name)
        if not self._innermost.declare(name, unique):
            raise self.cursor.error(f"`{name}` is declared twice in one scope", at)
        return unique

    def declare_register(self, name: str, type: ScalarType, vector: int, at: int) -> str:
        """Declare a register, or a vector of them whose parts are registers of their own; gives
        its name in the IR."""
        unique = self.declare(name, at)
        self._define(self._innermost, name, unique, RegisterRange(1, type, vector, at), 0)
        return unique

    def declare_registers(self, prefix: str, registers: RegisterRange) -> None:
        """Declare a range of registers, whose names are a prefix and a number."""
        if not self._innermost.declare_range(prefix, registers):
            message = (
                f"`{prefix}<{registers.count}>` contains a name that is already declared in this "
                "scope"
            )
            raise self.cursor.error(message, registers.at)

    def _of_range(self, scope: Scope, name: str) -> Meaning | None:
        """Returns what a name means that a range of a scope declares: the register, which is added
        now, or a part of a vector."""
        head = name.partition(".")[0]
        found = scope.find_in_ranges(head) if head not in scope.names else None
        if found is None:
            return None
        self._define(scope, head, self._unique(head), *found)
        return scope.names.get(name)

    def _define(
        self, scope: Scope, name: str, unique: str, registers: RegisterRange, number: int
    ) -> None:
        """Add the register with a number in a range, or those of a vector, as a name's meaning."""
        type, span, meanings = registers.type, self.cursor.span(registers.at), scope.names
        if registers.vector == 1:
            meanings[name] = register = Register(unique, type, span)
            self._registers.append((registers.at, number, register))
            return
        parts = tuple(Register(f"{unique}.{p}", type, span) for p in PARTS[: registers.vector])
        meanings[name] = parts
        for part, colour, register in zip(PARTS, COLOURS, parts, strict=False):
            meanings[f"{name}.{part}"] = meanings[f"{name}.{colour}"] = register
        self._registers.extend((registers.at, number, part) for part in parts)

    def temporary(self, name: str, type: ScalarType) -> Register:
        """Return a register that the text does not declare, for a step that it leaves out."""
        register = Register(self._unique(name), type)
        self._registers.append((self.cursor.at, 0, register))
        return register

    def implicit_register(self, name: str, type: ScalarType) -> Register:
        """Return a register that no text shows, the same throughout the function."""
        register = Register(name, type)
        if register not in self._implicit:
            self._implicit.append(register)
        return register

    def undeclared(self, name: str) -> str:
        """Return the message that nobody declared `name`."""
        near = get_close_matches(name, [*self._known(), *SPECIAL_REGISTERS], 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        if name.startswith("%"):
            return f"`{name}` is neither a declared register nor a known special register{hint}"
        return f"`{name}` is not declared{hint}"

    def _known(self) -> Iterator[str]:
        """Yields the names that mean something here; of a range of registers those that are used
        and the last."""
        for scope in self._scopes:
            yield from scope.names
            yield from (f"{prefix}{one.count - 1}" for prefix, one in scope.ranges.items())
        yield from self._outside

    def _unique(self, name: str) -> str:
        """`name`, or where the function has used it before, one made from it."""
        unique, count = name, 0
        while self._renaming and (unique in self._used or unique in self._outside):
            count += 1
            unique = f"{name}${count}"
        self._used.add(unique)
        return unique


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
