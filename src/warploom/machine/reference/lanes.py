"""Represents values in the lanes of a warp on the reference machine: NumPy arrays of bits, one
unsigned integer per lane.

Interpreting the bits is left to the reader's type. Predicates are arrays of booleans; 128-bit
values, which NumPy does not have, are Python integers in object arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.types import ScalarType

Values = npt.NDArray[Any]

_UNSIGNED: dict[int, npt.DTypeLike] = {
    1: np.bool_,
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
    128: np.object_,
}
_SIGNED: dict[int, npt.DTypeLike] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOAT: dict[int, npt.DTypeLike] = {32: np.float32, 64: np.float64}


def dtype(bits: int) -> npt.DTypeLike:
    """Returns the NumPy type of arrays whose lanes have `bits` bits: unsigned integers, bool for 1,
    Python integers for 128."""
    return _UNSIGNED[bits]


def splat(bits: int, type: ScalarType, width: int) -> Values:
    """Returns an array with the same bits in each of `width` lanes."""
    return np.full(width, bits, _UNSIGNED[type.bits])


def collect(values: Iterable[int], type: ScalarType) -> Values:
    """Returns an array of lanes from Python integers, one for each lane, modulo 2^width of the
    type."""
    mask = (1 << type.bits) - 1
    return np.array([value & mask for value in values], _UNSIGNED[type.bits])


def resized(value: Values, bits: int, *, sign: bool = False) -> Values:
    """Returns the lanes with `bits` bits: truncated, or extended with zeros or, if `sign`, with the
    sign; the array itself if it has that width."""
    if value.dtype == _UNSIGNED[bits]:
        return value
    width = 128 if value.dtype == np.object_ else 8 * value.dtype.itemsize
    if bits == 128:
        # Sign extension: reinterpret as signed before widening to Python integers.
        wide = value.view(_SIGNED[width]) if sign else value
        return wide.astype(np.object_) & ((1 << 128) - 1)
    if width == 128:
        return (value & ((1 << bits) - 1)).astype(_UNSIGNED[bits])
    if sign and bits > width:
        return value.view(_SIGNED[width]).astype(_SIGNED[bits]).view(_UNSIGNED[bits])
    return value.astype(_UNSIGNED[bits])


def as_numbers(value: Values, type: ScalarType) -> Values:
    """Returns the lanes as numbers for NumPy's arithmetic, interpreted as `type`: a view of the
    bits as signed or float, a new array for signed 128-bit values."""
    if type.is_float:
        return value.view(_FLOAT[type.bits])
    if type.is_signed and type.bits == 128:
        return np.where(value >> 127, value - (1 << 128), value)
    return value.view(_SIGNED[type.bits]) if type.is_signed else value


def from_integers(numbers: Values, type: ScalarType) -> Values:
    """Returns the bits of integers that arithmetic on the results of `as_numbers` gave, modulo
    2^width."""
    if type.bits == 128:
        return numbers & ((1 << 128) - 1)
    return numbers.view(_UNSIGNED[type.bits])


def from_floats(numbers: Values, type: ScalarType) -> Values:
    """Returns the bits of floats of any NumPy type, rounded to nearest even in float type
    `type`."""
    return numbers.astype(_FLOAT[type.bits], copy=False).view(_UNSIGNED[type.bits])


def lane_by_lane(
    function: Callable[..., int], values: Iterable[Values], type: ScalarType
) -> Values:
    """Returns the results of a function of Python integers, applied to each lane of the arrays
    `values`, as lanes of a type."""
    return collect(
        (function(*operands) for operands in zip(*(v.tolist() for v in values), strict=True)), type
    )


def to_mask(predicate: Values) -> int:
    """Returns a predicate as a mask: bit l is lane l."""
    return int.from_bytes(np.packbits(predicate, bitorder="little").tobytes(), "little")


@lru_cache(maxsize=1024)
def from_mask(mask: int, width: int) -> Values:
    """Returns a mask as a predicate of `width` lanes, a multiple of 8; the array is read-only,
    since it is cached."""
    data = np.frombuffer(mask.to_bytes(width // 8, "little"), np.uint8)
    lanes = np.unpackbits(data, bitorder="little").view(np.bool_)
    lanes.flags.writeable = False
    return lanes


def lanes_of(mask: int) -> list[int]:
    """Returns the lanes of a mask in rising order."""
    return [lane for lane in range(mask.bit_length()) if mask >> lane & 1]
