"""Prepares the copies of boxes of tensors (`cp.async.bulk.tensor`): from a lane's request and
operands, checks the tensor map and the addresses, and fills the entry that
`asynchronous.issue.queue` executes or queues; or records a fault.

Parameters are those of `asynchronous.issue.tensor_copies`."""

from __future__ import annotations

from warploom.asynchronous.records import LANES, MapWords, WarpIssue
from warploom.asynchronous.tensors.addresses import (
    COLUMN_OPERANDS,
    NEW_VALUES,
    NO_TENSOR_MAP,
    OPEN_HALO,
    OTHER_TENSOR,
    PACKED_RULE,
    TENSOR_ALIGNMENT,
    UNSUPPORTED_TENSOR,
    check_global,
    check_shared,
    fail,
    host_address,
    prepare_mbarrier,
    shared_base,
)
from warploom.asynchronous.tensors.boxes import (
    count_rows,
    find_row,
    moved_bytes,
    row_bytes,
    row_elements,
)
from warploom.asynchronous.tensors.entries import BOX_COPY, ORIGIN
from warploom.asynchronous.tensors.maps import (
    FIRST_PACKED,
    GLOBAL_DIM,
    IM2COL,
    IM2COL_W,
    IM2COL_W128,
    INTERLEAVE_32B,
    MAP_BYTES,
    NO_INTERLEAVE,
    STRIDE_UNIT_BITS,
    TILED,
    dim,
    is_map,
    map_interleave,
    map_mode,
    map_rank,
    map_type,
    part,
    replace,
    set_stride,
)
from warploom.asynchronous.tensors.packed import broken_rule, global_size
from warploom.asynchronous.tensors.requests import (
    FIELD,
    IM2COL_MODE,
    LOAD,
    MODE,
    NEW_SHAPE,
    OP,
    PREFETCH,
    RANK,
    WIDE_128_MODE,
    WIDE_MODE,
    field,
)
from warploom.asynchronous.tensors.wide import (
    has_open_halo,
    has_wrong_operands,
    is_wide,
    upper_corner,
)
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes

BOX_ALIGNMENT, INTERLEAVED_ALIGNMENT = 128, 256
"""Required alignment in bytes of boxes in shared memory, and of interleaved boxes (PTX ISA,
"cp.async.bulk.tensor")."""


@jitable
def load_map(memory: Memory, issue: WarpIssue, address: int) -> None:
    """Copies the words of the tensor map at a host address to the entry in `issue`."""
    map = issue.entry.map
    for word in range(MapWords.WORDS):
        map.words[map.at + word] = read_bytes(memory, address - ORIGIN + 8 * word, 8)


@jitable
def prepare_box(memory: Memory, issue: WarpIssue, allocations: Allocations, lane: int) -> int:
    """Fills the entry of a tensor copy in `issue` from a lane's operands, and checks these: the
    tensor map, the rules of packed types, im2col operands, the alignment of the box, and for loads
    the mbarrier. All rows have to be in shared memory, and their bytes that lie in the tensor in
    global memory. For a prefetch only the map and packed types are checked, and `size` is 0.
    Returns the kind of fault, its details recorded in `issue`, or 0."""
    entry, operands, request = issue.entry, issue.operands, issue.request
    op, map_address = field(request, OP), int(operands.map[lane])
    kind = check_global(issue, allocations, map_address, MAP_BYTES, False)
    if kind != 0:
        return kind
    load_map(memory, issue, map_address)
    kind = check_map(issue, map_address)
    if kind != 0:
        return kind
    entry.kind = BOX_COPY
    for axis in range(5):
        entry.coordinates[axis] = operands.coordinates[LANES * axis + lane]
    for axis in range(3):
        entry.offsets[axis] = operands.offsets[LANES * axis + lane]
    if field(request, FIELD) and not override_map(issue, lane):
        return fail(issue, NEW_VALUES, int(operands.opposite[lane]), 0, 0)
    if map_type(entry.map) >= FIRST_PACKED:
        rule = broken_rule(entry, row_elements(entry))
        if rule != 0:
            return fail(issue, PACKED_RULE, rule, map_type(entry.map), 0)
    # A prefetch has no destination and signals no mbarrier.
    if op == PREFETCH:
        entry.size = 0
        return 0
    if is_wide(field(request, MODE)):
        if has_wrong_operands(entry):
            return fail(issue, COLUMN_OPERANDS, entry.wide.halo, entry.wide.shift, 0)
        if has_open_halo(entry):
            return fail(issue, OPEN_HALO, entry.wide.halo, upper_corner(entry), 0)
    rows, size = count_rows(entry), row_bytes(entry)
    entry.size = rows * size
    shared = int(operands.shared[lane])
    interleaved = map_interleave(entry.map) == INTERLEAVE_32B
    alignment = INTERLEAVED_ALIGNMENT if interleaved else BOX_ALIGNMENT
    if shared % alignment != 0:
        return fail(issue, TENSOR_ALIGNMENT, shared, alignment, 1)
    kind = check_shared(issue, shared, rows * size)
    if kind != 0:
        return kind
    entry.target = host_address(issue, shared)
    entry.shared = shared_base(issue, shared)
    # Only the bytes of each row that lie in the tensor are accessed, so only these are checked.
    for row in range(rows):
        find_row(entry, row)
        row_start, length = entry.row_from, entry.row_to - entry.row_from
        if length > 0:
            start = entry.row_address + row_start
            kind = check_global(issue, allocations, start, length, op != LOAD)
            if kind != 0:
                return kind
    if op == LOAD:
        return prepare_mbarrier(memory, issue, lane, moved_bytes(entry))
    return 0


@jitable
def override_map(issue: WarpIssue, lane: int) -> bool:
    """Replaces values of the tensor map in `issue` by a lane's operands, for this request alone:
    the global address, and, where the request has NEW_SHAPE, sizes and strides. Returns False if 16
    does not divide the address, or, with sizes, if one of them is 0 or a coordinate is not (PTX
    ISA, "Overriding tensor property value")."""
    entry, operands = issue.entry, issue.operands
    address = int(operands.opposite[lane])
    entry.map.address = address
    if field(issue.request, FIELD) & NEW_SHAPE == 0:
        return address % 16 == 0
    valid = address % 16 == 0
    high = int(operands.value[lane])
    for axis in range(map_rank(entry.map)):
        # Sizes have 8 bits, also in a register of 16.
        size = int(operands.sizes[LANES * axis + lane]) & 255
        valid &= size != 0 and entry.coordinates[axis] == 0
        replace(entry.map, GLOBAL_DIM, axis, size)
        if axis > 0:
            low = int(operands.strides[LANES * (axis - 1) + lane])
            units = low | ((high >> 4 * (axis - 1)) & 15) << 32
            set_stride(entry.map, axis, units << STRIDE_UNIT_BITS)
    return valid


@jitable
def has_slices(issue: WarpIssue) -> bool:
    """Returns whether the channels of an interleaved tensor (its whole innermost dimension, in
    bytes of global memory, not the box's) exceed one slice: 32 bytes for INTERLEAVE_32B, else 16;
    False without interleave. That is unsupported: no field of a tensor map gives the distance
    between slices."""
    entry = issue.entry
    layout = map_interleave(entry.map)
    if layout == NO_INTERLEAVE:
        return False
    slice_bytes = 32 if layout == INTERLEAVE_32B else 16
    return global_size(map_type(entry.map), dim(entry.map, 0)) > slice_bytes


@jitable
def map_mode_of(mode: int) -> int:
    """Returns the mode that a tensor map must have (TILED, IM2COL, ...) for an instruction of mode
    `mode` (TILE, IM2COL_MODE, ...). Gathers use tiled maps."""
    if mode == WIDE_MODE:
        return IM2COL_W
    if mode == WIDE_128_MODE:
        return IM2COL_W128
    return IM2COL if mode == IM2COL_MODE else TILED


@jitable
def check_map(issue: WarpIssue, map_address: int) -> int:
    """Returns the kind of fault if a request cannot use the tensor map in `issue`, or 0: the map
    is not aligned to 64 bytes, invalid, of another rank or mode than the instruction, has several
    slices, or is an im2col map without pixels. `map_address` is its host address, which is recorded
    in `issue` with the fault."""
    entry, request = issue.entry, issue.request
    if map_address % 64 != 0 or not is_map(entry.map):
        return fail(issue, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    wanted = map_mode_of(field(request, MODE))
    rank, mode = map_rank(entry.map), map_mode(entry.map)
    if rank != field(request, RANK) or mode != wanted:
        # The message shows the map's rank and mode, which share the word for the size.
        return fail(issue, OTHER_TENSOR, map_address, rank | mode << 4, 0)
    if has_slices(issue):
        return fail(issue, UNSUPPORTED_TENSOR, map_address, MAP_BYTES, 0)
    # Bits 16 to 31 of `column`: pixels per column.
    if mode != TILED and part(entry.map, MapWords.column, 16, 16) == 0:
        return fail(issue, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    return 0
