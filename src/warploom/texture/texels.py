"""Accesses single texels by address: reads and writes them, converts formats, counts sectors.

`memory` is all device memory as bytes; addresses are offsets in it. Coordinates are resolved by
`texture.fetch` and `texture.surface`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Ints, jitable
from warploom.texture.descriptors import F16, F32, S8, S16, U8, U16, TexelIssue

Memory = npt.NDArray[np.uint8]

CANONICAL_NAN = 0x7FFFFFFF
INFINITY_BITS = 0x7F800000

_ENCODED = np.arange(256) / 255.0
LINEAR_COLORS = np.where(
    _ENCODED <= 0.04045, _ENCODED / 12.92, ((_ENCODED + 0.055) / 1.055) ** 2.4
).astype(np.float32)
"""The linear values of color components of 8 bits in sRGB (IEC 61966-2-1)."""


@jitable
def format_bytes(format: int) -> int:
    """Returns the bytes of one component of a texel format."""
    if format <= S8:
        return 1
    return 2 if format <= F16 else 4


@jitable
def count_sector(address: int, issue: TexelIssue, record: Ints) -> None:
    """Counts the 32-byte sector of an address, and its line if no sector of it was touched, in
    `record`, unless this request has touched the sector before; appends it to the list of touched
    sectors in `issue`. Searches backwards, as neighboring lanes mostly touch the same sector."""
    sector, new_line = address >> 5, 1
    count = issue.touched
    for index in range(count, 0, -1):
        counted = int(issue.sectors[index - 1])
        if counted == sector:
            return
        if counted >> 2 == sector >> 2:
            new_line = 0
    issue.sectors[count] = sector
    issue.touched = count + 1
    costs = CostRecord(record, 0)
    costs.sectors += 1
    costs.lines += new_line


@jitable
def read_bytes(memory: Memory, address: int, size: int) -> int:
    """Returns the little-endian integer of up to 8 bytes at `address`; 8 bytes are signed."""
    value = 0
    for index in range(size):
        value |= int(np.int64(memory[address + index])) << (8 * index)
    # Python integers are unbounded, int64 is signed: subtracting 2^64 makes them agree. 2^63 does
    # not fit an int64, so it is subtracted in halves.
    if size == 8 and value >> 63 & 1:
        value = (value & 0x7FFFFFFFFFFFFFFF) - 0x4000000000000000 - 0x4000000000000000
    return value


@jitable
def write_bytes(memory: Memory, address: int, size: int, value: int) -> None:
    """Writes the low `size` bytes of an integer, little-endian."""
    for index in range(size):
        memory[address + index] = np.uint8((value >> (8 * index)) & 0xFF)


@jitable
def signed_value(bits: int, width: int) -> int:
    """Returns `bits` as a signed two's complement integer of `width` bits, up to 32."""
    return bits - ((bits >> (width - 1) & 1) << width)


@jitable
def float_bits(number: float) -> int:
    """Returns the bits of a number rounded to single precision; CANONICAL_NAN for a NaN."""
    bits = int(np.int64(np.float32(number).view(np.uint32)))
    return CANONICAL_NAN if bits & 0x7FFFFFFF > INFINITY_BITS else bits


@jitable
def float_value(bits: int) -> float:
    """Returns the value of single-precision bits as a double. Arithmetic on it must agree between
    Python, whose floats are doubles, and Numba, which would compute in single precision."""
    return float(np.float64(np.uint32(bits).view(np.float32)))


@jitable
def half_to_single(half: int) -> int:
    """Returns the single-precision bits of a half-precision number, given by its bits;
    CANONICAL_NAN for a NaN."""
    sign, exponent, fraction = (half & 0x8000) << 16, half >> 10 & 31, half & 1023
    if exponent == 31:
        return CANONICAL_NAN if fraction else sign | INFINITY_BITS
    if exponent == 0:
        return sign | float_bits(fraction * 2.0**-24)
    # 112 is the difference of the exponent biases, 127 - 15; 13 that of the fraction bits.
    return sign | (exponent + 112) << 23 | fraction << 13


@jitable
def single_to_half(bits: int) -> int:
    """Returns the half-precision bits of a single-precision number, given by its bits, rounded to
    nearest even: infinity beyond the largest half, 0x7FFF for a NaN."""
    sign, size = bits >> 16 & 0x8000, bits & 0x7FFFFFFF
    if size > INFINITY_BITS:
        return 0x7FFF
    if size >= 0x477FF000:  # halfway between the largest half and twice its last power of two
        return sign | 0x7C00
    if size < 0x38800000:  # below the smallest normal half: multiples of 2^-24
        scaled = float_value(size) * 2.0**24
        return sign | int(np.rint(scaled))
    # Adds just under half of the last bit that stays, plus that bit: ties go to even.
    rounded = size + 0xFFF + (size >> 13 & 1)
    return sign | (rounded >> 13) - (112 << 10)


@jitable
def is_number(format: int, as_float: int) -> bool:
    """Returns whether a component of a format is read as a float: that of a float format, and if
    `as_float` is not 0 also an integer of 8 or 16 bits."""
    return format in (F16, F32) or (as_float != 0 and format <= S16)


@jitable
def component_number(memory: Memory, address: int, format: int) -> float:
    """Returns the value of a component: of a float format itself, of an integer format of 8 or 16
    bits (no other is filtered) normalized to [0, 1] or [-1, 1].

    Source: CUDA C++ Programming Guide, "Texture Memory" (read mode); that the two lowest signed
    values are -1 is how graphics interfaces define signed normalized formats.
    """
    bits = read_bytes(memory, address, format_bytes(format))
    if format == F32:
        return float_value(bits)
    if format == F16:
        return float_value(half_to_single(bits))
    if format == U8:
        return bits / 255.0
    if format == U16:
        return bits / 65535.0
    if format == S8:
        return max(signed_value(bits, 8) / 127.0, -1.0)
    return max(signed_value(bits, 16) / 32767.0, -1.0)


@jitable
def component_word(memory: Memory, address: int, format: int, as_float: int) -> int:
    """Returns a component as the 32-bit word that a fetch returns. Of a float format it is the
    value as the bits of a 32-bit float; so is the normalized number of an integer of 8 or 16 bits,
    if `as_float` is not 0. Else it is the integer, zero-extended or, if its format is signed,
    sign-extended. Components of 32 bits are returned as they are."""
    bits = read_bytes(memory, address, format_bytes(format))
    if format == F16:
        return half_to_single(bits)
    if as_float and format <= S16:
        return float_bits(component_number(memory, address, format))
    if format == S8:
        return signed_value(bits, 8) & 0xFFFFFFFF
    if format == S16:
        return signed_value(bits, 16) & 0xFFFFFFFF
    return bits


@jitable
def linear_color(memory: Memory, address: int) -> float:
    """Returns the linear value of a color component in sRGB."""
    return float(LINEAR_COLORS[int(np.int64(memory[address]))])


@jitable
def normalized_integer(number: float, format: int) -> int:
    """Returns the integer that a number becomes as a component of a normalized format: scaled to
    its range, which it is limited to, and rounded to the nearest, ties to even; 0 for a NaN."""
    highest = (1 << (8 * format_bytes(format) - (1 if format in (S8, S16) else 0))) - 1
    lowest = -1.0 if format in (S8, S16) else 0.0
    if number != number:  # a NaN
        return 0
    return int(np.rint(min(max(number, lowest), 1.0) * highest))


@jitable
def write_component(memory: Memory, address: int, format: int, word: int, as_float: int) -> None:
    """Stores a 32-bit word in memory as a component of a format: clamped to the range of an integer
    format of 8 or 16 bits (the word is signed if the format is; a float that is normalized, if
    `as_float` is not 0), rounded to half precision for f16, unchanged for 32 bits."""
    value = word
    if as_float and format <= S16:
        value = normalized_integer(float_value(word), format)
    elif format == F16:
        value = single_to_half(word)
    elif format in (U8, U16):
        value = min(word, (1 << (8 * format_bytes(format))) - 1)
    elif format in (S8, S16):
        highest = (1 << (8 * format_bytes(format) - 1)) - 1
        value = min(max(signed_value(word, 32), -highest - 1), highest)
    write_bytes(memory, address, format_bytes(format), value)
