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
    """Returns the lane of tensor memory that a thread's register is loaded from or stored to,
    relative to the address operand's."""
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
    """Returns the column of tensor memory that a thread's register is loaded from or stored to,
    relative to the address operand's. `second_half_offset` is added for the second half of the
    threads (`immHalfSplitoff`)."""
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
    """Returns the number of consecutive columns that `registers` registers per thread hold."""
    return registers if shape in (S32X32B, S16X32BX2) else 2 * registers


@jitable
def lanes_in(shape: int) -> int:
    """Returns the number of lanes that a shape accesses."""
    return 32 if shape == S32X32B else 16
