"""The words in which `tcgen05` is asked for, kept until it completes, and accounted for.

`program.requests.tensor_memory` makes a request of an instruction; both machines fill the rows of
operands, 32 lanes of 64 bits each.
"""

from __future__ import annotations

from warploom.asynchronous.tensors.entries import COORDINATES, ENTRY_WORDS, TARGET
from warploom.simt.lane_counts import jitable

# ---- tensor memory ------------------------------------------------------------------------------

LANES, COLUMNS, COLUMN_BYTES = 128, 512, 4
"""Tensor memory of a block (PTX ISA, "Tensor Memory"): lanes, and columns of 32 bits."""

LANE_BYTES = COLUMNS * COLUMN_BYTES
LANE_AT = 16
"""An address is the lane shifted by this, and the column."""

UNIT_COLUMNS = 32
UNITS = COLUMNS // UNIT_COLUMNS
"""Columns are allocated by units of 32."""

OWNER, RELINQUISHED, LAST_COLUMNS, ALLOCATED_AT, ALLOCATED_BY = 0, *range(UNITS, UNITS + 4)
STATE_BYTES = 512
"""Words of 8 bytes in front of the columns: for each unit 0, or 1 and the first unit of the
allocation that it belongs to; whether the block has given up its permit; how many columns it
allocated last, by which instruction, 1 added, and the number of the block."""

BLOCK_BYTES = STATE_BYTES + LANES * LANE_BYTES
"""Bytes that a block's tensor memory takes, behind its shared memory."""

# ---- requests -----------------------------------------------------------------------------------

OP, KIND, SHAPE, SCALES, FORMAT, REGISTERS, FLAGS = 0, 4, 8, 12, 16, 20, 28
"""Where the fields of a request begin: four bits each, REGISTERS eight, FLAGS the rest."""

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
"""Kinds of products, in the order of the manual."""

S32X32B, S16X64B, S16X128B, S16X256B, S16X32BX2 = range(5)
"""Shapes of loads and stores."""

C128X256B, C4X256B, C128X128B, C64X128B_02_13, C64X128B_01_23, C32X128B = range(5, 11)
"""Shapes of copies, with the warps to which they are multicast."""

PLAIN_BYTES, PACKED_6, PACKED_4 = range(3)
"""What a copy finds in shared memory: bytes; 16 numbers of 6 bits or of 4 bits in 16 bytes."""

(
    PAIR,
    A_IN_TENSOR_MEMORY,
    SPARSE,
    WEIGHT_STATIONARY,
    HALVES,
    REDUCES,
    TAKES_MINIMUM,
    ABSOLUTE_VALUES,
    PROPAGATES_NANS,
    SIGNED,
    FLOATS,
    SHIFTS_A,
) = (1 << (FLAGS + bit) for bit in range(12))
"""Flags. HALVES: `.pack::16b` or `.unpack::16b`. From REDUCES on, those of `tcgen05.ld.red`:
the minimum instead of the maximum, of absolute values, `.NaN`, and how words are compared.
SHIFTS_A: `.ashift`."""

(
    D_ROW,
    A_ROW,
    B_ROW,
    DESCRIPTOR_ROW,
    ENABLE_ROW,
    SCALE_D_ROW,
    METADATA_ROW,
    SCALE_A_ROW,
    SCALE_B_ROW,
    ZEROS_ROW,
    SHARED_ROW,
    BLOCKS_ROW,
    COLUMNS_ROW,
    DISABLED_ROW,
) = range(14)
DATA_ROWS = DISABLED_ROW + 8
"""Rows of operands. DISABLED_ROW: the first of up to eight words of `disable-output-lane`;
SHARED_ROW: an address in shared memory; COLUMNS_ROW: a number of columns."""

MOST_REGISTERS = 129
"""Registers that a load or a store has, that of a reduction among them."""

NOT_LOADED = 0x7FFFFFFF
"""What registers hold between a load that completes late and the wait for it: a NaN in single
precision. The manual says nothing of it."""


@jitable
def part(request: int, at: int) -> int:
    """Returns a field of four bits of a request."""
    return (request >> at) & 15


# ---- entries ------------------------------------------------------------------------------------

PRODUCT, TENSOR_COPY, ROW_SHIFT, ARRIVAL = range(5, 9)
"""Kinds of entries of `asynchronous.issue.queue`, behind those of copies: a product; a copy from
shared memory; a shift; the arrival at an mbarrier of a commit."""

(
    E_D,
    E_A,
    E_B,
    E_DESCRIPTOR,
    E_METADATA,
    E_SCALE_A,
    E_SCALE_B,
    E_ENABLE_D,
    E_SCALE_D,
    E_OWN,
    E_PEER,
    E_MEMORY,
) = range(12)
E_DISABLED, E_COPIED, E_ZEROS = 12, TARGET, COORDINATES
"""Words of an entry. E_OWN, E_PEER: where the shared memory begins of the block, for a pair of that
with the even rank, and of the other one; E_MEMORY: from there to its tensor memory. E_ADDS: D is
added. E_DISABLED: four words of 64 lanes each. E_ZEROS: a zero-column mask."""

assert COORDINATES > E_DISABLED + 4

BLOCK_COLUMNS = 64
"""Columns of D that are computed at once."""

MOST_DEPTH = 128
SCRATCH_B, SCRATCH_SUMS = ENTRY_WORDS, ENTRY_WORDS + BLOCK_COLUMNS * MOST_DEPTH
SCRATCH_A = SCRATCH_SUMS + BLOCK_COLUMNS
SCRATCH_AT = SCRATCH_A + MOST_DEPTH
WORK_WORDS = SCRATCH_AT + MOST_DEPTH
"""Where a product works, behind an entry: a block of B, a row of sums, a row of A and the places
along k that its elements have. Words are the bits of numbers in double precision."""
