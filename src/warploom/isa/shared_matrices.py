"""Matrices in shared memory that a matrix descriptor names: which bytes hold which elements.

A matrix is read by units of 16 bytes. A unit holds neighbors along the major dimension: k, or for
a transposed operand m (of A) or n (of B). Units stand in lines, one for each index of the other
dimension, and lines in groups of eight. Source: PTX ISA, "Shared Memory Matrix Layout" of "Register
Fragments and Shared Memory Matrix Layouts" (canonical layouts and strides) and "Matrix Descriptor
Format"; the strides of both kinds of layouts as CUTLASS's `make_gmma_desc` has them
(include/cute/atom/mma_traits_sm90_gmma.hpp).

B is written with its columns as rows, as everywhere (`isa.fragments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from warploom.core.lazy import cached_property
from warploom.core.types import U32, U64
from warploom.isa.fragments import WARP, WIDTHS, Fragment, Position
from warploom.isa.terms import (
    Term,
    argument,
    constant,
    eq,
    extend,
    select,
    shift_left,
    shift_right,
    truncate,
)

UNIT_BITS = 4
UNIT_BYTES = 1 << UNIT_BITS
GROUP = 8
"""Lines that follow each other at one distance."""

ADDRESS_BITS = 18
"""Addresses and offsets count modulo 2^18 bytes: a descriptor encodes them in 14 bits, without
their lowest four."""


@dataclass(frozen=True)
class SharedOperand:
    """A multiplicand in shared memory, read by a warp in blocks of at most `block_rows` rows.

    `rows` (of A, or columns of B) times `columns` along k, of elements of `type`; `transposed`: the
    neighbors in a unit have the same k.
    """

    type: str
    rows: int
    columns: int
    transposed: bool
    block_rows: int

    @property
    def unit(self) -> int:
        """Returns the number of elements in a unit."""
        return 8 * UNIT_BYTES // WIDTHS[self.type]

    @property
    def blocks(self) -> int:
        """Returns the number of blocks, of which the last one may have fewer rows of the matrix."""
        return -(-self.rows // self.block_rows)

    @property
    def lines(self) -> int:
        """Returns the number of lines of a block."""
        return self.columns if self.transposed else self.block_rows

    @property
    def units(self) -> int:
        """Returns the number of units of a block; 32 of them are read by one request, line after
        line of one column of units."""
        return self.block_rows * self.columns // self.unit

    @property
    def requests(self) -> int:
        """Returns the number of requests of a block."""
        return -(-self.units // WARP)

    def unit_of(self, request: int, lane: int) -> tuple[int, int]:
        """Returns the line, and the place in it, of the unit that a lane reads, both from the start
        of the block."""
        position, line = divmod(request * WARP + lane, self.lines)
        return line, position

    def step(self, block: int) -> tuple[int, int]:
        """Returns the line and the place in it at which a block begins."""
        first_row = block * self.block_rows
        return (0, first_row // self.unit) if self.transposed else (first_row, 0)

    def has(self, block: int, request: int, lane: int) -> bool:
        """Returns whether a lane has a unit of the matrix to read in that request."""
        row, _ = self.fragment.position(lane, request * self.unit)
        inside = request * WARP + lane < self.units
        return inside and block * self.block_rows + row < self.rows

    @cached_property
    def fragment(self) -> Fragment:
        """Returns a block as the lanes hold it that have read it, four registers for each
        request."""

        def position(lane: int, element: int) -> Position:
            request, inside = divmod(element, self.unit)
            line, at = self.unit_of(request, lane)
            along = at * self.unit + inside
            return (along, line) if self.transposed else (line, along)

        return Fragment(
            self.type, self.block_rows, self.columns, self.requests * self.unit, position
        )


def _field(descriptor: Term, first_bit: int, bits: int) -> Term:
    """Returns the bits of a descriptor from `first_bit` on, as a .u32."""
    moved = shift_right(descriptor, constant(first_bit, U32))
    return truncate(moved, U32) & ((1 << bits) - 1)


def _encoded(descriptor: Term, first_bit: int) -> Term:
    """Returns the bytes that a field of 14 bits encodes."""
    return _field(descriptor, first_bit, ADDRESS_BITS - UNIT_BITS) * UNIT_BYTES


@lru_cache
def unit_address(transposed: bool) -> Term:
    """Returns the address in shared memory of a unit, a .u64.

    `argument(0)` is the descriptor (.u64), `argument(1)` the line, `argument(2)` the place in it
    (.u32). In a swizzled layout a unit's place in a row of 128 bytes is exclusive-ored with the
    row's number from where the pattern begins, which the base offset determines.
    """
    descriptor, line, position = argument(0, U64), argument(1, U32), argument(2, U32)
    start, leading, stride = (_encoded(descriptor, first_bit) for first_bit in (0, 16, 32))
    base_offset, mode = _field(descriptor, 49, 3), _field(descriptor, 62, 2)
    plain = eq(mode, 0)
    # Modes 1, 2 and 3 repeat every 8, 4 and 2 units; without a swizzle a unit stands alone.
    width_bits = select(plain, constant(0, U32), constant(4, U32) - mode)
    last = shift_left(constant(1, U32), width_bits) - 1
    atom_bytes = shift_left(constant(UNIT_BYTES, U32), width_bits)
    # Along k a swizzled line goes on without a gap: the leading offset is not used.
    between_groups, between_atoms = stride, select(plain, leading, atom_bytes)
    if transposed:
        between_groups = select(plain, leading, stride)
        between_atoms = select(plain, stride, leading)
    offset = (
        shift_right(line, constant(3, U32)) * between_groups
        + (line & (GROUP - 1)) * atom_bytes
        + shift_right(position, width_bits) * between_atoms
        + (position & last) * UNIT_BYTES
    )
    address = (start + offset) & ((1 << ADDRESS_BITS) - 1)
    row = shift_right(address, constant(7, U32)) - base_offset
    return extend(address ^ ((row & last) * UNIT_BYTES), U64)
