"""Defines the encoding of requests to the Tensor Memory Accelerator: bit fields and operand rows.

`program.requests.tensors` encodes instructions; both machines fill the rows of operands, 32 lanes
of 64 bits each.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

OP, MODE, RANK, OPERATION, TYPE, FIELD, AXIS, GROUPED, PAIR = range(0, 36, 4)
"""Bit positions of the fields of a request, four bits each. OPERATION, TYPE: of a reduction. FIELD,
AXIS: of `tensormap.replace`; for a copy of bytes, FIELD is 1 if it has a byte mask. GROUPED: the
copy joins a bulk group. PAIR: it may signal the mbarrier of the first block of a pair
(`.cta_group::2`)."""

LOAD, STORE, REDUCE, PREFETCH, REDUCE_BYTES, COPY_BYTES, REPLACE, COPY_MAP, CANCEL = range(9)
"""Operations: load, store, reduce or prefetch a box; reduce or copy contiguous bytes; replace a
field of a tensor map; copy a tensor map from shared to global memory; cancel a cluster."""

ALL_BLOCKS = 0xFFFF
"""The mask of a multicast to all blocks of the cluster."""

TILE, IM2COL_MODE, GATHER, WIDE_MODE, WIDE_128_MODE = range(5)
"""Values of MODE for copies of boxes. For bulk copies of bytes, MODE is 1 if one operand is in
global memory."""

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
"""Operand rows. MAP_ROW: address of the map; COORDINATE_ROW, OFFSET_ROW: five coordinates, three
offsets; SHARED_ROW, BARRIER_ROW: shared addresses of data and mbarrier; BLOCKS_ROW: multicast mask,
0 for none; GLOBAL_ROW: address in global memory, or of the source in shared memory; SIZE_ROW: size
in bytes; VALUE_ROW: a value."""


@jitable
def field(request: int, at: int) -> int:
    """Returns the four-bit field of a request at bit position `at`."""
    return (request >> at) & 15
