"""Executes copies from shared to tensor memory, and row shifts in tensor memory (PTX ISA,
"tcgen05.cp", "tcgen05.shift").

The manual has figures; the lanes that a copy writes and multicasts to are those of CUTLASS
(`SM100_UTCCP_*`, include/cute/atom/copy_traits_sm100.hpp).
"""

from __future__ import annotations

from warploom.asynchronous.records import RequestEntry
from warploom.asynchronous.tensor_memory.descriptors import UNIT_BYTES, unit_address
from warploom.asynchronous.tensor_memory.layout import (
    C4X256B,
    C32X128B,
    C64X128B_01_23,
    C64X128B_02_13,
    C128X256B,
    FORMAT,
    PACKED_4,
    PAIR,
    PLAIN_BYTES,
    SHAPE,
)
from warploom.asynchronous.tensor_memory.memory import column_of, lane_of, word_offset
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.requests import field
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes

ROW_SHIFT_BYTES = 32
"""`tcgen05.shift` moves 32 bytes of each of 32 lanes but the last, which has no successor."""
SHIFTED_ROWS = 31


@jitable
def copied_rows(shape: int) -> int:
    """Returns the number of rows of the source matrix that a copy of a shape (C4X256B, ...) reads:
    4, 32, 64 or 128."""
    if shape == C4X256B:
        return 4
    if shape == C32X128B:
        return 32
    return 64 if shape in (C64X128B_02_13, C64X128B_01_23) else 128


@jitable
def copied_units(shape: int) -> int:
    """Returns the number of 16-byte units that a copy of a shape reads of each row: 2 for shapes of
    256 bits, else 1."""
    return 2 if shape in (C128X256B, C4X256B) else 1


@jitable
def copies_of(shape: int) -> int:
    """Returns the number of lanes that a copy of a shape writes each row to (multicast): 4 for
    32x128b, 2 for 64x128b, else 1."""
    if shape == C32X128B:
        return 4
    return 2 if shape in (C64X128B_02_13, C64X128B_01_23) else 1


@jitable
def copied_lane(shape: int, row: int, number: int) -> int:
    """Returns the lane of tensor memory that copy number `number` of row `row` is written to by a
    copy of `shape`, relative to the lane of the address operand. The warps that a shape names
    (01_23) are quarters of 32 lanes that get equal rows; 4x256b writes one row to the first lane of
    each quarter."""
    if shape == C4X256B:
        return 32 * row
    if shape == C32X128B:
        return row + 32 * number
    if shape == C64X128B_02_13:
        return row + 64 * number
    if shape == C64X128B_01_23:
        return (row & 31) + 64 * (row >> 5) + 32 * number
    return row


@jitable
def unpacked_byte(memory: Memory, unit: int, format: int, index: int) -> int:
    """Returns byte `index` of the 16 that a copy writes for the 16-byte source unit at offset
    `unit` in `memory`. It is the byte itself, or, of a packed format, element `index` in a byte of
    its own: an element of 6 bits in the low bits, one of 4 bits in bits 2 to 5."""
    if format == PLAIN_BYTES:
        return int(memory[unit + index])
    if format == PACKED_4:
        return ((int(memory[unit + (index >> 1)]) >> (4 * (index & 1))) & 15) << 2
    first_bit = 6 * index
    return (read_bytes(memory, unit + (first_bit >> 3), 2) >> (first_bit & 7)) & 63


@jitable
def copy_matrix(memory: Memory, entry: RequestEntry) -> None:
    """Executes the copy from shared to tensor memory in an entry (`tcgen05.cp`). With
    `.cta_group::2` each block of the pair copies from its own shared memory to its own tensor
    memory."""
    operands = entry.operands
    request = entry.request
    shape, format = field(request, SHAPE), field(request, FORMAT)
    address = operands.d
    for block in range(2 if request & PAIR else 1):
        own = operands.peer if block else operands.own
        for row in range(copied_rows(shape)):
            for unit in range(copied_units(shape)):
                source = own - ORIGIN + unit_address(operands.b, False, row, unit)
                for number in range(copies_of(shape)):
                    lane = lane_of(address) + copied_lane(shape, row, number)
                    target = word_offset(own + operands.memory, lane, column_of(address))
                    for index in range(UNIT_BYTES):
                        byte = unpacked_byte(memory, source, format, index)
                        memory[target + unit * UNIT_BYTES + index] = byte


@jitable
def shift_rows(memory: Memory, entry: RequestEntry) -> None:
    """Executes the shift in an entry (`tcgen05.shift`): moves 32 bytes of each of 31 lanes from the
    next lane, from the lane and column of the address on. With `.cta_group::2` does so in the
    tensor memory of each block of the pair."""
    operands = entry.operands
    request, address = entry.request, operands.d
    for block in range(2 if request & PAIR else 1):
        own = operands.peer if block else operands.own
        # In rising order, so that each lane is read before it is overwritten.
        for row in range(SHIFTED_ROWS):
            start, lane = own + operands.memory, lane_of(address) + row
            target = word_offset(start, lane, column_of(address))
            source = word_offset(start, lane + 1, column_of(address))
            for index in range(ROW_SHIFT_BYTES):
                memory[target + index] = memory[source + index]
