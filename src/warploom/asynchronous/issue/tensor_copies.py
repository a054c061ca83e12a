"""Issues the instructions of the Tensor Memory Accelerator (TMA) in the lanes of a warp: checks
their operands, counts their accesses, and executes or queues them.

`issue_copies` executes one warp instruction, lane by lane; both machines call it. It returns 0, or
1 with the fault of the lowest lane recorded in `scratch`. Parameters: `memory`: the host's memory
as bytes, from address ORIGIN on; `data`: rows of operands, 32 lanes each, and `request`: the
encoded instruction (`asynchronous.tensors.requests`); `scratch`: the entry of the request, then
fault and machine state (`asynchronous.tensors.entries`); `allocations`: of global memory;
`global_record`, `shared_record`: counters of accesses; `plan`: the launch's schedule
(`simt.schedule_layout`); `queue`: requests that complete late; `work`: space for an entry and a
product.
"""

from __future__ import annotations

from warploom.asynchronous.issue.queue import append, execute_request, free_queue_slot
from warploom.asynchronous.tensors.addresses import (
    BULK_ALIGNMENT,
    COLUMN_OPERANDS,
    LANES,
    NO_BLOCK,
    NO_TENSOR_MAP,
    OPEN_HALO,
    OTHER_TENSOR,
    PACKED_RULE,
    TENSOR_ALIGNMENT,
    UNSUPPORTED_TENSOR,
    block_base,
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
from warploom.asynchronous.tensors.cancel import RESPONSE_BYTES, fill_response, prepare_response
from warploom.asynchronous.tensors.entries import (
    ALL_BYTES,
    BARRIER,
    BLOCK,
    BOX_COPY,
    BULK_GROUP,
    BYTES,
    CLUSTER_SHARED,
    COORDINATES,
    FAULT_KIND,
    FAULT_LANE,
    FIRST_THREAD,
    GROUPS,
    KIND,
    NO_GROUP,
    OFFSETS,
    ORIGIN,
    REDUCTION,
    REQUEST,
    ROW_ADDRESS,
    ROW_FROM,
    ROW_TO,
    SHARED,
    SHARED_STRIDE,
    SIZE,
    SOURCE,
    TARGET,
    THREAD,
    WARP,
)
from warploom.asynchronous.tensors.maps import (
    COLUMN,
    FIRST_PACKED,
    IM2COL,
    IM2COL_W,
    IM2COL_W128,
    INTERLEAVE_32B,
    MAP_BYTES,
    MAP_WORDS,
    NO_INTERLEAVE,
    TILED,
    dim,
    is_map,
    map_interleave,
    map_mode,
    map_rank,
    map_type,
    part,
    replace,
)
from warploom.asynchronous.tensors.packed import broken_rule, global_size
from warploom.asynchronous.tensors.requests import (
    AXIS,
    BLOCKS_ROW,
    CANCEL,
    COORDINATE_ROW,
    COPY_BYTES,
    COPY_MAP,
    FIELD,
    GLOBAL_ROW,
    GROUPED,
    IM2COL_MODE,
    LOAD,
    MAP_ROW,
    MODE,
    OFFSET_ROW,
    OP,
    PAIR,
    PREFETCH,
    RANK,
    REDUCE,
    REDUCE_BYTES,
    REPLACE,
    SHARED_ROW,
    SIZE_ROW,
    STORE,
    VALUE_ROW,
    WIDE_128_MODE,
    WIDE_MODE,
    field,
)
from warploom.asynchronous.tensors.wide import (
    HALO,
    OFFSET,
    has_open_halo,
    has_wrong_operands,
    is_wide,
    upper_corner,
)
from warploom.cost.fields import (
    BYTES_MOVED,
    BYTES_REQUESTED,
    LINES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    TRANSACTIONS_32,
    WAVEFRONTS,
)
from warploom.simt.address_windows import (
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import CHANGES, CLUSTER
from warploom.texture.texels import Memory, read_bytes, write_bytes

BOX_ALIGNMENT, INTERLEAVED_ALIGNMENT, BULK_UNIT = 128, 256, 16
"""Required alignment in bytes of boxes in shared memory, of interleaved boxes, and of bulk copies
(PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk")."""


@jitable
def issue_copies(
    memory: Memory, data: Ints, scratch: Ints, allocations: Allocations,
    global_record: Ints, shared_record: Ints, plan: Ints, queue: Ints, work: Ints,
    mask: int, request: int,
) -> int:  # fmt: skip
    """Issues a request in each lane of `mask`, from the lowest: checks and counts it, then executes
    it or queues it (to each block of its multicast mask), changes a tensor map, or, for a prefetch,
    does nothing more. Each adds to the changes of memory in `plan`. Returns 0, or 1 with the kind
    of fault recorded in `scratch`: lanes before the fault have taken effect."""
    scratch[FAULT_KIND] = 0
    late = completes_late(plan, int(scratch[BLOCK]), int(scratch[WARP]))
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        op = field(request, OP)
        scratch[FAULT_LANE] = lane
        scratch[REQUEST] = request
        scratch[THREAD] = int(scratch[FIRST_THREAD]) + lane
        scratch[GROUPS] = BULK_GROUP if field(request, GROUPED) else NO_GROUP
        scratch[BARRIER] = 0
        blocks = int(data[LANES * BLOCKS_ROW + lane])
        if op in (REPLACE, COPY_MAP):
            kind = change_map(memory, data, scratch, allocations, lane, request)
        elif op == CANCEL:
            kind = prepare_response(memory, data, scratch, lane)
            if kind == 0:
                fill_response(scratch, plan)
                # A multicast to all blocks is ALL_BLOCKS, which exceeds the cluster.
                blocks &= (1 << int(plan[CLUSTER])) - 1
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, data, scratch, allocations, lane, request)
        else:
            kind = prepare_box(memory, data, scratch, allocations, lane, request)
        if kind != 0:
            scratch[FAULT_KIND] = kind
            return 1
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            count_box(scratch, global_record, shared_record)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            count_bytes(scratch, global_record, shared_record)
        elif op == CANCEL:
            count_shared(shared_record, RESPONSE_BYTES)
        if op in (REPLACE, COPY_MAP, PREFETCH):
            plan[CHANGES] += 1
        elif blocks != 0:
            kind = multicast(memory, scratch, plan, queue, work, late, blocks)
            if kind != 0:
                scratch[FAULT_KIND] = kind
                return 1
        else:
            complete_or_queue(memory, scratch, plan, queue, work, late)
    return 0


@jitable
def complete_or_queue(
    memory: Memory,
    scratch: Ints,
    plan: Ints,
    queue: Ints,
    work: Ints,
    late: bool,
) -> None:
    """Executes the request in `scratch` at once, or appends it to the queue if `late`: its warp's
    asynchronous operations complete at the wait for them. Either way counts a change of memory in
    `plan`, as deadlock detection demands."""
    if late:
        free_queue_slot(memory, queue, work)
        append(queue, scratch)
    else:
        execute_request(memory, scratch, work)
    plan[CHANGES] += 1


@jitable
def multicast(
    memory: Memory,
    scratch: Ints,
    plan: Ints,
    queue: Ints,
    work: Ints,
    late: bool,
    blocks: int,
) -> int:
    """Issues the copy or the commit's arrival in `scratch` once for each block in the mask `blocks`
    (bit: rank in the cluster), at the same offsets in shared memory as in the executing block:
    executed at once, or queued if `late`. With PAIR a box's mbarrier is that of the first block of
    each pair. Returns 0, or, if a block is not running, the kind of fault, with its rank recorded
    in `scratch`; blocks of lower rank have been served then."""
    target, barrier = int(scratch[TARGET]), int(scratch[BARRIER])
    own = int(scratch[SHARED])
    # A multicast mask has 16 bits, one for each block of the largest cluster.
    for rank in range(16):
        if (blocks >> rank) & 1:
            base = block_base(scratch, rank)
            if base == 0:
                # 0: no size to show; 1: the fault is in shared memory.
                return fail(scratch, NO_BLOCK, rank, 0, 1)
            moved = base - own
            scratch[TARGET], scratch[BARRIER] = target + moved, barrier + moved
            if scratch[KIND] == BOX_COPY and field(int(scratch[REQUEST]), PAIR):
                offset = (barrier - int(scratch[CLUSTER_SHARED])) % int(scratch[SHARED_STRIDE])
                scratch[BARRIER] = block_base(scratch, rank & ~1) + offset
            scratch[SHARED] = base
            complete_or_queue(memory, scratch, plan, queue, work, late)
    return 0


# ---- boxes of tensors ---------------------------------------------------------------------------


@jitable
def load_map(memory: Memory, scratch: Ints, address: int) -> None:
    """Copies the 16 words of the tensor map at a host address to the begin of the entry in
    `scratch`."""
    for word in range(MAP_WORDS):
        scratch[word] = read_bytes(memory, address - ORIGIN + 8 * word, 8)


@jitable
def prepare_box(
    memory: Memory, data: Ints, scratch: Ints, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Fills the entry of a tensor copy in `scratch` from a lane's operands, and checks its tensor
    map, rules of packed types and im2col operands, the alignment of the box, all rows in shared and
    global memory, and for loads the mbarrier. For a prefetch only the map and packed types are
    checked, and SIZE is 0. Returns the kind of fault, its details recorded in `scratch`, or 0."""
    op, map_address = field(request, OP), int(data[LANES * MAP_ROW + lane])
    kind = check_global(scratch, allocations, map_address, MAP_BYTES, False)
    if kind != 0:
        return kind
    load_map(memory, scratch, map_address)
    kind = check_map(scratch, request, map_address)
    if kind != 0:
        return kind
    scratch[KIND] = BOX_COPY
    for axis in range(5):
        scratch[COORDINATES + axis] = data[LANES * (COORDINATE_ROW + axis) + lane]
    for axis in range(3):
        scratch[OFFSETS + axis] = data[LANES * (OFFSET_ROW + axis) + lane]
    if map_type(scratch) >= FIRST_PACKED:
        rule = broken_rule(scratch, row_elements(scratch))
        if rule != 0:
            return fail(scratch, PACKED_RULE, rule, map_type(scratch), 0)
    # A prefetch has no destination and signals no mbarrier.
    if op == PREFETCH:
        scratch[SIZE] = 0
        return 0
    if is_wide(field(request, MODE)):
        if has_wrong_operands(scratch):
            return fail(scratch, COLUMN_OPERANDS, int(scratch[HALO]), int(scratch[OFFSET]), 0)
        if has_open_halo(scratch):
            return fail(scratch, OPEN_HALO, int(scratch[HALO]), upper_corner(scratch), 0)
    rows, size = count_rows(scratch), row_bytes(scratch)
    scratch[SIZE] = rows * size
    shared = int(data[LANES * SHARED_ROW + lane])
    interleaved = map_interleave(scratch) == INTERLEAVE_32B
    alignment = INTERLEAVED_ALIGNMENT if interleaved else BOX_ALIGNMENT
    if shared % alignment != 0:
        return fail(scratch, TENSOR_ALIGNMENT, shared, alignment, 1)
    kind = check_shared(scratch, shared, rows * size)
    if kind != 0:
        return kind
    scratch[TARGET] = host_address(scratch, shared)
    scratch[SHARED] = shared_base(scratch, shared)
    # Only the bytes of each row that lie in the tensor are accessed, so only these are checked.
    for row in range(rows):
        find_row(scratch, row)
        first, length = int(scratch[ROW_FROM]), int(scratch[ROW_TO]) - int(scratch[ROW_FROM])
        if length > 0:
            start = int(scratch[ROW_ADDRESS]) + first
            kind = check_global(scratch, allocations, start, length, op != LOAD)
            if kind != 0:
                return kind
    if op == LOAD:
        return prepare_mbarrier(memory, data, scratch, lane, moved_bytes(scratch))
    return 0


@jitable
def has_slices(scratch: Ints) -> bool:
    """Returns whether the channels of an interleaved tensor (its whole innermost dimension, in
    bytes of global memory, not the box's) exceed one slice: 32 bytes for INTERLEAVE_32B, else 16;
    False without interleave. That is unsupported: no field of a tensor map gives the distance
    between slices."""
    layout = map_interleave(scratch)
    if layout == NO_INTERLEAVE:
        return False
    slice_bytes = 32 if layout == INTERLEAVE_32B else 16
    return global_size(map_type(scratch), dim(scratch, 0)) > slice_bytes


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
def check_map(scratch: Ints, request: int, map_address: int) -> int:
    """Returns the kind of fault if a request cannot use the tensor map in `scratch`, or 0: the map
    is not aligned to 64 bytes, invalid, of another rank or mode than the instruction, has several
    slices, or is an im2col map without pixels. `map_address` is its host address, which is recorded
    in `scratch` with the fault."""
    if map_address % 64 != 0 or not is_map(scratch):
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    wanted = map_mode_of(field(request, MODE))
    rank, mode = map_rank(scratch), map_mode(scratch)
    if rank != field(request, RANK) or mode != wanted:
        # The message shows the map's rank and mode, which share the word for the size.
        return fail(scratch, OTHER_TENSOR, map_address, rank | mode << 4, 0)
    if has_slices(scratch):
        return fail(scratch, UNSUPPORTED_TENSOR, map_address, MAP_BYTES, 0)
    # Bits 16 to 31 of COLUMN: pixels per column.
    if mode != TILED and part(scratch, COLUMN, 16, 16) == 0:
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    return 0


@jitable
def count_box(scratch: Ints, global_record: Ints, shared_record: Ints) -> None:
    """Counts the access of the box in `scratch`: one request to global memory, with the sectors and
    lines of those parts of its rows that lie in the tensor, and its bytes in shared memory (none
    for a prefetch)."""
    global_record[REQUESTS] += 1
    for row in range(count_rows(scratch)):
        find_row(scratch, row)
        start = int(scratch[ROW_ADDRESS])
        if scratch[ROW_TO] > scratch[ROW_FROM]:
            count_global(
                global_record, start + int(scratch[ROW_FROM]), start + int(scratch[ROW_TO])
            )
    if scratch[SIZE] > 0:
        count_shared(shared_record, int(scratch[SIZE]))


@jitable
def count_global(record: Ints, start: int, end: int) -> None:
    """Adds the bytes of global memory from `start` up to `end` (not equal) to the counters of a
    record: their 32-byte sectors to SECTORS, TRANSACTIONS and TRANSACTIONS_32, and 32 bytes for
    each to BYTES_MOVED; their 128-byte lines to LINES; and to BYTES_REQUESTED. The caller counts
    the request."""
    sectors = ((end - 1) >> 5) - (start >> 5) + 1
    record[SECTORS] += sectors
    record[LINES] += ((end - 1) >> 7) - (start >> 7) + 1
    record[TRANSACTIONS] += sectors
    record[TRANSACTIONS_32] += sectors
    record[BYTES_REQUESTED] += end - start
    record[BYTES_MOVED] += 32 * sectors


@jitable
def count_shared(record: Ints, size: int) -> None:
    """Adds one request for `size` bytes of shared memory to the counters of a record:
    BYTES_REQUESTED and BYTES_MOVED, and a wavefront and a transaction for each 128 bytes begun; no
    bank conflicts."""
    record[REQUESTS] += 1
    record[BYTES_REQUESTED] += size
    record[BYTES_MOVED] += size
    record[TRANSACTIONS] += (size + 127) >> 7
    record[WAVEFRONTS] += (size + 127) >> 7


# ---- contiguous bytes ---------------------------------------------------------------------------


@jitable
def prepare_bytes(
    memory: Memory, data: Ints, scratch: Ints, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Fills the entry of a bulk copy or reduction of contiguous bytes in `scratch` from a lane's
    operands, and checks alignment (16 bytes), both accesses and the mbarrier. With GROUPED the
    operand SHARED_ROW is the source, and no mbarrier is signalled; else it is the destination. The
    other operand is global if the request's MODE is not 0, else shared. OFFSETS gets the byte mask
    of a copy with FIELD, else ALL_BYTES. Returns the kind of fault, its details recorded in
    `scratch`, or 0."""
    op, size = field(request, OP), int(data[LANES * SIZE_ROW + lane])
    shared, other = int(data[LANES * SHARED_ROW + lane]), int(data[LANES * GLOBAL_ROW + lane])
    if size % BULK_UNIT or shared % BULK_UNIT or other % BULK_UNIT:
        return fail(scratch, BULK_ALIGNMENT, size, BULK_UNIT, 1)
    kind = check_shared(scratch, shared, size)
    if kind != 0:
        return kind
    grouped, is_global = field(request, GROUPED) != 0, field(request, MODE)
    if is_global:
        kind = check_global(scratch, allocations, other, size, grouped)
        other_address = other
    else:
        kind = check_shared(scratch, other, size)
        other_address = host_address(scratch, other)
    if kind != 0:
        return kind
    scratch[KIND] = REDUCTION if op == REDUCE_BYTES else BYTES
    scratch[SIZE], scratch[OFFSETS] = size, ALL_BYTES
    if op == COPY_BYTES and field(request, FIELD):
        scratch[OFFSETS] = int(data[LANES * VALUE_ROW + lane])
    shared_address = host_address(scratch, shared)
    scratch[SHARED] = shared_base(scratch, shared)
    scratch[SOURCE], scratch[TARGET] = (
        (shared_address, other_address) if grouped else (other_address, shared_address)
    )
    if grouped:
        return 0
    return prepare_mbarrier(memory, data, scratch, lane, size)


@jitable
def count_bytes(scratch: Ints, global_record: Ints, shared_record: Ints) -> None:
    """Counts the bulk copy in `scratch`: a request to global memory if one operand is global, and
    one to shared memory (one even if both operands are shared). Nothing for size 0."""
    size, request = int(scratch[SIZE]), int(scratch[REQUEST])
    if size == 0:
        return
    if field(request, MODE):
        global_address = int(scratch[TARGET]) if field(request, GROUPED) else int(scratch[SOURCE])
        global_record[REQUESTS] += 1
        count_global(global_record, global_address, global_address + size)
    count_shared(shared_record, size)


# ---- tensor maps --------------------------------------------------------------------------------


@jitable
def change_map(
    memory: Memory, data: Ints, scratch: Ints, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Executes `tensormap.replace` (sets a field of a map in shared or global memory), or
    `tensormap.cp_fenceproxy` (copies a map from shared to global memory), at once, with the
    operands of a lane. Returns 0, or the kind of fault, its details recorded in `scratch`: a bad
    address, a misaligned map in global memory, or no map to replace a field of."""
    map_address = int(data[LANES * MAP_ROW + lane])
    in_shared = SHARED_WINDOW <= map_address < SHARED_WINDOW + WINDOW_SIZE
    if in_shared:
        kind = check_shared(scratch, map_address, MAP_BYTES)
    else:
        kind = check_global(scratch, allocations, map_address, MAP_BYTES, True)
    if kind != 0:
        return kind
    address = host_address(scratch, map_address) if in_shared else map_address
    source = address
    if field(request, OP) == COPY_MAP:
        source = int(data[LANES * SHARED_ROW + lane])
        kind = check_shared(scratch, source, MAP_BYTES)
        if kind != 0:
            return kind
        source = host_address(scratch, source)
    load_map(memory, scratch, source)
    if address % 64 != 0 and not in_shared:
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    if field(request, OP) == REPLACE:
        if not is_map(scratch):
            return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 1 if in_shared else 0)
        value = int(data[LANES * VALUE_ROW + lane])
        replace(scratch, field(request, FIELD), field(request, AXIS), value)
    for word in range(MAP_WORDS):
        write_bytes(memory, address - ORIGIN + 8 * word, 8, int(scratch[word]))
    return 0
