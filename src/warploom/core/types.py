"""The scalar types of PTX.

Source: PTX ISA, "Types" (fundamental types, packed types). Only what a type *is* lives here;
what instructions make of it lives in `warploom.isa`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The meaning of a value's bits."""

    UNSIGNED = "u"
    SIGNED = "s"
    BITS = "b"
    FLOAT = "f"
    PREDICATE = "pred"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One PTX type: its name without the dot, the meaning of its bits, and its width in bits."""

    name: str
    kind: Kind
    bits: int

    def __hash__(self) -> int:
        """Return the hash of the name, which no two types share."""
        return hash(self.name)

    @property
    def bytes(self) -> int:
        """Size in memory, in bytes (a predicate has none and says 0)."""
        return self.bits // 8

    @property
    def is_integer(self) -> bool:
        """Returns whether arithmetic on it is integer arithmetic; untyped bits count as
        unsigned."""
        return self.kind in (Kind.UNSIGNED, Kind.SIGNED, Kind.BITS)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.SIGNED

    def __str__(self) -> str:
        return "." + self.name


PRED = ScalarType("pred", Kind.PREDICATE, 1)
U8, U16, U32, U64, U128 = (ScalarType(f"u{n}", Kind.UNSIGNED, n) for n in (8, 16, 32, 64, 128))
S8, S16, S32, S64, S128 = (ScalarType(f"s{n}", Kind.SIGNED, n) for n in (8, 16, 32, 64, 128))
B8, B16, B32, B64, B128 = (ScalarType(f"b{n}", Kind.BITS, n) for n in (8, 16, 32, 64, 128))
F16, F32, F64 = (ScalarType(f"f{n}", Kind.FLOAT, n) for n in (16, 32, 64))
BF16 = ScalarType("bf16", Kind.FLOAT, 16)
F16X2, BF16X2, U16X2, S16X2 = (
    ScalarType(name, Kind.BITS, 32) for name in ("f16x2", "bf16x2", "u16x2", "s16x2")
)
F32X2 = ScalarType("f32x2", Kind.BITS, 64)
PACKED: dict[ScalarType, tuple[ScalarType, int]] = {
    F16X2: (F16, 2),
    BF16X2: (BF16, 2),
    U16X2: (U16, 2),
    S16X2: (S16, 2),
    F32X2: (F32, 2),
}
"""Packed types: as a whole they are bits; here is what they hold, and how many of it."""


TYPES: dict[str, ScalarType] = {
    t.name: t
    for t in (
        *(PRED, U8, U16, U32, U64, U128, S8, S16, S32, S64, S128),
        *(B8, B16, B32, B64, B128, F16, F32, F64, BF16, *PACKED),
    )
}
"""Every type by its name without the dot."""

OPAQUE: dict[str, ScalarType] = {
    name: ScalarType(name, Kind.BITS, 64) for name in ("texref", "samplerref", "surfref")
}
"""Types of variables that hold a handle (PTX ISA, "Texture Sampler and Surface Types"); no register
and no instruction has them."""


def unsigned(bits: int) -> ScalarType:
    """Return the unsigned integer type of that width."""
    return TYPES[f"u{bits}"]


def signed(bits: int) -> ScalarType:
    """Return the signed integer type of that width."""
    return TYPES[f"s{bits}"]


def widened(t: ScalarType) -> ScalarType:
    """Return the integer type of twice the width and the same signedness (for `mul.wide` and
    friends)."""
    return (signed if t.is_signed else unsigned)(2 * t.bits)
