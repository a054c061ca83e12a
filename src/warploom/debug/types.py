"""The types of variables as C++ has them, and how their values are written."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from warploom.core.types import Kind, ScalarType


class Encoding(Enum):
    """Names the ways in which the bits of an arithmetic type are read."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    BRAIN = "brain"
    BOOLEAN = "boolean"
    CHARACTER = "character"


@dataclass(frozen=True)
class Arithmetic:
    """A number: `size` in bytes."""

    name: str
    size: int
    encoding: Encoding

    _FLOATS: ClassVar[Mapping[int, str]] = {2: "<e", 4: "<f", 8: "<d"}

    @property
    def is_float(self) -> bool:
        """Returns whether it is a floating-point type."""
        return self.encoding in (Encoding.FLOAT, Encoding.BRAIN)

    def number(self, data: bytes) -> int | float:
        """Returns the number that bytes hold."""
        if self.encoding is Encoding.BRAIN:
            return float(struct.unpack("<f", b"\0\0" + data)[0])
        if self.encoding is Encoding.FLOAT and self.size in self._FLOATS:
            return float(struct.unpack(self._FLOATS[self.size], data)[0])
        signed = self.encoding in (Encoding.SIGNED, Encoding.CHARACTER)
        return int.from_bytes(data, "little", signed=signed)

    def data(self, number: float) -> bytes:
        """Returns the bytes of a number, converted as C++ does."""
        if self.encoding is Encoding.FLOAT:
            with np.errstate(over="ignore"):
                return np.array(number, f"<f{self.size}").tobytes()
        if self.encoding is Encoding.BRAIN:
            bits = int(np.array(number, np.float32).view(np.uint32))
            return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF).to_bytes(2, "little")
        if self.encoding is Encoding.BOOLEAN:
            number = int(number != 0)
        return (int(number) % (1 << 8 * self.size)).to_bytes(self.size, "little")


@dataclass(frozen=True)
class Pointer:
    """A pointer; what it points to is None for `void *`."""

    to: Type | None
    reference: bool = False
    size: ClassVar[int] = 8

    @property
    def name(self) -> str:
        inner = "void" if self.to is None else self.to.name
        mark = "&" if self.reference else "*"
        return f"{inner}{mark}" if inner.endswith("*") else f"{inner} {mark}"


@dataclass(frozen=True)
class Array:
    """An array of `count` elements."""

    of: Type
    count: int

    @property
    def size(self) -> int:
        return self.of.size * self.count

    @property
    def name(self) -> str:
        inner, counts = self.of, f"[{self.count}]"
        while isinstance(inner, Array):
            inner, counts = inner.of, f"{counts}[{inner.count}]"
        return f"{inner.name} {counts}"


@dataclass(frozen=True)
class Member:
    """A member of a structure, at `offset` bytes; of a bit field, `bits` from `bit` on."""

    name: str
    type: Type
    offset: int
    bit: int = 0
    bits: int = 0


@dataclass(frozen=True)
class Structure:
    """A class, a structure or a union; those that it inherits from come first, without a name. Of a
    variable that has one of several types in turn, `selector` is the member that says which, and
    `choices` are the members by its values."""

    name: str
    size: int
    members: tuple[Member, ...] = field(compare=False)
    selector: Member | None = field(default=None, compare=False)
    choices: Mapping[int, Member] = field(default_factory=dict[int, Member], compare=False)


@dataclass(frozen=True)
class Enumeration:
    """An enumeration; `names` by their values."""

    name: str
    size: int
    names: Mapping[int, str] = field(compare=False)
    signed: bool = True


Type = Arithmetic | Pointer | Array | Structure | Enumeration

INT = Arithmetic("int", 4, Encoding.SIGNED)
UNSIGNED = Arithmetic("unsigned int", 4, Encoding.UNSIGNED)
LONG = Arithmetic("long long", 8, Encoding.SIGNED)
UNSIGNED_LONG = Arithmetic("unsigned long long", 8, Encoding.UNSIGNED)
BOOL = Arithmetic("bool", 1, Encoding.BOOLEAN)
CHAR = Arithmetic("char", 1, Encoding.CHARACTER)
BYTE = Arithmetic("unsigned char", 1, Encoding.UNSIGNED)
HALF = Arithmetic("half", 2, Encoding.FLOAT)
FLOAT = Arithmetic("float", 4, Encoding.FLOAT)
DOUBLE = Arithmetic("double", 8, Encoding.FLOAT)


def type_of_register(type: ScalarType) -> Arithmetic:
    """Returns the type by which a register is shown."""
    if type.bits == 1:
        return BOOL
    encoding = {Kind.FLOAT: Encoding.FLOAT, Kind.SIGNED: Encoding.SIGNED}.get(type.kind)
    if encoding is Encoding.FLOAT and type.bits not in (16, 32, 64):
        encoding = None
    return Arithmetic(type.name, type.bits // 8, encoding or Encoding.UNSIGNED)
