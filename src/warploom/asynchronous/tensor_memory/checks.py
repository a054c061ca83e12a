"""Checks the operands of `tcgen05` instructions (tensor memory and its matrix products) when they
are issued (PTX ISA, "tcgen05.mma", "Restrictions", "tcgen05.ld").

A check returns the kind of fault, or 0. `fail` records in `issue` the operand at fault, a second
detail or 0, and 1, as the fault is not in global memory. `start` is the host address of a block's
tensor memory.
"""

from __future__ import annotations

from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensor_memory.copies import (
    ROW_SHIFT_BYTES,
    SHIFTED_ROWS,
    copied_lane,
    copied_rows,
    copied_units,
    copies_of,
)
from warploom.asynchronous.tensor_memory.descriptors import (
    ADDRESS_MASK,
    UNIT_BYTES,
    SharedMatrix,
    columns_of,
    depth_of,
    is_deep,
    is_descriptor,
    is_scaled,
    lines_and_units,
    rows_of,
    scale_words,
    scales_along_k,
    tensor_memory_bits,
    type_of,
    unit_address,
    unit_elements,
)
from warploom.asynchronous.tensor_memory.layout import (
    A_IN_TENSOR_MEMORY,
    COLUMN_BYTES,
    F8F6F4,
    F16,
    I8,
    KIND,
    LANES,
    PAIR,
    SCALES,
    SHAPE,
    SHIFTS_A,
    SPARSE,
    WEIGHT_STATIONARY,
)
from warploom.asynchronous.tensor_memory.memory import (
    WARP_LANES,
    WARPS,
    column_of,
    first_missing,
    lane_of,
)
from warploom.asynchronous.tensor_memory.numbers import BFLOAT, E5M2
from warploom.asynchronous.tensor_memory.products import (
    TRANSPOSE_A,
    TRANSPOSE_B,
    TYPE_A,
    TYPE_B,
    TYPE_D,
    parts_of,
    row_lane,
)
from warploom.asynchronous.tensor_memory.zero_columns import column_shift, most_shift
from warploom.asynchronous.tensors.addresses import OUT_OF_BOUNDS, fail
from warploom.asynchronous.tensors.requests import field
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory

(
    NO_SUCH_LANE,
    NOT_ALLOCATED,
    ALLOCATION_SIZE,
    NO_PERMIT,
    GROWING_ALLOCATION,
    NO_COLUMNS,
    NOT_AN_ALLOCATION,
    OTHER_LANES,
    NO_MATRIX_DESCRIPTOR,
    NO_SUCH_PRODUCT,
    STILL_ALLOCATED,
    NO_PAIR,
) = range(39, 51)
"""Kinds of fault, numbered as in `machine.faults.fault_errors.FaultKind`."""

SHAPE_OF_D, TYPE_OF_A, TYPE_OF_B, TYPE_OF_SUMS, SPARSITY, DEPTH, TRANSPOSITION, ASHIFT, ZEROS = (
    range(9)
)
"""Results of `find_descriptor_error`: the invalid part of an instruction descriptor."""


@jitable
def check_columns(memory: Memory, issue: WarpIssue, start: int, address: int, count: int) -> int:
    """Returns NOT_ALLOCATED if one of the `count` columns from the column of `address` on is not
    allocated or does not exist, with `address` and the first such column recorded in `issue`;
    else 0. `start` is the host address of the tensor memory."""
    missing = first_missing(memory, start, column_of(address), count)
    if missing >= 0:
        # 1: the fault is not in global memory.
        return fail(issue, NOT_ALLOCATED, address, missing, 1)
    return 0


@jitable
def check_last_lane(issue: WarpIssue, address: int, last: int) -> int:
    """Returns NO_SUCH_LANE if the lane `last` lanes after that of `address` is not one of the LANES
    (128) of tensor memory, with `address` and the number of that lane recorded in `issue`; else
    0."""
    lane = lane_of(address) + last
    return fail(issue, NO_SUCH_LANE, address, lane, 1) if lane >= LANES else 0


@jitable
def check_lanes(issue: WarpIssue, address: int, count: int) -> int:
    """Returns 0 if the `count` lanes from the lane of `address` on are all in the quarter of tensor
    memory that the warp can access: 32 lanes, by its index modulo 4. Otherwise returns the kind of
    fault, with `address` and the first lane of the quarter recorded in `issue`."""
    quarter_start = WARP_LANES * (issue.warp % WARPS)
    lane = lane_of(address)
    if lane < quarter_start or lane + count > quarter_start + WARP_LANES:
        # 1: the fault is not in global memory.
        return fail(issue, OTHER_LANES, address, quarter_start, 1)
    return 0


@jitable
def check_matrix(issue: WarpIssue, matrix: SharedMatrix) -> int:
    """Returns the kind of fault, recorded with its details in `issue`, if a matrix descriptor is
    invalid (`is_descriptor`) or a 16-byte unit of its matrix ends beyond the shared memory of a
    block; else 0."""
    # Of `fail`, 0: no second detail of the fault; 1: it is not in global memory.
    if not is_descriptor(matrix.descriptor):
        return fail(issue, NO_MATRIX_DESCRIPTOR, matrix.descriptor, 0, 1)
    lines, units = lines_and_units(matrix)
    for line in range(lines):
        for position in range(units):
            offset = unit_address(matrix.descriptor, matrix.transposed, line, position)
            if offset + UNIT_BYTES > issue.shared_bytes:
                return fail(issue, OUT_OF_BOUNDS, offset & ADDRESS_MASK, UNIT_BYTES, 1)
    return 0


@jitable
def is_valid_shape(request: int, rows: int, columns: int) -> bool:
    """Returns whether a product can have M `rows` and N `columns` (PTX ISA, "Matrix Shape").
    Weight-stationary: M is 32, 64 or 128, N 64, 128 or 256. Else N is at most 256: a multiple of 16
    with M 128 (of 8 if block-scaled) or, for `.cta_group::2`, with M 128 or 256; a multiple of 8
    with M 64, which block-scaled products lack (for I8 beyond 32, of 16)."""
    if request & WEIGHT_STATIONARY:
        return rows in (32, 64, 128) and columns in (64, 128, 256)
    if columns == 0 or columns > 256:
        return False
    if request & PAIR:
        return rows in (128, 256) and columns % 16 == 0
    # Kinds up to I8 are not block-scaled. With I8, N beyond 32 is a multiple of 16.
    if rows == 64 and field(request, KIND) <= I8:
        whole = field(request, KIND) != I8 or columns <= 32 or columns % 16 == 0
        return columns % 8 == 0 and whole
    return rows == 128 and columns % (8 if is_scaled(field(request, KIND)) else 16) == 0


@jitable
def find_descriptor_error(request: int, descriptor: int) -> int:
    """Returns the first invalid part of an instruction descriptor for the product that `request`
    encodes, or -1; `check_product` makes a fault of it. In this order: ASHIFT with M below 128;
    types of A and B (also f16 with bf16); M and N; the sparsity bit; K of 96 that is sparse or of a
    pair with M below 256 (DEPTH); the type of D; transposed elements of less than 8 bits.
    Block-scaled products have no checks after DEPTH."""
    if request & SHIFTS_A and rows_of(descriptor) < 128:
        return ASHIFT
    kind = field(request, KIND)
    type = type_of(kind, descriptor, TYPE_A)
    if type < 0:
        return TYPE_OF_A
    type_b = type_of(kind, descriptor, TYPE_B)
    if type_b < 0:
        return TYPE_OF_B
    # A product cannot mix f16 and bf16.
    if kind == F16 and type != type_b:
        return TYPE_OF_B
    if not is_valid_shape(request, rows_of(descriptor), columns_of(descriptor)):
        return SHAPE_OF_D
    # Bit 2 of the descriptor: A is sparse.
    if (descriptor >> 2) & 1 != (1 if request & SPARSE else 0):
        return SPARSITY
    if is_scaled(kind):
        # With `.cta_group::2`, K of 96 requires M of 256.
        pair_of_64 = request & PAIR and rows_of(descriptor) != 256
        return DEPTH if is_deep(kind, descriptor) and (request & SPARSE or pair_of_64) else -1
    # Codes of the type of D: 0 for f16, 1 for f32, 2 for s32.
    sums = (descriptor >> TYPE_D) & 3
    allowed = sums == 2 if kind == I8 else sums == 1 or (sums == 0 and kind in (F16, F8F6F4))
    if not allowed or (kind == F16 and type == BFLOAT and sums == 0):
        return TYPE_OF_SUMS
    # Elements of less than 8 bits cannot be transposed.
    transposed = ((descriptor >> TRANSPOSE_A) & 1 and type > E5M2) or (
        (descriptor >> TRANSPOSE_B) & 1 and type_b > E5M2
    )
    return TRANSPOSITION if kind == F8F6F4 and transposed else -1


@jitable
def product_bytes(issue: WarpIssue, of_a: bool) -> int:
    """Returns the bytes of A (`of_a`) or B that a product reads from shared memory, of both blocks
    of a pair; of a sparse A half as many. `issue` holds the entry with the instruction
    descriptor."""
    request = issue.request
    descriptor, kind = issue.entry.operands.descriptor, field(request, KIND)
    depth = depth_of(kind, descriptor, request & SPARSE != 0)
    if of_a and request & SPARSE:
        depth //= 2
    rows = rows_of(descriptor) if of_a else columns_of(descriptor)
    return rows * depth * UNIT_BYTES // unit_elements(kind)


@jitable
def scale_columns(rows: int, scales: int, identifier: int) -> int:
    """Returns the number of columns of tensor memory from the first to the last scale of `rows`
    rows, with `scales` scales per row, one byte each, of which the first is byte `identifier` of
    its column."""
    # Four scales of one byte share a column.
    further = (identifier + scales - 1) >> 2
    return (rows + 31) // 32 + scale_words(rows) * further


@jitable
def check_product(memory: Memory, issue: WarpIssue) -> int:
    """Checks all operands of the product whose entry is in `issue`: instruction descriptor, shift
    of the zero-column mask, columns and lanes of D, matrices A and B, metadata of a sparse A,
    scales; of a pair those of the first block. Returns the kind of fault, its details recorded in
    `issue`, or 0."""
    entry, request = issue.entry, issue.request
    operands = entry.operands
    descriptor, kind = operands.descriptor, field(request, KIND)
    wrong, shift = find_descriptor_error(request, descriptor), column_shift(entry.zeros)
    if wrong < 0 and shift > most_shift(rows_of(descriptor)):
        wrong = ZEROS
    if wrong >= 0:
        return fail(issue, NO_SUCH_PRODUCT, descriptor, wrong, 1)
    pair = 2 if request & PAIR else 1
    # Each block of a pair has half of the rows of D and A, and half of the columns of B.
    rows, columns, sparse = rows_of(descriptor) // pair, columns_of(descriptor), request & SPARSE
    start = operands.own + operands.memory
    depth, unit = depth_of(kind, descriptor, sparse != 0), unit_elements(kind)
    stored = depth // 2 if sparse else depth
    parts = parts_of(request, rows)
    last_lane = row_lane(rows, parts, rows - 1, parts - 1)
    fault = check_columns(memory, issue, start, operands.d, columns // parts)
    if fault == 0:
        fault = check_last_lane(issue, operands.d, last_lane)
    if fault == 0:
        transposed = (descriptor >> TRANSPOSE_B) & 1 != 0
        extent = columns // pair + shift
        fault = check_matrix(issue, SharedMatrix(operands.b, transposed, extent, depth, unit))
    if fault == 0 and request & A_IN_TENSOR_MEMORY:
        extent = stored * tensor_memory_bits(kind) // 32
        fault = check_columns(memory, issue, start, operands.a, extent)
        if fault == 0:
            fault = check_last_lane(issue, operands.a, last_lane)
    elif fault == 0:
        transposed = (descriptor >> TRANSPOSE_A) & 1 != 0
        fault = check_matrix(issue, SharedMatrix(operands.a, transposed, rows, stored, unit))
    if fault == 0 and sparse:
        fault = check_columns(memory, issue, start, operands.metadata, 1)
        if fault == 0:
            # Of the address of metadata, the lane in its quarter counts (`products.sparse_k`).
            quarter = lane_of(operands.metadata) // WARP_LANES * WARP_LANES
            fault = check_last_lane(issue, operands.metadata, last_lane - quarter)
    if fault == 0 and is_scaled(kind):
        scales = scales_along_k(kind, descriptor, field(request, SCALES))
        # Bits 29 and 4 of the descriptor: identifiers of the scales of A and B.
        extent = scale_columns(rows, scales, (descriptor >> 29) & 3)
        fault = check_columns(memory, issue, start, operands.scale_a, extent)
        extent = scale_columns(columns, scales, (descriptor >> 4) & 3)
        if fault == 0:
            fault = check_columns(memory, issue, start, operands.scale_b, extent)
    return fault


@jitable
def check_shift(memory: Memory, issue: WarpIssue) -> int:
    """Checks the lanes and columns that a shift (`tcgen05.shift`) reads and writes, of a pair those
    of the first block; `issue` has the entry of its operands. Returns 0, or the kind of fault,
    its details recorded in `issue` (`fail`)."""
    operands = issue.entry.operands
    # The last lane that moves is read from the one after it.
    kind = check_last_lane(issue, operands.d, SHIFTED_ROWS)
    if kind != 0:
        return kind
    start, columns = operands.own + operands.memory, ROW_SHIFT_BYTES // COLUMN_BYTES
    return check_columns(memory, issue, start, operands.d, columns)


@jitable
def check_copy(memory: Memory, issue: WarpIssue) -> int:
    """Checks the operands of a copy from shared to tensor memory: lanes and columns that it writes,
    and the source matrix; of a pair those of the first block. `issue` has the encoded instruction
    (`program.requests.tensor_memory`) and the entry of its operands. Returns 0, or the kind of
    fault, whose address and rule are recorded in `issue` (`fail`)."""
    operands = issue.entry.operands
    shape, address = field(issue.request, SHAPE), operands.d
    start, units = operands.own + operands.memory, copied_units(shape)
    last = copied_lane(shape, copied_rows(shape) - 1, copies_of(shape) - 1)
    kind = check_last_lane(issue, address, last)
    if kind == 0:
        kind = check_columns(memory, issue, start, address, 4 * units)
    if kind != 0:
        return kind
    # With one element per unit, the depth is the number of units.
    return check_matrix(issue, SharedMatrix(operands.b, False, copied_rows(shape), units, 1))
