"""Allocates and frees columns of tensor memory; an allocation that does not fit is a fault (PTX
ISA, "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit").

Each block has all 512 columns, as if it were alone on its SM, so no other block can free columns,
for which hardware would wait. `fail` records details of a fault in `issue`; a last argument of 1
states that it is not in global memory, a 0 before that, that its message has no second detail."""

from __future__ import annotations

from warploom.asynchronous.issue.access_counts import count_shared
from warploom.asynchronous.records import (
    UNITS,
    TensorMemoryState,
    WarpIssue,
)
from warploom.asynchronous.tensor_memory.checks import (
    ALLOCATION_SIZE,
    GROWING_ALLOCATION,
    NO_COLUMNS,
    NO_PERMIT,
    NOT_AN_ALLOCATION,
)
from warploom.asynchronous.tensor_memory.layout import BLOCK_BYTES, COLUMNS, LANES, UNIT_COLUMNS
from warploom.asynchronous.tensor_memory.memory import (
    column_of,
    lane_of,
    read_state,
    to_tensor_memory,
    word_offset,
    write_state,
)
from warploom.asynchronous.tensors.addresses import check_shared, fail, host_address
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.simt.lane_counts import Ints, jitable
from warploom.texture.texels import Memory, write_bytes

ADDRESS_BYTES = 4


@jitable
def memory_start(issue: WarpIssue) -> int:
    """Returns the host address of the executing block's tensor memory, which begins with its
    allocation state."""
    return issue.own_shared + to_tensor_memory(issue)


@jitable
def is_size(columns: int) -> bool:
    """Returns whether `columns` is a valid size of an allocation: a power of 2 from 32 to 512."""
    return UNIT_COLUMNS <= columns <= COLUMNS and columns & (columns - 1) == 0


@jitable
def find_free_units(memory: Memory, start: int, units: int) -> int:
    """Returns the first of `units` consecutive free units of 32 columns in the tensor memory at
    address `start`, or -1 if there are none. Only multiples of `units` are tried, so that
    allocations are aligned to their size."""
    for first_unit in range(0, UNITS, units):
        owners = 0
        for unit in range(first_unit, first_unit + units):
            owners |= read_state(memory, start, TensorMemoryState.owner + unit)
        if owners == 0:
            return first_unit
    return -1


@jitable
def allocate(
    memory: Memory, issue: WarpIssue, shared_record: Ints, lane: int, instruction: int
) -> int:
    """Executes `tcgen05.alloc` with the operands of a lane: marks columns of the block's tensor
    memory as allocated, sets them to zero, stores their address in shared memory, and counts that
    store in `shared_record`. `instruction` (an index) and the block are recorded for
    `find_unfreed`. Returns 0, or the kind of fault, its details recorded in `issue` and memory
    unchanged: an invalid size, a relinquished permit, more columns than the block's previous
    allocation, no space, or a bad shared address."""
    columns = int(issue.tensor_operands.columns[lane])
    target = int(issue.tensor_operands.shared[lane])
    start = memory_start(issue)
    # Of `fail`, 0: no second detail of the fault; 1: it is not in global memory.
    if not is_size(columns):
        return fail(issue, ALLOCATION_SIZE, columns, 0, 1)
    if read_state(memory, start, TensorMemoryState.relinquished):
        return fail(issue, NO_PERMIT, columns, 0, 1)
    last = read_state(memory, start, TensorMemoryState.last_columns)
    if last and columns > last:
        return fail(issue, GROWING_ALLOCATION, columns, last, 1)
    kind = check_shared(issue, target, ADDRESS_BYTES)
    if kind != 0:
        return kind
    units = columns // UNIT_COLUMNS
    first_unit = find_free_units(memory, start, units)
    if first_unit < 0:
        return fail(issue, NO_COLUMNS, columns, 0, 1)
    for unit in range(first_unit, first_unit + units):
        # Plus 1, as 0 marks a free unit.
        write_state(memory, start, TensorMemoryState.owner + unit, first_unit + 1)
    # The contents are undefined; zeros make results repeatable.
    for row in range(LANES):
        offset = word_offset(start, row, first_unit * UNIT_COLUMNS)
        for column in range(columns):
            write_bytes(memory, offset + 4 * column, 4, 0)
    write_state(memory, start, TensorMemoryState.last_columns, columns)
    write_state(memory, start, TensorMemoryState.allocated_at, instruction + 1)
    write_state(memory, start, TensorMemoryState.allocated_by, issue.block)
    count_shared(shared_record, ADDRESS_BYTES)
    offset = host_address(issue, target) - ORIGIN
    write_bytes(memory, offset, ADDRESS_BYTES, first_unit * UNIT_COLUMNS)
    return 0


@jitable
def free(memory: Memory, issue: WarpIssue, lane: int) -> int:
    """Executes `tcgen05.dealloc` with the operands of a lane: marks one whole allocation as free.
    Returns 0, or the kind of fault, its details recorded in `issue`: the size is invalid
    (details: the size), or address and size are not those of an allocation (details: both)."""
    address = int(issue.tensor_operands.d[lane])
    columns = int(issue.tensor_operands.columns[lane])
    # Of `fail`, 0: no second detail of the fault; 1: it is not in global memory.
    if not is_size(columns):
        return fail(issue, ALLOCATION_SIZE, columns, 0, 1)
    start, first_unit, size = memory_start(issue), column_of(address) // UNIT_COLUMNS, 0
    # Counts the units of the allocation that begins at the address: none if there is no such one.
    if column_of(address) % UNIT_COLUMNS == 0 and lane_of(address) == 0:
        for unit in range(UNITS):
            size += read_state(memory, start, TensorMemoryState.owner + unit) == first_unit + 1
    if size * UNIT_COLUMNS != columns:
        return fail(issue, NOT_AN_ALLOCATION, address, columns, 1)
    for unit in range(first_unit, first_unit + size):
        write_state(memory, start, TensorMemoryState.owner + unit, 0)
    return 0


@jitable
def relinquish(memory: Memory, issue: WarpIssue) -> int:
    """Executes `tcgen05.relinquish_alloc_permit`: records that the block may not allocate any more;
    returns 0."""
    write_state(memory, memory_start(issue), TensorMemoryState.relinquished, 1)
    return 0


@jitable
def find_unfreed(memory: Memory, start: int, stride: int, count: int, block: Ints) -> int:
    """Finds a block that has ended without freeing all its columns of tensor memory; stores its
    grid index in `block[0]`, and returns 1 plus the index of the last instruction in it that
    allocated. Returns 0 if there is none.

    `start` is the host address of the first block's shared memory, `stride` the bytes from one of
    the `count` blocks to the next; the first that leaks is reported.
    """
    for number in range(count):
        own = start + (number + 1) * stride - BLOCK_BYTES
        for unit in range(UNITS):
            if read_state(memory, own, TensorMemoryState.owner + unit):
                block[0] = read_state(memory, own, TensorMemoryState.allocated_by)
                return read_state(memory, own, TensorMemoryState.allocated_at)
    return 0
