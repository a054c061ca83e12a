"""Defines the encoding of requests to the Tensor Memory Accelerator, as bit fields;
`program.requests.tensors` encodes instructions."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

OP, MODE, RANK, OPERATION, TYPE, FIELD, AXIS, GROUPED, PAIR = range(0, 36, 4)
"""Bit positions of the fields of a request, four bits each. OPERATION, TYPE: of a reduction. FIELD,
AXIS: of `tensormap.replace`; for a copy of bytes, FIELD is 1 if it has a byte mask, for one of a
box, what it takes from operands instead of its map: bits NEW_ADDRESS, NEW_SHAPE. GROUPED: the
copy joins a bulk group. PAIR: it may signal the mbarrier of the first block of a pair
(`.cta_group::2`)."""

LOAD, STORE, REDUCE, PREFETCH, REDUCE_BYTES, COPY_BYTES, REPLACE, COPY_MAP, CANCEL = range(9)
"""Operations: load, store, reduce or prefetch a box; reduce or copy contiguous bytes; replace a
field of a tensor map; copy a tensor map from shared to global memory; cancel a cluster."""

NEW_ADDRESS, NEW_SHAPE = 1, 2

ALL_BLOCKS = 0xFFFF
"""The mask of a multicast to all blocks of the cluster."""

TILE, IM2COL_MODE, GATHER, WIDE_MODE, WIDE_128_MODE = range(5)
"""Values of MODE for copies of boxes. For bulk copies of bytes, MODE is 1 if one operand is in
global memory."""


@jitable
def field(request: int, at: int) -> int:
    """Returns the four-bit field of a request at bit position `at`."""
    return (request >> at) & 15
