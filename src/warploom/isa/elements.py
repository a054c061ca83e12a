"""Elements of matrices as numbers: what the bits of each type mean, and how sums become bits.

Every element type below .f64 is a number that .f32 holds exactly, so that products of two need no
rounding of their own. Integers are taken as .s32.
"""

from __future__ import annotations

from functools import lru_cache

from warploom.core.types import F32, F64, S32, U32, U64, ScalarType
from warploom.isa.fragments import WIDTHS
from warploom.isa.narrow import E2M1, E4M3, FORMATS, HALF, narrowed, wide, wide_scale
from warploom.isa.terms import Term, argument, canonical, constant, reinterpret, shift_right

TF32_BITS = 0xFFFFE000
"""The bits of an .f32 register that a .tf32 element has; the others are not looked at."""


def calculated(type: str) -> ScalarType:
    """Returns the type in which elements of that type are multiplied and added."""
    if type == "f64":
        return F64
    return S32 if type in ("s32", "s8", "u8", "s4", "u4", "b1") else F32


@lru_cache
def number(type: str) -> Term:
    """Returns an element as a number; `argument(0)` holds its bits, lowest first (above them
    anything)."""
    if type == "f64":
        return reinterpret(argument(0, U64), F64)
    bits, width = argument(0, U32), WIDTHS[type]
    if type == "tf32":
        return reinterpret(bits & TF32_BITS, F32)
    if type in ("f32", "s32", "b1"):
        return reinterpret(bits, calculated(type))
    if type in ("u8", "u4"):
        return reinterpret(bits & ((1 << width) - 1), S32)
    if type in ("s8", "s4"):
        unused = constant(32 - width, U32)
        return shift_right(reinterpret(Term("shl", U32, (bits, unused)), S32), unused)
    if type == "e2m1 in a byte":
        return wide(shift_right(bits, constant(2, U32)) & 0xF, E2M1)
    format = FORMATS[type]
    return wide(bits & ((1 << format.bits) - 1), format)


@lru_cache
def scale_number(type: str) -> Term:
    """Returns the number of type `type` (ue8m0, ue4m3) in the lowest byte of `argument(0)`, as an
    .f32."""
    bits = argument(0, U32)
    if type == "ue4m3":
        return wide(bits & 0x7F, E4M3)
    return reinterpret(Term("shl", U32, (wide_scale(bits), constant(16, U32))), F32)


@lru_cache
def encoded(type: str) -> Term:
    """Returns the bits of a sum, as `type` keeps it: an .u32, or .u64 for .f64."""
    value = argument(0, calculated(type))
    if type == "f16":
        return narrowed(value, HALF)
    bits = U64 if type == "f64" else U32
    return reinterpret(canonical(value) if value.type.is_float else value, bits)
