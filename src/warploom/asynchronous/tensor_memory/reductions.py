"""Computes the reductions of `tcgen05.ld.red` (PTX ISA, "tcgen05.ld") on 32-bit words; for both
machines."""

from __future__ import annotations

from warploom.asynchronous.tensor_memory.layout import (
    ABSOLUTE_VALUES,
    FLOATS,
    MINIMUM,
    PROPAGATES_NANS,
    SIGNED,
)
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import CANONICAL_NAN, INFINITY_BITS, signed_value

SIZE_BITS = 0x7FFFFFFF


@jitable
def comparison_key(word: int, request: int) -> int:
    """Maps a 32-bit word to an integer that orders like the word's value, by the flags of
    `request`: as a float (no NaN; -0 below +0), as a signed or as an unsigned integer."""
    if request & FLOATS:
        size = word & SIZE_BITS
        return -size - 1 if word >> 31 else size
    return signed_value(word, 32) if request & SIGNED else word


@jitable
def reduce_words(left: int, right: int, request: int) -> int:
    """Returns the minimum (MINIMUM) or maximum of two 32-bit words, compared by the flags of
    `request` as floats, signed or unsigned; of their absolute values with ABSOLUTE_VALUES. If one
    is a NaN, returns the other; CANONICAL_NAN if both are, or with PROPAGATES_NANS."""
    if request & ABSOLUTE_VALUES:
        left, right = left & SIZE_BITS, right & SIZE_BITS
    if request & FLOATS:
        left_nan, right_nan = left & SIZE_BITS > INFINITY_BITS, right & SIZE_BITS > INFINITY_BITS
        if left_nan or right_nan:
            if request & PROPAGATES_NANS or (left_nan and right_nan):
                return CANONICAL_NAN
            return right if left_nan else left
    less = comparison_key(left, request) < comparison_key(right, request)
    return left if less == (request & MINIMUM != 0) else right
