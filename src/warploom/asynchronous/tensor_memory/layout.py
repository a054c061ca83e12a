"""Defines the layouts of tensor memory and of the requests of `tcgen05`;
`program.requests.tensor_memory` encodes an instruction as a request, an integer of bit fields."""

from __future__ import annotations

from warploom.asynchronous.records import UNITS

# ---- tensor memory ------------------------------------------------------------------------------

LANES, COLUMNS, COLUMN_BYTES = 128, 512, 4
"""Size of a block's tensor memory (PTX ISA, "Tensor Memory"): lanes, columns of 32 bits."""

LANE_BYTES = COLUMNS * COLUMN_BYTES
LANE_AT = 16
"""Bit position of the lane in an address; the bits below hold the column."""

UNIT_COLUMNS = 32
"""Columns are allocated in units of 32."""
assert UNIT_COLUMNS * UNITS == COLUMNS

STATE_BYTES = 512
"""Bytes before the columns, which begin with `TensorMemoryState`."""

BLOCK_BYTES = STATE_BYTES + LANES * LANE_BYTES
"""Bytes of a block's tensor memory, which follows its shared memory."""

# ---- requests -----------------------------------------------------------------------------------

OP, KIND, SHAPE, SCALES, FORMAT, REGISTERS, FLAGS = 0, 4, 8, 12, 16, 20, 28
"""Bit positions of the fields of a request: four bits each, REGISTERS eight, FLAGS the rest."""

(
    ALLOC,
    FREE,
    RELINQUISH,
    LOAD,
    STORE,
    COPY,
    SHIFT,
    MULTIPLY,
    COMMIT,
) = range(9)

F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 = range(7)
"""Kinds of products (`.kind`), in the order of the manual."""

S32X32B, S16X64B, S16X128B, S16X256B, S16X32BX2 = range(5)
"""Shapes of loads and stores."""

C128X256B, C4X256B, C128X128B, C64X128B_02_13, C64X128B_01_23, C32X128B = range(5, 11)
"""Shapes of copies, with the warps that they are multicast to."""

PLAIN_BYTES, PACKED_6, PACKED_4 = range(3)
"""Formats of a copy's source: bytes; 16 elements of 6 bits or of 4 bits in 16 bytes."""

(
    PAIR,
    A_IN_TENSOR_MEMORY,
    SPARSE,
    WEIGHT_STATIONARY,
    HALVES,
    REDUCES,
    MINIMUM,
    ABSOLUTE_VALUES,
    PROPAGATES_NANS,
    SIGNED,
    FLOATS,
    SHIFTS_A,
) = (1 << (FLAGS + bit) for bit in range(12))
"""Flags. PAIR: `.cta_group::2`. HALVES: `.pack::16b` or `.unpack::16b`. From REDUCES to FLOATS, of
`tcgen05.ld.red`: minimum instead of maximum, of absolute values, `.NaN`, signed, float. SHIFTS_A:
`.ashift`."""

MOST_REGISTERS = 129
"""The most registers of a load or store: 128, and one for the result of a reduction."""

NOT_LOADED = 0x7FFFFFFF
"""The value of registers between a load that completes late and the wait for it: a NaN in single
precision. The manual specifies none."""


# ---- entries ------------------------------------------------------------------------------------

PRODUCT, TENSOR_COPY, ROW_SHIFT, ARRIVAL = range(5, 9)
"""Kinds of entries of `asynchronous.issue.queue`, numbered after those of TMA: matrix product; copy
from shared memory; shift; arrival of a commit at an mbarrier."""
