"""Requests of the Tensor Memory Accelerator: a number, and operands in rows.

`program.requests.tensors` makes them of instructions; both machines fill the rows, 32 lanes of 64
bits each.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

OP, MODE, RANK, OPERATION, TYPE, FIELD, AXIS, GROUPED, PAIR = range(0, 36, 4)
"""Where the fields of a request begin; each is four bits. OPERATION and TYPE are those of a
reduction, FIELD and AXIS those of `tensormap.replace`, FIELD of a copy of bytes whether it has a
mask; GROUPED: the copy joins a bulk group; PAIR:
it may tell the mbarrier of the first block of a pair (`.cta_group::2`)."""

LOAD, STORE, REDUCE, PREFETCH, REDUCE_BYTES, COPY_BYTES, REPLACE, COPY_MAP, CANCEL = range(9)
"""Operations: a box loaded, stored, reduced or prefetched; bytes side by side reduced or copied; a
field of a tensor map replaced; a tensor map copied from shared to global memory; the launch of a
cluster cancelled."""

ALL_BLOCKS = 0xFFFF
"""A multicast to all blocks of the cluster."""

TILE, IM2COL_MODE, GATHER, WIDE_MODE, WIDE_128_MODE = range(5)

(
    MAP_ROW,
    COORDINATE_ROW,
    OFFSET_ROW,
    SHARED_ROW,
    BARRIER_ROW,
    BLOCKS_ROW,
    GLOBAL_ROW,
    SIZE_ROW,
    VALUE_ROW,
) = (0, 1, 6, 9, 10, 11, 12, 13, 14)
DATA_ROWS = VALUE_ROW + 1
"""Rows: the address of the map; five coordinates and three offsets; addresses in shared memory of
the data and of the mbarrier; the blocks of a multicast as a mask, 0 for none; an address in global
memory or of the source in shared memory; a size in bytes; a value."""


@jitable
def field(request: int, at: int) -> int:
    """Returns a field of a request."""
    return (request >> at) & 15
