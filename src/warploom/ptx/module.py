"""Holds a PTX module as the parser makes it: its functions with their statements, its variables.

Every statement knows its position in the text (`span`); spans do not take part in equality, so a
module equals its printed and parsed-again self. Instructions are those of `isa.instruction`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.core.source import Span
from warploom.core.types import ScalarType
from warploom.isa.instruction import NOWHERE, Immediate, Instruction, Register, Space, Symbol


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or a parameter in any space but `.reg`.

    `shape` holds the array lengths, outermost first (None for an open one, `x[]`); `vector` is 1, 2
    or 4. `initial` holds nested tuples of Immediate and Symbol, or None. `linkage` is among
    "", "extern", "visible", "weak", "common". `bank` is the constant bank that an array begins
    (`ptx.banks`), 0 for all others. For a `.ptr` parameter, `pointer_space` and
    `pointer_align` describe what it points to.
    """

    name: str
    space: Space
    type: ScalarType
    shape: tuple[int | None, ...] = ()
    vector: int = 1
    align: int = 0
    linkage: str = ""
    initial: Initializer | None = None
    pointer_space: Space | None = None
    pointer_align: int = 0
    bank: int = 0
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def element_bytes(self) -> int:
        return self.type.bytes * self.vector

    @property
    def size(self) -> int:
        """Bytes it takes; an open first dimension counts as 0."""
        count = 1
        for n in self.shape:
            count *= n or 0
        return count * self.element_bytes

    @property
    def alignment(self) -> int:
        """Declared alignment, else the natural one of its element."""
        return self.align or max(1, self.element_bytes)


@dataclass(frozen=True, slots=True)
class Masked:
    """`mask(symbol)` in an initial value: the bits of the address under the mask, moved down to
    bit 0 (PTX ISA, "Initializers")."""

    symbol: Symbol
    mask: int
    span: Span = field(default=NOWHERE, compare=False)


Initializer = tuple["Initializer", ...] | Immediate | Symbol | Masked


@dataclass(frozen=True, slots=True)
class Prototype:
    """`.callprototype`: the shape of a function that is called through a register."""

    name: str
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    noreturn: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Targets:
    """`.branchtargets` or `.calltargets`: the labels or functions that an index may choose."""

    name: str
    names: tuple[str, ...]
    calls: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Pragma:
    text: str
    span: Span = field(default=NOWHERE, compare=False)


Statement = Instruction | Label | Variable | Prototype | Targets | Pragma


# ---- module -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or a `.func`; `body` is None for a declaration.

    `registers` are all declared registers; `body` holds statements in order, scopes flattened,
    function-scope variables among them. `directives` are performance directives such as
    ("maxntid", (256, 1, 1)). Locations of instructions are already attached to them.
    """

    name: str
    is_entry: bool
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    linkage: str = ""
    noreturn: bool = False
    directives: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    registers: tuple[Register, ...] = ()
    body: tuple[Statement, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(s for s in self.body or () if isinstance(s, Instruction))


@dataclass(frozen=True, slots=True)
class Module:
    """One PTX text. `target` is for example ("sm_75", "debug"); `version` (9, 5).

    `files` maps `.file` indices to names; `text` is the source itself, for error messages.
    """

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    variables: tuple[Variable, ...] = ()
    functions: tuple[Function, ...] = ()
    pragmas: tuple[str, ...] = ()
    files: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    text: str = field(default="", compare=False, repr=False)
    name: str = field(default="PTX", compare=False)

    def function(self, name: str) -> Function | None:
        """Return the function of that name that has a body, else its declaration, else None."""
        found = [f for f in self.functions if f.name == name]
        return next((f for f in found if f.body is not None), found[0] if found else None)

    @property
    def entries(self) -> tuple[Function, ...]:
        return tuple(f for f in self.functions if f.is_entry and f.body is not None)
