"""Reduces numbers in memory (add, minimum, ...), for `cp.reduce.async.bulk`, its tensor form, and
`red.async`.

Every operation rounds once, to nearest even. Values are integers as `read_bytes` returns them.
Source: PTX ISA, "cp.reduce.async.bulk", ".redOp" and the element types of each.
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.tensors.maps import (
    BF16,
    F16,
    F32,
    F32_FTZ,
    F64,
    S32,
    TF32,
    TF32_FTZ,
    U64,
    type_bytes,
)
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes, write_bytes

OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
ADD, MIN, MAX, INC, DEC, AND, OR, XOR = range(8)

CANONICAL = 0x7FFF
"""The NaN that 16-bit operations return."""


@jitable
def power(exponent: int) -> float:
    """Returns 2 to the power of `exponent`, from -1022 to 1023."""
    # The bits of a double: biased exponent, and a fraction of 0.
    return float(np.int64((exponent + 1023) << 52).view(np.float64))


@jitable
def double_bits(value: float) -> int:
    """Returns the bits of a double as a signed integer."""
    return int(np.float64(value).view(np.int64))


@jitable
def small_value(bits: int, fraction: int, bias: int) -> float:
    """Returns the value of the bits of a 16-bit float with `fraction` fraction bits and an exponent
    bias of `bias` (f16: 10, 15; bf16: 7, 127), as a double; subnormals, infinities and NaNs
    included."""
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, rest = (bits & 0x7FFF) >> fraction, bits & ((1 << fraction) - 1)
    if exponent == (1 << (15 - fraction)) - 1:
        return sign * (np.inf if rest == 0 else np.nan)
    if exponent == 0:
        return sign * rest * power(1 - bias - fraction)
    return sign * (rest + (1 << fraction)) * power(exponent - bias - fraction)


@jitable
def small_bits(value: float, fraction: int, bias: int) -> int:
    """Encodes a double as a 16-bit float with `fraction` fraction bits and an exponent bias of
    `bias`, rounded to nearest even. The sign stays, that of zeros too; numbers below the least
    normal one become subnormal; those beyond the largest become infinity; a NaN becomes
    CANONICAL."""
    if value != value:
        return CANONICAL
    infinity = ((1 << (15 - fraction)) - 1) << fraction
    bits = double_bits(value)
    sign = 0x8000 if bits < 0 else 0
    exponent = max((bits >> 52 & 0x7FF) - 1023, 1 - bias)
    if exponent > bias:
        return sign | infinity
    steps = int(np.rint(abs(value) * power(fraction - exponent)))
    # `steps` includes the implicit bit, hence `bias - 1`; a subnormal lacks it. Adding, not or-ing,
    # lets a fraction that rounds up carry into the exponent.
    return sign | min(((exponent + bias - 1) << fraction) + steps, infinity)


@jitable
def min_or_max(op: int, old: float, operand: float) -> float:
    """Returns the minimum (`op` MIN) or maximum of two floats. If one is a NaN, returns the other;
    -0 is less than 0."""
    if old != old:
        return operand
    if operand != operand:
        return old
    if old == operand:
        return old if (double_bits(old) < 0) == (op == MIN) else operand
    return old if (old < operand) == (op == MIN) else operand


@jitable
def combine_floats(op: int, old: float, operand: float) -> float:
    """Returns the sum, or the minimum or maximum (`min_or_max`), of two doubles, by `op` (ADD, MIN
    or MAX)."""
    return old + operand if op == ADD else min_or_max(op, old, operand)


@jitable
def combine_16_bits(op: int, old: int, operand: int, fraction: int, bias: int) -> int:
    """Returns the bits of the sum, minimum or maximum (`op`: ADD, MIN or MAX) of two 16-bit floats,
    given as bits (f16 or bf16 by `fraction` and `bias`)."""
    a, b = small_value(old, fraction, bias), small_value(operand, fraction, bias)
    # The sum in double precision rounds to the same result as the exact sum: double has more than
    # twice the precision.
    return small_bits(combine_floats(op, a, b), fraction, bias)


@jitable
def signed(bits: int, width: int) -> int:
    """Returns the low `width` bits `bits` as a signed integer; 64 bits are signed already."""
    return bits if width == 64 else bits - ((bits >> (width - 1) & 1) << width)


@jitable
def is_less(a: int, b: int, type: int) -> bool:
    """Returns whether integer `a` is less than `b`, compared as `type` (signed or unsigned). Both
    are as `read_bytes` returns them: up to 4 bytes unsigned, 8 bytes signed."""
    if type == S32:
        return signed(a, 32) < signed(b, 32)
    # A negative number stands for an unsigned one of 2^63 or more.
    if type == U64 and (a < 0) != (b < 0):
        return b < 0
    return a < b


@jitable
def combine_integers(op: int, old: int, operand: int, type: int) -> int:
    """Returns the result of one of the operations ADD, MIN, MAX, INC, DEC, AND, OR and XOR on
    `old`, the integer in memory, and `operand`, compared as `type`. INC gives 0 if `old` is
    `operand` or more, DEC gives `operand` if `old` is 0 or more than `operand`. The result is
    modulo 2^64; the caller stores the low bytes."""
    if op == ADD:
        # Unsigned numbers wrap in NumPy and Numba; the sum of two int64 may overflow.
        return int(np.int64(np.uint64(np.int64(old)) + np.uint64(np.int64(operand))))
    if op == AND:
        return old & operand
    if op == OR:
        return old | operand
    if op == XOR:
        return old ^ operand
    if op == INC:
        return 0 if not is_less(old, operand, type) else old + 1
    if op == DEC:
        return operand if old == 0 or is_less(operand, old, type) else old - 1
    return old if is_less(old, operand, type) == (op == MIN) else operand


@jitable
def single_value(bits: int) -> float:
    """Returns the value of the bits of a single-precision float, as a double."""
    return float(np.float64(np.uint32(bits).view(np.float32)))


@jitable
def single_bits(value: float, flushes: int) -> int:
    """Encodes a double in single precision, rounded to nearest even, as an unsigned integer:
    0x7FFFFFFF for a NaN; a subnormal result as a zero with its sign if `flushes` is 1."""
    bits = int(np.int64(np.float32(value).view(np.uint32)))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FFFFFFF
    return bits & 0x80000000 if flushes and bits & 0x7F800000 == 0 else bits


@jitable
def reduce_number(memory: Memory, target: int, source: int, op: int, type: int) -> None:
    """Combines the number at offset `target` in `memory` with that at offset `source` by `op` (ADD,
    ...), and stores the result at `target`. `type` (F16, ...) gives size and arithmetic; operations
    from INC on are of integers, whatever the type."""
    size = type_bytes(type)
    old, operand = read_bytes(memory, target, size), read_bytes(memory, source, size)
    # Operations from INC on treat the bits as an integer, whatever the type.
    bitwise = op >= INC
    # Fraction bits and exponent bias: 10 and 15 of f16, 7 and 127 of bf16.
    if type == F16 and not bitwise:
        new = combine_16_bits(op, old, operand, 10, 15)
    elif type == BF16 and not bitwise:
        new = combine_16_bits(op, old, operand, 7, 127)
    elif type in (F32, F32_FTZ, TF32, TF32_FTZ) and not bitwise:
        # As for 16 bits, a double sum rounded to single precision is the correctly rounded sum.
        a, b = single_value(old), single_value(operand)
        new = single_bits(combine_floats(op, a, b), 1 if type in (F32_FTZ, TF32_FTZ) else 0)
    elif type == F64 and not bitwise:
        a = float(np.int64(old).view(np.float64))
        b = float(np.int64(operand).view(np.float64))
        new = double_bits(combine_floats(op, a, b))
    else:
        new = combine_integers(op, old, operand, type)
    write_bytes(memory, target, size, new)
