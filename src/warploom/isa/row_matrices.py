"""Lays the rows that `ldmatrix` and `stmatrix` move out over the lanes of a warp.

Lanes point at rows of 16 bytes in shared memory; each lane holds parts of several rows in its
registers. Bytes that stay together are a unit. Numbers of four or six bits come packed at the
beginning of a row, and are bytes in registers.

Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix", "Warp-level matrix store
instruction: stmatrix". For the figures of 16x16, 8x16 and 16x8 matrices: NVIDIA's CUTLASS, the
traits of `SM100_U8x8_LDSM_T`, `SM100_SU4_DU8x16_x1_LDSM_N`, `SM100_U8x4_STSM_T` and their kin
(include/cute/atom/copy_traits_sm100.hpp), where the first is the layout after `copy` has exchanged
bytes (include/cute/arch/copy_sm100.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from warploom.core.lazy import cached_property
from warploom.core.types import U32
from warploom.isa.spec import Operation
from warploom.isa.terms import Term, argument, constant, shift_right

WARP = 32
ROW_BYTES = 16
WORDS, WORD_BYTES = 4, 4
"""Words of a row, and bytes of a word, which is what a register has."""

Unit = tuple[int, int]
"""A row, and the number of a unit in it."""

PACKED_BITS = {"b6x16_p32": 6, "b4x16_p64": 4}
"""Bits of a number, by the format of rows in which 16 are packed."""


@dataclass(frozen=True)
class RowMatrices:
    """The matrices of one instruction: `rows` lanes point at rows, a lane holds `registers`.

    `position(lane, register, unit)` is the row, and the place in it, of a unit of `unit_bytes`
    bytes of a register. `packed_bits` is the width of packed numbers, 0 for bytes.
    """

    rows: int
    registers: int
    unit_bytes: int
    position: Callable[[int, int, int], Unit]
    packed_bits: int = 0

    @property
    def units(self) -> int:
        """Returns how many units a register holds."""
        return WORD_BYTES // self.unit_bytes

    @cached_property
    def holders(self) -> dict[Unit, tuple[int, int, int]]:
        """Returns the lane, register and unit of it that holds each unit of each row."""
        return {
            self.position(lane, register, unit): (lane, register, unit)
            for register in range(self.registers)
            for lane in range(WARP)
            for unit in range(self.units)
        }


def _rows_of_eight(lane: int, register: int, unit: int) -> Unit:
    """Returns the unit of m8n8 and m8n16: four lanes hold a row."""
    return 8 * register + lane // 4, lane % 4


def _columns_of_eight(lane: int, register: int, unit: int) -> Unit:
    """Returns the unit of m8n8, transposed: four lanes hold a column of elements of two bytes."""
    return 8 * register + 2 * (lane % 4) + unit, lane // 4


def _columns_of_sixteen(lane: int, register: int, unit: int) -> Unit:
    """Returns the unit of m16n16, transposed: four lanes hold two columns of bytes, one in each of
    two registers."""
    matrix, right = divmod(register, 2)
    return 16 * matrix + 4 * (lane % 4) + unit, 8 * right + lane // 4


def _sums(lane: int, register: int, unit: int) -> Unit:
    """Returns the unit of m16n8, transposed: the layout of sums of `mma` of that shape, in
    bytes."""
    lower, row = divmod(unit, 2)
    return 8 * register + 2 * (lane % 4) + row, 8 * lower + lane // 4


@cache
def row_matrices(operation: Operation) -> RowMatrices:
    """Returns what an `ldmatrix` or `stmatrix` moves."""
    m = operation.modifiers
    shape, count = m.text("shape", ""), int(m.text("num", "x1")[1:])
    packed = PACKED_BITS.get(m.text("packing", ""), 0)
    if shape == "m16n16":
        return RowMatrices(16 * count, 2 * count, 1, _columns_of_sixteen, packed)
    if shape == "m16n8":
        return RowMatrices(8 * count, count, 1, _sums)
    if "trans" in m:
        return RowMatrices(8 * count, count, 2, _columns_of_eight)
    return RowMatrices(8 * count, count, WORD_BYTES, _rows_of_eight, packed)


@cache
def unpacked_words(bits: int) -> tuple[Term, ...]:
    """Returns the four words of a row of bytes: of one in which 16 numbers of `bits` bits are
    packed, whose words are arguments 0 to 3. The numbers are the low bits of their bytes."""
    return tuple(_unpacked_word(bits, word) for word in range(WORDS))


def _unpacked_word(bits: int, word: int) -> Term:
    """Returns a word of four bytes, each with one of the packed numbers of `bits` bits."""
    found: Term = constant(0, U32)
    for number in range(WORD_BYTES):
        value = _packed_number(bits, bits * (WORD_BYTES * word + number))
        found = found | Term("shl", U32, (value, constant(8 * number, U32)))
    return found


def _packed_number(bits: int, first_bit: int) -> Term:
    """Returns the number whose lowest bit is bit `first_bit` of a row."""
    word, low = divmod(first_bit, 32)
    value = shift_right(argument(word, U32), constant(low, U32)) if low else argument(word, U32)
    if low + bits > 32:
        above = Term("shl", U32, (argument(word + 1, U32), constant(32 - low, U32)))
        value = value | above
    return value & ((1 << bits) - 1)
