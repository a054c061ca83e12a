"""Maps the registers of `tcgen05.ld` and `tcgen05.st` to lanes and columns of tensor memory (PTX
ISA, "Data Movement Shape").

The manual has figures; the formulas follow CUTLASS (include/cute/atom/copy_traits_sm100.hpp).

    shape .32x32b, thread t, register r   ->   lane t, column r
"""

from __future__ import annotations

from warploom.asynchronous.tensor_memory.layout import (
    S16X32BX2,
    S16X64B,
    S16X128B,
    S32X32B,
)
from warploom.simt.lane_counts import jitable


@jitable
def lane_in(shape: int, thread: int, register: int) -> int:
    """Returns the lane of tensor memory that a register of a thread (0 to 31) is loaded from or
    stored to by a load or store of `shape`, relative to the lane of the address operand. It is the
    thread's number for 32x32b, that modulo 16 for 16x32bx2. For other shapes it is thread / 4, plus
    8 if a bit is set: bit 0 of the thread for 16x64b, bit 0 of the register's number for 16x128b,
    bit 1 of that for 16x256b."""
    if shape == S32X32B:
        return thread
    if shape == S16X32BX2:
        return thread & 15
    if shape == S16X64B:
        return (thread >> 2) + 8 * (thread & 1)
    if shape == S16X128B:
        return (thread >> 2) + 8 * (register & 1)
    return (thread >> 2) + 8 * ((register >> 1) & 1)


@jitable
def column_in(shape: int, thread: int, register: int, second_half_offset: int) -> int:
    """Returns the column of tensor memory that a register of a thread (0 to 31) is loaded from or
    stored to by a load or store of `shape`, relative to the column of the address operand. It is
    the register's number r for 32x32b; for 16x32bx2, too, but plus `second_half_offset`
    (`immHalfSplitoff`, which other shapes ignore) for threads 16 to 31. Of thread t, it is 2r + t /
    2 % 2 for 16x64b, 4 (r / 2) + t % 4 for 16x128b, 8 (r / 4) + 2 (t % 4) + r % 2 for 16x256b."""
    if shape == S32X32B:
        return register
    if shape == S16X32BX2:
        return register + second_half_offset * (thread >> 4)
    if shape == S16X64B:
        return ((thread >> 1) & 1) + 2 * register
    if shape == S16X128B:
        return (thread & 3) + 4 * (register >> 1)
    return 2 * (thread & 3) + (register & 1) + 8 * (register >> 2)


@jitable
def columns_in(shape: int, registers: int) -> int:
    """Returns the number of consecutive columns that a load or store of `shape` with `registers`
    registers per thread accesses: as many for 32x32b and 16x32bx2 (in each half), else twice as
    many."""
    return registers if shape in (S32X32B, S16X32BX2) else 2 * registers


@jitable
def lanes_in(shape: int) -> int:
    """Returns the number of lanes of tensor memory that a load or store of `shape` accesses: 32 or
    16."""
    return 32 if shape == S32X32B else 16
