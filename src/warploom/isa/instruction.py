"""Holds instructions with their operands: what the parser makes of a statement, what programs and
the Warp IR consist of, and what both machines execute.

    @%p1 add.s32 %r1, %r2, 4;

is an Instruction with an Operation of the instruction tables (`isa.spec`), the operands Register,
Register and Immediate, and a Guard. Instructions and operands know their position in a text
(`span`); spans do not take part in equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from warploom.core.source import Location, Span
from warploom.core.types import ScalarType
from warploom.isa.spec import Operation

NOWHERE = Span(0, 0, 0)
"""The span of what no text holds, such as an instruction that a transformation made."""


class Space(Enum):
    """State spaces (PTX ISA, "State Spaces"), and two in which accesses to texels are counted."""

    REG = "reg"
    PARAM = "param"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    SHARED = "shared"
    GENERIC = "generic"
    TEXTURE = "texture"
    SURFACE = "surface"


# ---- operands -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """Declares a register. Names are unique within a function: those of nested scopes are
    renamed."""

    name: str
    type: ScalarType
    span: Span = field(default=NOWHERE, compare=False)

    def __hash__(self) -> int:
        """Returns the hash of the name, which Python keeps: a compiler looks up many registers."""
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, such as `%tid.x` (a key of `isa.special.SPECIAL_REGISTERS`)."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. An integer is kept as its value, a float as its bits in `float_bits` width.

    `0f3F800000` is Immediate(0x3F800000, 32), `0d...` and decimal floats have 64, integers 0.
    """

    value: int
    float_bits: int = 0
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter, function or label by name, with a byte offset added."""

    name: str
    offset: int = 0
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`: base is a register, a symbol (its own offset 0) or None (absolute)."""

    base: Register | Symbol | None
    offset: int = 0
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    elements: tuple[Operand, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: two destinations; either may be a Sink."""

    first: Operand
    second: Operand
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`: a predicate operand, inverted."""

    operand: Register
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Element:
    """`r.x`: one part of a vector register."""

    register: Register
    index: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a destination that nobody wants."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Decorated:
    """`-r.b0`: some bytes of a register or its negation; which ones, goes into the operation of a
    finished instruction, whose operand is the plain register."""

    register: Register
    part: str
    negated: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Indexed:
    """`a[r + 1]`: `symbol` with the constant part of the index in its offset, `index` the register
    or None, `scale` the bytes of an element. A finished instruction has its address instead."""

    symbol: Symbol
    index: Register | None
    scale: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sum:
    """`r + 1` as a source: a register and a constant. A finished instruction has a register that an
    addition before it writes."""

    register: Register
    added: int
    span: Span = field(default=NOWHERE, compare=False)


Operand = (
    Register
    | Special
    | Immediate
    | Symbol
    | Address
    | Vector
    | Pair
    | Negated
    | Element
    | Sink
    | Decorated
    | Indexed
    | Sum
)


def flatten_operands(operands: Iterable[Operand]) -> Iterator[Operand]:
    """Yields the operands one by one: the elements of vectors and both operands of pairs."""
    for operand in operands:
        match operand:
            case Vector(elements):
                yield from elements
            case Pair(first, second):
                yield first
                yield second
            case _:
                yield operand


# ---- statements ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p` before an instruction."""

    register: Register
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: destinations first, then sources, in the order of the syntax.

    A `call` has the operands (Vector of returns, Symbol or Register callee, Vector of arguments
    [, Symbol of prototype or targets]); missing lists are empty Vectors. Operands that no text
    shows stand where the form has them (`isa.spec`).
    """

    operation: Operation
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    span: Span = field(default=NOWHERE, compare=False)
    location: Location | None = field(default=None, compare=False)

    @property
    def written(self) -> tuple[Operand, ...]:
        """Returns the operands that the text shows."""
        spec = self.operation.spec
        if not spec.has_implicit:
            return self.operands
        pairs = zip(spec.operands, self.operands, strict=False)
        return tuple(operand for form, operand in pairs if not form.implicit)
