"""The typed form of a PTX module, as the parser makes it and everyone after it reads it.

Every statement and operand knows its place in the text (`span`); spans do not take part in
equality, so a module equals its printed and parsed-again self. Opcodes are already looked up in the
instruction tables (`warploom.isa`).
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
        """Return the hash of the name, which Python keeps: a compiler looks up many registers."""
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
)


def spread(operands: Iterable[Operand]) -> Iterator[Operand]:
    """Yield the operands one by one: the elements of vectors and both operands of pairs."""
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
        """Return the operands that the text shows."""
        spec = self.operation.spec
        if not spec.has_implicit:
            return self.operands
        pairs = zip(spec.operands, self.operands, strict=False)
        return tuple(operand for form, operand in pairs if not form.implicit)


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
    `pointer_align` tell what it points to.
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
