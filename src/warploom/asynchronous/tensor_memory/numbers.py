"""Decodes the elements and scales of `tcgen05.mma` to doubles (PTX ISA, "Alternate Floating Point
Data Formats", "Instruction Descriptor").

All values, and the products of two values and their scales, are exact in double precision.
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.tensors.numbers import power
from warploom.simt.lane_counts import jitable
from warploom.simt.records import Words
from warploom.texture.texels import float_value, half_to_single, signed_value

E4M3, E5M2, UNUSED, E2M3, E3M2, E2M1, HALF, BFLOAT, TENSOR_FLOAT, BYTE, SIGNED_BYTE = range(11)
"""Element types; those up to E2M1 have the codes of instruction descriptors."""

UE4M3, UE8M0 = 0, 1
"""Scale types, with the codes of instruction descriptors."""


@jitable
def small_float(bits: int, exponent_bits: int, fraction_bits: int) -> float:
    """Returns the value of the bits of a float format with the given field widths and the bias
    2^(exponent_bits - 1) - 1, as a double, subnormals included; the caller has excluded infinities
    and NaNs."""
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    if exponent == 0:
        exponent = 1
    else:
        fraction |= 1 << fraction_bits
    size = fraction * power(exponent - bias - fraction_bits)
    return -size if (bits >> (exponent_bits + fraction_bits)) & 1 else size


@jitable
def element_value(bits: int, type: int) -> float:
    """Returns the value of the bits of an element of `type` (E4M3, ...), as a double; NaNs and
    infinities where the type has them. Bits above a format of 4 or 6 bits, and of TENSOR_FLOAT
    (tf32) the low 13, are ignored."""
    if type == HALF:
        return float_value(half_to_single(bits))
    if type == BFLOAT:
        return float_value(bits << 16)
    if type == TENSOR_FLOAT:
        return float_value(bits & 0xFFFFE000)
    if type == BYTE:
        return float(bits)
    if type == SIGNED_BYTE:
        return float(signed_value(bits, 8))
    if type == E4M3:
        return np.nan if bits & 0x7F == 0x7F else small_float(bits, 4, 3)
    if type == E5M2:
        if bits & 0x7C == 0x7C:
            if bits & 3:
                return np.nan
            return -np.inf if bits & 0x80 else np.inf
        return small_float(bits, 5, 2)
    if type == E2M3:
        return small_float(bits, 2, 3)
    if type == E3M2:
        return small_float(bits, 3, 2)
    return small_float(bits, 2, 1)


@jitable
def scale_value(bits: int, type: int) -> float:
    """Returns the value of the eight bits of a block scale of `type` (UE4M3 or UE8M0), as a double;
    NaN where all bits are set (for UE4M3, all but the unused top one)."""
    if type == UE8M0:
        return np.nan if bits == 0xFF else power(bits - 127)
    return np.nan if bits & 0x7F == 0x7F else small_float(bits & 0x7F, 4, 3)


@jitable
def store_number(words: Words, at: int, value: float) -> None:
    """Stores the bits of a double in the word of `words` at index `at`."""
    words[at] = np.float64(value).view(np.int64)


@jitable
def load_number(words: Words, at: int) -> float:
    """Returns the double whose bits are in the word of `words` at index `at`."""
    return float(np.int64(words[at]).view(np.float64))
