"""Records in the race detector what the tensor core of a thread accesses: the operands and results
of products (`tcgen05.mma`), copies (`cp`) and shifts, in tensor memory and in shared memory.

A `tcgen05.mma` of 128 rows and 64 columns of 32 bits writes lanes 0 to 127, columns d to d + 63, a
cell each, and reads both matrices in shared memory, 16 bytes at a time.
"""

from __future__ import annotations

from typing import Any

from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensor_memory.checks import check_copy, check_product, check_shift
from warploom.asynchronous.tensor_memory.copies import (
    ROW_SHIFT_BYTES,
    SHIFTED_ROWS,
    copied_lane,
    copied_rows,
    copied_units,
    copies_of,
)
from warploom.asynchronous.tensor_memory.descriptors import (
    UNIT_BYTES,
    SharedMatrix,
    columns_of,
    depth_of,
    is_scaled,
    lines_and_units,
    rows_of,
    tensor_memory_bits,
    unit_address,
    unit_elements,
)
from warploom.asynchronous.tensor_memory.layout import (
    A_IN_TENSOR_MEMORY,
    COLUMN_BYTES,
    COLUMNS,
    COPY,
    KIND,
    LANE_AT,
    LANES,
    MULTIPLY,
    OP,
    PAIR,
    SHAPE,
    SHIFT,
    SPARSE,
)
from warploom.asynchronous.tensor_memory.memory import (
    column_of,
    lane_of,
    own_rank,
)
from warploom.asynchronous.tensor_memory.products import (
    TRANSPOSE_A,
    TRANSPOSE_B,
    parts_of,
    row_lane,
)
from warploom.asynchronous.tensors.requests import field
from warploom.detector.cells import check_and_record, pack_access
from warploom.detector.layout import (
    AGENT_KIND_AT,
    ALL_BYTES,
    RACE,
    SHARED,
    TENSOR,
    WORK_OF_THREAD,
)
from warploom.detector.layout import LOAD as READS
from warploom.detector.layout import STORE as WRITES
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    ShadowCell,
    ThreadKnowledge,
)
from warploom.detector.shared_memory_owners import select_memory_of_rank
from warploom.detector.tensor.tensor_copies import act_as_agent, record_bytes
from warploom.simt.lane_counts import jitable

SCALED_ROWS = 32
"""Rows of A, or columns of B, whose scales are in one column of tensor memory."""


@jitable
def cell_of(state: DetectorState, lane: int, column: int) -> int:
    """Returns the index in the state of the cell (access records) of a word of tensor memory, by
    its lane and column, of the block whose memory is selected."""
    return int(
        state.current_owner_slot + state.slot_tensor + (lane * COLUMNS + column) * ShadowCell.WORDS
    )


@jitable
def record_words(
    state: DetectorState, event: DetectorEvent, op: int, lane: int, column: int, count: int
) -> None:
    """Records an access (`op`) of the current agent to `count` words of lane `lane` of tensor
    memory, in contiguous columns from `column` on: checks each for races in its cell, and stores it
    there. Overwrites the current space, size and address of the state. Nothing for lanes and
    columns beyond tensor memory, or without RACE in the state's `tools`."""
    if state.tools & RACE == 0 or lane >= LANES:
        return
    state.current_space, state.current_size = TENSOR, COLUMN_BYTES
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    access_word = pack_access(state, op, ALL_BYTES, flags)
    # A value that no other access has, so that no race is reported as "same-value".
    value = (
        state.current_time << 12 | state.current_thread << 2 | state.current_agent >> AGENT_KIND_AT
    )
    for word_column in range(column, min(column + count, COLUMNS)):
        state.current_address = lane << LANE_AT | word_column
        check_and_record(
            state,
            ShadowCell(state, cell_of(state, lane, word_column)),
            access_word,
            value & 0xFFFFFFFF,
        )


@jitable
def record_matrix_reads(
    state: DetectorState, event: DetectorEvent, memory: Any, values: Any, lane: int,
    matrix: SharedMatrix,
) -> None:  # fmt: skip
    """Records the current agent's reads of a matrix in the selected shared memory, in units of 16
    bytes."""
    lines, units = lines_and_units(matrix)
    for line in range(lines):
        for unit_number in range(units):
            unit_at = unit_address(matrix.descriptor, matrix.transposed, line, unit_number)
            record_bytes(state, event, memory, values, lane, (SHARED, READS), unit_at, UNIT_BYTES)


@jitable
def record_tensor_core_op(
    state: DetectorState, event: DetectorEvent, memory: Any, all_memory: Any, issue: WarpIssue,
    values: Any, lane: int,
) -> None:  # fmt: skip
    """Records what a product, a copy or a shift (entry in `issue`) of the current thread's tensor
    core reads and writes, in both blocks of a pair, as its next work (`works`); nothing for a
    request that faults."""
    request, rank = issue.request, own_rank(issue)
    op = field(request, OP)
    if op == MULTIPLY:
        failed = check_product(memory, issue)
    elif op == COPY:
        failed = check_copy(memory, issue)
    else:
        failed = check_shift(memory, issue)
    if failed:
        return
    # Each work is an agent of its own, as its accesses happen while its thread continues.
    ThreadKnowledge(state, state.current_lane_at).works += 1
    act_as_agent(state, WORK_OF_THREAD, ThreadKnowledge(state, state.current_lane_at).works)
    for block in range(2 if request & PAIR else 1):
        select_memory_of_rank(state, event, (rank & ~1) + block if request & PAIR else rank)
        if op == MULTIPLY:
            record_factors(state, event, all_memory, issue, values, lane)
            record_accumulator_writes(state, event, issue, block)
        elif op == COPY:
            record_copied(state, event, all_memory, issue, values, lane)
        elif op == SHIFT:
            record_shifted(state, event, issue)


@jitable
def record_factors(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, values: Any,
    lane: int,
) -> None:  # fmt: skip
    """Records what a product reads in the block whose memory is selected. Of a pair, each block
    reads half of the rows of A and half of the columns of B.

    B is read in shared memory, A there or in tensor memory: for each of its rows, the columns of
    one lane, that of the row in part 0 of D. Metadata of a sparse A (a column) and scales (a column
    for each SCALED_ROWS rows) are read in tensor memory, in all lanes. Both blocks read the scales
    of all columns of B."""
    operands, request = issue.entry.operands, issue.request
    descriptor, kind = operands.descriptor, field(request, KIND)
    pair, sparse = 2 if request & PAIR else 1, request & SPARSE
    rows, columns = rows_of(descriptor) // pair, columns_of(descriptor)
    depth, unit = depth_of(kind, descriptor, sparse != 0), unit_elements(kind)
    stored = depth // 2 if sparse else depth
    transposed = descriptor >> TRANSPOSE_B & 1 != 0
    matrix = SharedMatrix(operands.b, transposed, columns // pair, depth, unit)
    record_matrix_reads(state, event, memory, values, lane, matrix)
    if request & A_IN_TENSOR_MEMORY:
        address, columns_per_row = operands.a, stored * tensor_memory_bits(kind) // 32
        for row in range(rows):
            # Rows of A are in the lanes of the first part of D (0).
            tensor_lane = lane_of(address) + row_lane(rows, parts_of(request, rows), row, 0)
            record_words(state, event, READS, tensor_lane, column_of(address), columns_per_row)
    else:
        transposed = descriptor >> TRANSPOSE_A & 1 != 0
        matrix = SharedMatrix(operands.a, transposed, rows, stored, unit)
        record_matrix_reads(state, event, memory, values, lane, matrix)
    if sparse:
        record_column_reads(state, event, operands.metadata, 1)
    if is_scaled(kind):
        record_column_reads(state, event, operands.scale_a, (rows + SCALED_ROWS - 1) // SCALED_ROWS)
        record_column_reads(
            state, event, operands.scale_b, (columns + SCALED_ROWS - 1) // SCALED_ROWS
        )


@jitable
def record_column_reads(
    state: DetectorState, event: DetectorEvent, address: int, count: int
) -> None:
    """Records reads of `count` columns of all lanes of tensor memory, from the column of `address`
    on."""
    for tensor_lane in range(LANES):
        record_words(state, event, READS, tensor_lane, column_of(address), count)


@jitable
def record_accumulator_writes(
    state: DetectorState, event: DetectorEvent, issue: WarpIssue, block: int
) -> None:
    """Records the writes of a product to D in one block (`block`: 0, or 1 for the second of a
    pair), but for disabled lanes. D is not recorded as read even where the product adds to it: the
    write conflicts with all that a read does."""
    operands, request = issue.entry.operands, issue.request
    descriptor, address = operands.descriptor, operands.d
    rows = rows_of(descriptor) // (2 if request & PAIR else 1)
    parts = parts_of(request, rows)
    for part_of_d in range(parts):
        for row in range(rows):
            lane = lane_of(address) + row_lane(rows, parts, row, part_of_d)
            disabled = int(operands.disabled[2 * block + (lane >> 6 & 1)])
            if disabled >> (lane & 63) & 1 == 0:
                record_words(
                    state, event, WRITES, lane, column_of(address), columns_of(descriptor) // parts
                )


@jitable
def record_copied(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, values: Any,
    lane: int,
) -> None:  # fmt: skip
    """Records the accesses of a `tcgen05.cp` in the block whose memory is selected: reads of shared
    memory, and writes of each row to every lane that it is multicast to."""
    operands = issue.entry.operands
    shape, address = field(issue.request, SHAPE), operands.d
    rows, units = copied_rows(shape), copied_units(shape)
    matrix = SharedMatrix(operands.b, False, rows, units, 1)
    record_matrix_reads(state, event, memory, values, lane, matrix)
    for row in range(rows):
        for number in range(copies_of(shape)):
            tensor_lane = lane_of(address) + copied_lane(shape, row, number)
            columns_per_row = units * UNIT_BYTES // COLUMN_BYTES
            record_words(state, event, WRITES, tensor_lane, column_of(address), columns_per_row)


@jitable
def record_shifted(state: DetectorState, event: DetectorEvent, issue: WarpIssue) -> None:
    """Records the accesses of a `tcgen05.shift` in the block whose memory is selected: writes of
    each row but the last, and a read of the last one; the writes cover the reads of the others."""
    address, columns_per_row = issue.entry.operands.d, ROW_SHIFT_BYTES // COLUMN_BYTES
    for row in range(SHIFTED_ROWS):
        record_words(
            state, event, WRITES, lane_of(address) + row, column_of(address), columns_per_row
        )
    record_words(
        state, event, READS, lane_of(address) + SHIFTED_ROWS, column_of(address), columns_per_row
    )
