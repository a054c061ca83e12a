"""Computes addresses in tensor memory (lane and column), and accesses the words that record which
of its columns are allocated.

A block's tensor memory follows its shared memory on the host (`layout.BLOCK_BYTES`).
"""

from __future__ import annotations

from warploom.asynchronous.records import TensorMemoryState, WarpIssue
from warploom.asynchronous.tensor_memory.layout import (
    BLOCK_BYTES,
    COLUMN_BYTES,
    COLUMNS,
    LANE_AT,
    LANE_BYTES,
    LANES,
    STATE_BYTES,
    UNIT_COLUMNS,
)
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes, write_bytes

WARP_LANES = 32
WARPS = LANES // WARP_LANES


@jitable
def column_of(address: int) -> int:
    """Returns the column of an address of tensor memory: its low 16 bits."""
    return address & 0xFFFF


@jitable
def lane_of(address: int) -> int:
    """Returns the lane of an address of tensor memory: its bits 16 to 29."""
    return (address >> LANE_AT) & 0x3FFF


@jitable
def to_tensor_memory(issue: WarpIssue) -> int:
    """Returns the offset in bytes from a block's shared memory to its tensor memory, which is the
    last part of the bytes from block to block."""
    return issue.shared_stride - BLOCK_BYTES


@jitable
def own_rank(issue: WarpIssue) -> int:
    """Returns the rank of the executing block in its cluster, computed from the addresses of shared
    memory."""
    stride = issue.shared_stride
    return (issue.own_shared - issue.cluster_shared) // stride


@jitable
def read_state(memory: Memory, start: int, word: int) -> int:
    """Returns word number `word` (`TensorMemoryState`) of the allocation state of the tensor memory
    at host address `start`."""
    return read_bytes(memory, start - ORIGIN + 8 * word, 8)


@jitable
def write_state(memory: Memory, start: int, word: int, value: int) -> None:
    """Sets word number `word` (`TensorMemoryState`) of the allocation state of the tensor memory at
    host address `start`."""
    write_bytes(memory, start - ORIGIN + 8 * word, 8, value)


@jitable
def word_offset(start: int, lane: int, column: int) -> int:
    """Returns the offset in `memory` of the 32-bit word at a lane and column of the tensor memory
    at host address `start`."""
    return start - ORIGIN + STATE_BYTES + lane * LANE_BYTES + column * COLUMN_BYTES


@jitable
def first_missing(memory: Memory, start: int, column: int, count: int) -> int:
    """Returns the first of the `count` columns from `column` on that is not allocated, or -1 if all
    are. If they exceed tensor memory, returns the first beyond it (COLUMNS or more), whatever is
    allocated."""
    if column + count > COLUMNS:
        return max(column, COLUMNS)
    for unit in range(column // UNIT_COLUMNS, (column + count - 1) // UNIT_COLUMNS + 1):
        if read_state(memory, start, TensorMemoryState.owner + unit) == 0:
            return max(column, unit * UNIT_COLUMNS)
    return -1
