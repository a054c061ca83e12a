"""Computes the matrix products of `tcgen05.mma`: D = A * B, or D += A * B, in tensor memory.

An element of D starts with D, or zero, and adds the products in rising k; each step is rounded once
to single precision. Integers are exact. `mma` computes the same sum (docs/decisions/0006). D is
computed in blocks of columns: a block of B is decoded once, then each row of A is multiplied with
it.
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.records import BLOCK_COLUMNS, ProductWork, RequestEntry
from warploom.asynchronous.tensor_memory.descriptors import (
    columns_of,
    depth_of,
    is_scaled,
    rows_of,
    scale_words,
    scales_along_k,
    shared_bits,
    tensor_memory_bits,
    type_of,
    unit_address,
    unit_elements,
)
from warploom.asynchronous.tensor_memory.layout import (
    A_IN_TENSOR_MEMORY,
    F16,
    I8,
    KIND,
    LANES,
    MXF4,
    PAIR,
    SCALES,
    SHIFTS_A,
    SPARSE,
    TF32,
    WEIGHT_STATIONARY,
)
from warploom.asynchronous.tensor_memory.memory import column_of, lane_of, word_offset
from warploom.asynchronous.tensor_memory.numbers import (
    E2M1,
    element_value,
    load_number,
    scale_value,
    store_number,
)
from warploom.asynchronous.tensor_memory.zero_columns import column_shift, is_zero_column
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.numbers import power
from warploom.asynchronous.tensors.requests import field
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import (
    Memory,
    float_bits,
    float_value,
    half_to_single,
    read_bytes,
    signed_value,
    single_to_half,
    write_bytes,
)

NEGATE_A, NEGATE_B, TRANSPOSE_A, TRANSPOSE_B = 13, 14, 15, 16
TYPE_A, TYPE_B, TYPE_D, SATURATE = 7, 10, 4, 3
"""Bit positions in the instruction descriptor of element types, of the flag that negates or
transposes a matrix, and of the flag that saturates integer sums."""
HALF_SUMS = 0
LARGEST, SMALLEST = (1 << 31) - 1, -(1 << 31)


# ---- lanes of D, and of A -----------------------------------------------------------------------


@jitable
def row_lane(rows: int, parts: int, row: int, part_of_d: int) -> int:
    """Returns the lane of a row of D, relative to the lane of D's address (PTX ISA, "Data Path
    Layout Organization"). `rows` is M per thread block. If the columns of D are cut into `parts`
    parts, the lanes of part `part_of_d` follow those of the parts before it; else 128 rows are in
    lanes of their own numbers, 64 rows in the lower 16 lanes of each quarter."""
    if parts > 1:
        return row + rows * part_of_d
    return row if rows == 128 else 32 * (row >> 4) + (row & 15)


@jitable
def parts_of(request: int, rows: int) -> int:
    """Returns the number of parts that the columns of D are cut into, so that they use all 128
    lanes: 128 / `rows` (M per thread block) for products of pairs and weight-stationary ones, else
    1."""
    if rows < 128 and request & (PAIR | WEIGHT_STATIONARY):
        return 128 // rows
    return 1


# ---- elements -----------------------------------------------------------------------------------


@jitable
def shared_element(
    memory: Memory, start: int, descriptor: int, transposed: bool, kind: int, type: int,
    row: int, k: int,
) -> float:  # fmt: skip
    """Returns element (`row`, `k`) of a matrix, whose rows are contiguous if `transposed`, else k,
    decoded to a double from element type `type`. It is in the shared memory at host address
    `start`, to which the matrix descriptor assigns it."""
    unit = unit_elements(kind)
    line, along = (k, row) if transposed else (row, k)
    address = start - ORIGIN + unit_address(descriptor, transposed, line, along // unit)
    width = shared_bits(kind, type)
    first_bit = (along % unit) * width
    size = 2 if width == 6 else (width + 7) // 8
    # Reading two bytes is safe for the last element of 6 bits, too: unused bytes follow it.
    bits = read_bytes(memory, address + (first_bit >> 3), size) >> (first_bit & 7)
    return element_value(bits & ((1 << width) - 1), type)


@jitable
def tensor_memory_element(
    memory: Memory, start: int, address: int, kind: int, type: int, lane_offset: int, k: int
) -> float:
    """Returns stored element number `k` of a row of A in the tensor memory at host address `start`,
    decoded to a double. The row is in the lane `lane_offset` after that of `address`. Of elements
    in a byte each, those of 6 bits are its low bits, those of 4 bits are bits 2 to 5."""
    width = tensor_memory_bits(kind)
    first_bit = k * width
    lane = lane_of(address) + lane_offset
    offset = word_offset(start, lane, column_of(address) + (first_bit >> 5))
    bits = read_bytes(memory, offset, 4) >> (first_bit & 31)
    # A 6-bit element keeps all 8 bits: `element_value` ignores those above its format.
    if type == E2M1 and width == 8:
        bits >>= 2
        width = 4
    return element_value(bits & ((1 << width) - 1), type)


@jitable
def scale_of(
    memory: Memory, start: int, address: int, identifier: int, type: int, lane: int, row: int,
    block: int, words: int,
) -> float:  # fmt: skip
    """Returns the scale (of `type` UE4M3 or UE8M0) of block number `block` along k of row `row` of
    A, or column `row` of B. It is byte `identifier` + `block` of the row's scales, which begin at
    the column of `address` in the quarter of tensor memory that contains `lane` (PTX ISA, "Scale
    Factor A ID", "Scale Factor B ID"). Each further four scales of a row are `words` columns after
    the previous four."""
    # Rows 0 to 31 have a lane each, the next 32 rows are in the same lanes one column further.
    quarter, byte = lane & ~31, identifier + block
    column = column_of(address) + (row >> 5) + words * (byte >> 2)
    offset = word_offset(start, quarter + (row & 31), column)
    return scale_value(int(np.int64(memory[offset + (byte & 3)])), type)


@jitable
def sparse_k(
    memory: Memory, start: int, entry: RequestEntry, kind: int, row: int, lane: int, k: int
) -> int:
    """Returns the position along k (0 to K - 1) of stored element number `k` of row `row` of a
    sparse A, from the metadata in tensor memory, whose column the lowest two bits of the
    instruction descriptor move. `lane` is the row's lane, relative to D's address.

    The metadata of a row are in lane `lane` plus the lane of their address modulo 32. For kinds f16
    and tf32 the metadata of two rows are in two lanes at a distance of eight, each with half of k
    (CUTLASS, `tmem_e_frg`). A field of 4 bits selects two of four elements, for tf32 one of two,
    for packed 4-bit types two pairs of four.
    """
    operands = entry.operands
    column = column_of(operands.metadata) + (operands.descriptor & 3)
    first_lane = lane_of(operands.metadata) & 31
    # `group` is the number of the 4-bit field, `choice` which of its two indices is meant (tf32
    # uses one index, whose upper bit decides), `shift` the field's position in the words of
    # metadata.
    if kind in (F16, TF32):
        group, choice = (k, 1) if kind == TF32 else (k >> 1, k & 1)
        half = 4
        lane = (lane & ~15) + 8 * (group // half) + (row & 7) + first_lane
        shift = 16 * ((row >> 3) & 1) + 4 * (group % half)
        bits = read_bytes(memory, word_offset(start, lane, column), 4) >> shift
        index = (bits >> (2 * choice)) & 3
        return 2 * group + (index >> 1) if kind == TF32 else 4 * group + index
    group, choice = (k >> 2, (k >> 1) & 1) if kind >= MXF4 else (k >> 1, k & 1)
    shift = 4 * group
    offset = word_offset(start, lane + first_lane, column + (shift >> 5))
    index = (read_bytes(memory, offset, 4) >> ((shift & 31) + 2 * choice)) & 3
    return 8 * group + 2 * index + (k & 1) if kind >= MXF4 else 4 * group + index


# ---- one block of a product ---------------------------------------------------------------------


@jitable
def load_b(
    memory: Memory,
    entry: RequestEntry,
    work: ProductWork,
    own: int,
    first_column: int,
    count: int,
    depth: int,
) -> None:
    """Decodes columns `first_column` to `first_column` + `count` - 1 of B, which begins
    `column_shift` columns after the start of its matrix, times their scales and sign, into `b` of
    the work space, which has a row of BLOCK_COLUMNS numbers for each k. Columns that the
    zero-column mask clears are zero. `own` is the host address of the shared memory of the block
    whose part of D is computed. With `.cta_group::2`, each block has half of the columns in its
    shared memory."""
    operands = entry.operands
    request, descriptor = entry.request, operands.descriptor
    kind, columns = field(request, KIND), columns_of(descriptor)
    type = type_of(kind, descriptor, TYPE_B)
    transposed = (descriptor >> TRANSPOSE_B) & 1 != 0
    sign = -1.0 if (descriptor >> NEGATE_B) & 1 else 1.0
    scales = scales_along_k(kind, descriptor, field(request, SCALES))
    words = scale_words(columns)
    half = columns // 2 if request & PAIR else columns
    shift = column_shift(entry.zeros)
    for number in range(count):
        column = first_column + number
        start = operands.own if column < half else operands.peer
        scale = sign
        zero = is_zero_column(entry.zeros, rows_of(descriptor), columns, column)
        for k in range(depth):
            # Bits 4 and 23 of the descriptor: identifier of the scales of B, type of all scales.
            # The scale changes where a new block begins along k.
            if is_scaled(kind) and k * scales % depth == 0:
                scale = sign * scale_of(
                    memory, own + operands.memory, operands.scale_b,
                    (descriptor >> 4) & 3, (descriptor >> 23) & 1, 0, column, k * scales // depth,
                    words,
                )  # fmt: skip
            value = shared_element(
                memory, start, operands.b, transposed, kind, type, column % half + shift, k
            )
            if zero:
                value = 0.0
            store_number(work.b, BLOCK_COLUMNS * k + number, scale * value)


@jitable
def load_a(
    memory: Memory,
    entry: RequestEntry,
    work: ProductWork,
    own: int,
    row: int,
    lane_offset: int,
    depth: int,
) -> int:
    """Decodes row `row` of A, times its scales and sign, into `a` of the work space, and stores the
    position along k of each element in `positions`; returns the number of elements (half of `depth`
    if A is sparse). A is in tensor memory, where `.ashift` reads each row but the last one lane
    further, or in shared memory. `own`: the shared memory of the block that has this row; its
    tensor memory is at the distance `memory`. `lane_offset`: the row's lane relative to D's
    address."""
    operands = entry.operands
    request, descriptor = entry.request, operands.descriptor
    kind, start = field(request, KIND), own + operands.memory
    type = type_of(kind, descriptor, TYPE_A)
    transposed = (descriptor >> TRANSPOSE_A) & 1 != 0
    sign = -1.0 if (descriptor >> NEGATE_A) & 1 else 1.0
    scales, scale = scales_along_k(kind, descriptor, field(request, SCALES)), sign
    a_offset = lane_offset
    # `.ashift` shifts the rows of A by one lane; the last lane has no successor.
    if request & SHIFTS_A and lane_of(operands.a) + lane_offset < LANES - 1:
        a_offset += 1
    count = depth // 2 if request & SPARSE else depth
    for number in range(count):
        k = (
            sparse_k(memory, start, entry, kind, row, lane_offset, number)
            if request & SPARSE
            else number
        )
        # Bits 29 and 23 of the descriptor: identifier and type of the scales. A block has at most
        # 128 rows of A, so the distance of their groups is that for one row.
        if is_scaled(kind):
            scale = sign * scale_of(
                memory, start, operands.scale_a,
                (descriptor >> 29) & 3, (descriptor >> 23) & 1, lane_offset, row,
                k * scales // depth, scale_words(1),
            )  # fmt: skip
        if request & A_IN_TENSOR_MEMORY:
            value = tensor_memory_element(memory, start, operands.a, kind, type, a_offset, number)
        else:
            value = shared_element(memory, own, operands.a, transposed, kind, type, row, number)
        store_number(work.a, number, scale * value)
        work.positions[number] = k
    return count


@jitable
def accumulator_value(word: int, kind: int, halves: bool) -> float:
    """Returns the value of a 32-bit word of D: an integer for kind I8, a half-precision float in
    its low half (`halves`), or a single-precision float."""
    if kind == I8:
        return float(signed_value(word, 32))
    return float_value(half_to_single(word & 0xFFFF) if halves else word)


@jitable
def accumulator_bits(value: float, kind: int, halves: bool, saturates: bool) -> int:
    """Encodes a sum as a 32-bit word of D: for kind I8 an integer that wraps, or saturates if
    `saturates`; else a float in half (`halves`, upper half zero) or single precision."""
    if kind == I8:
        exact = int(value)
        if saturates:
            exact = min(max(exact, SMALLEST), LARGEST)
        return exact & 0xFFFFFFFF
    bits = float_bits(value)
    return single_to_half(bits) if halves else bits


@jitable
def multiply_row(work: ProductWork, count: int, columns: int, exact: bool) -> None:
    """Adds the products of the row of A in the work space (`count` elements) with the block of B
    (`columns` columns) to the row of sums, in rising order of elements; an element of a sparse A
    uses the row of B at its position. Rounds each step to single precision unless sums are `exact`
    (integers)."""
    for number in range(count):
        a = load_number(work.a, number)
        # The row of B at this element's k: a sparse A skips rows.
        at = BLOCK_COLUMNS * int(work.positions[number])
        # Two loops, so that the inner one has no branch.
        if exact:
            for column in range(columns):
                total = load_number(work.sums, column) + a * load_number(work.b, at + column)
                store_number(work.sums, column, total)
        else:
            for column in range(columns):
                total = load_number(work.sums, column) + a * load_number(work.b, at + column)
                store_number(work.sums, column, np.float64(np.float32(total)))


@jitable
def multiply(memory: Memory, entry: RequestEntry, work: ProductWork) -> None:
    """Executes the matrix product in an entry: D = A * B or D += A * B, for each block of a pair
    and each part of D, in blocks of BLOCK_COLUMNS columns. `work` is overwritten after its
    `entry`."""
    operands = entry.operands
    request, descriptor = entry.request, operands.descriptor
    blocks = 2 if request & PAIR else 1
    rows, columns = rows_of(descriptor) // blocks, columns_of(descriptor)
    parts = parts_of(request, rows)
    part_columns = columns // parts
    for block in range(blocks):
        own = operands.peer if block else operands.own
        for part_of_d in range(parts):
            for first_column in range(0, part_columns, BLOCK_COLUMNS):
                count = min(BLOCK_COLUMNS, part_columns - first_column)
                multiply_block(memory, entry, work, own, block, part_of_d, first_column, count)


@jitable
def multiply_block(
    memory: Memory, entry: RequestEntry, work: ProductWork, own: int, block: int, part_of_d: int,
    first_column: int, count: int,
) -> None:  # fmt: skip
    """Computes the rows of `count` columns of D, from column `first_column` of part `part_of_d` on
    (D has `parts_of` parts), and writes them to tensor memory, except lanes that
    `disable-output-lane` disables. Decodes B and A into `work` itself. Sums begin with D times 2 to
    the power of -`scale_d` if `enable`, both operands of the entry, is not 0, else with 0. `block`
    is the rank in a pair, 0 or 1, and `own` the host address of its shared memory."""
    operands = entry.operands
    request, descriptor = entry.request, operands.descriptor
    kind, blocks = field(request, KIND), 2 if request & PAIR else 1
    depth = depth_of(kind, descriptor, request & SPARSE != 0)
    rows, columns = rows_of(descriptor) // blocks, columns_of(descriptor)
    parts, address, start = parts_of(request, rows), operands.d, own + operands.memory
    halves = kind != I8 and (descriptor >> TYPE_D) & 3 == HALF_SUMS and not is_scaled(kind)
    saturates = kind == I8 and (descriptor >> SATURATE) & 1 != 0
    adds, scale_d = operands.enable != 0, power(-operands.scale_d)
    load_b(memory, entry, work, own, part_of_d * (columns // parts) + first_column, count, depth)
    for row in range(rows):
        lane_offset = row_lane(rows, parts, row, part_of_d)
        lane = lane_of(address) + lane_offset
        # 128 bits for each block of the pair, in two words.
        if (int(operands.disabled[2 * block + (lane >> 6)]) >> (lane & 63)) & 1:
            continue
        offset = word_offset(start, lane, column_of(address) + first_column)
        for number in range(count):
            word = read_bytes(memory, offset + 4 * number, 4)
            value = accumulator_value(word, kind, halves) * scale_d if adds else 0.0
            store_number(work.sums, number, value)
        stored = load_a(memory, entry, work, own, row, lane_offset, depth)
        multiply_row(work, stored, count, kind == I8)
        for number in range(count):
            bits = accumulator_bits(load_number(work.sums, number), kind, halves, saturates)
            write_bytes(memory, offset + 4 * number, 4, bits)
