"""Issues the instructions of the Tensor Memory Accelerator (TMA) in the lanes of a warp: checks
their operands, counts their accesses, and executes or queues them.

`issue_copies` executes one warp instruction, lane by lane; both machines call it. It returns 0, or
1 with the fault of the lowest lane recorded in `scratch`. Parameters: `memory`: the host's memory
as bytes, from address ORIGIN on; `data`: rows of operands, 32 lanes each, and `request`: the
encoded instruction (`asynchronous.tensors.requests`); `scratch`: the entry of the request, then
fault and machine state (`IssueScratch`); `allocations`: of global memory;
`global_record`, `shared_record`: counters of accesses; `plan`: the launch's schedule
(`simt.schedule_layout`); `queue`: requests that complete late; `work`: space for an entry and a
product.
"""

from __future__ import annotations

from warploom.asynchronous.issue.queue import append, execute_request, free_queue_slot
from warploom.asynchronous.records import (
    LANES,
    CopyOperands,
    IssueScratch,
    MapWords,
    ProductWork,
    RequestQueue,
)
from warploom.asynchronous.tensors.addresses import (
    BULK_ALIGNMENT,
    COLUMN_OPERANDS,
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
    BOX_COPY,
    BULK_GROUP,
    BYTES,
    NO_GROUP,
    ORIGIN,
    REDUCTION,
)
from warploom.asynchronous.tensors.maps import (
    FIRST_PACKED,
    IM2COL,
    IM2COL_W,
    IM2COL_W128,
    INTERLEAVE_32B,
    MAP_BYTES,
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
    CANCEL,
    COPY_BYTES,
    COPY_MAP,
    FIELD,
    GROUPED,
    IM2COL_MODE,
    LOAD,
    MODE,
    OP,
    PAIR,
    PREFETCH,
    RANK,
    REDUCE,
    REDUCE_BYTES,
    REPLACE,
    STORE,
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
from warploom.simt.address_windows import SHARED_WINDOW, WINDOW_SIZE
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, read_bytes, write_bytes

BOX_ALIGNMENT, INTERLEAVED_ALIGNMENT, BULK_UNIT = 128, 256, 16
"""Required alignment in bytes of boxes in shared memory, of interleaved boxes, and of bulk copies
(PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk")."""


@jitable
def issue_copies(
    memory: Memory, data_words: Ints, scratch_words: Ints, allocations: Allocations,
    global_record: Ints, shared_record: Ints, schedule: Ints, queue_words: Ints, work_words: Ints,
    mask: int, request: int,
) -> int:  # fmt: skip
    """Issues a request in each lane of `mask`, from the lowest: checks and counts it, then executes
    it or, if the warp's operations complete late, queues it (for each block of its multicast mask),
    changes a tensor map, or, for a prefetch, does nothing more. Counts a change of memory in `plan`
    for each, of a multicast for each block. Returns 0, or 1 with the kind of fault recorded in
    `scratch`: lanes before the fault have taken effect."""
    data, scratch = CopyOperands(data_words, 0), IssueScratch(scratch_words, 0)
    queue, work = RequestQueue(queue_words, 0), ProductWork(work_words, 0)
    entry, plan = scratch.entry, Plan(schedule, 0)
    scratch.fault_kind = 0
    late = completes_late(plan, scratch.block, scratch.warp)
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        op = field(request, OP)
        scratch.fault_lane = lane
        entry.request = request
        entry.thread = scratch.first_thread + lane
        entry.groups = BULK_GROUP if field(request, GROUPED) else NO_GROUP
        entry.barrier = 0
        blocks = int(data.blocks[lane])
        if op in (REPLACE, COPY_MAP):
            kind = change_map(memory, data, scratch, allocations, lane, request)
        elif op == CANCEL:
            kind = prepare_response(memory, data, scratch, lane)
            if kind == 0:
                fill_response(scratch, plan)
                # A multicast to all blocks is ALL_BLOCKS, which exceeds the cluster.
                blocks &= (1 << plan.cluster) - 1
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, data, scratch, allocations, lane, request)
        else:
            kind = prepare_box(memory, data, scratch, allocations, lane, request)
        if kind != 0:
            scratch.fault_kind = kind
            return 1
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            count_box(scratch, global_record, shared_record)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            count_bytes(scratch, global_record, shared_record)
        elif op == CANCEL:
            count_shared(shared_record, RESPONSE_BYTES)
        if op in (REPLACE, COPY_MAP, PREFETCH):
            plan.changes += 1
        elif blocks != 0:
            kind = multicast(memory, scratch, plan, queue, work, late, blocks)
            if kind != 0:
                scratch.fault_kind = kind
                return 1
        else:
            complete_or_queue(memory, scratch, plan, queue, work, late)
    return 0


@jitable
def complete_or_queue(
    memory: Memory,
    scratch: IssueScratch,
    plan: Plan,
    queue: RequestQueue,
    work: ProductWork,
    late: bool,
) -> None:
    """Executes the request in `scratch` at once, or, if `late` (its warp's asynchronous operations
    complete at the wait for them), appends it to the queue, from which it first completes the
    oldest entry if it is full. Either way counts a change of memory in `plan`, as deadlock
    detection demands."""
    entry = scratch.entry
    if late:
        free_queue_slot(memory, queue, work)
        append(queue, entry)
    else:
        execute_request(memory, entry, work)
    plan.changes += 1


@jitable
def multicast(
    memory: Memory,
    scratch: IssueScratch,
    plan: Plan,
    queue: RequestQueue,
    work: ProductWork,
    late: bool,
    blocks: int,
) -> int:
    """Issues the copy or the commit's arrival in `scratch` once for each block in the mask `blocks`
    (bit: rank in the cluster), at the same offsets in shared memory as in the executing block:
    executed at once, or queued if `late`. With PAIR a box's mbarrier is that of the first block of
    each pair. Returns 0, or, if a block is not running, the kind of fault, with its rank recorded
    in `scratch`; blocks of lower rank have been served then. Changes `target`, `barrier` and
    `shared` of the entry."""
    entry = scratch.entry
    target, barrier = entry.target, entry.barrier
    own = entry.shared
    # A multicast mask has 16 bits, one for each block of the largest cluster.
    for rank in range(16):
        if (blocks >> rank) & 1:
            base = block_base(scratch, rank)
            if base == 0:
                # 0: no size to show; 1: the fault is in shared memory.
                return fail(scratch, NO_BLOCK, rank, 0, 1)
            moved = base - own
            entry.target, entry.barrier = target + moved, barrier + moved
            if entry.kind == BOX_COPY and field(entry.request, PAIR):
                offset = (barrier - scratch.cluster_shared) % scratch.shared_stride
                entry.barrier = block_base(scratch, rank & ~1) + offset
            entry.shared = base
            complete_or_queue(memory, scratch, plan, queue, work, late)
    return 0


# ---- boxes of tensors ---------------------------------------------------------------------------


@jitable
def load_map(memory: Memory, scratch: IssueScratch, address: int) -> None:
    """Copies the words of the tensor map at a host address to the entry in `scratch`."""
    map = scratch.entry.map
    for word in range(MapWords.WORDS):
        map.words[map.at + word] = read_bytes(memory, address - ORIGIN + 8 * word, 8)


@jitable
def prepare_box(
    memory: Memory, data: CopyOperands, scratch: IssueScratch, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Fills the entry of a tensor copy in `scratch` from a lane's operands, and checks its tensor
    map, rules of packed types and im2col operands, the alignment of the box, all rows in shared
    memory, their bytes in the tensor in global memory, and for loads the mbarrier. For a prefetch
    only the map and packed types are checked, and `size` is 0. Returns the kind of fault, its
    details recorded in `scratch`, or 0."""
    entry = scratch.entry
    op, map_address = field(request, OP), int(data.map[lane])
    kind = check_global(scratch, allocations, map_address, MAP_BYTES, False)
    if kind != 0:
        return kind
    load_map(memory, scratch, map_address)
    kind = check_map(scratch, request, map_address)
    if kind != 0:
        return kind
    entry.kind = BOX_COPY
    for axis in range(5):
        entry.coordinates[axis] = data.coordinates[LANES * axis + lane]
    for axis in range(3):
        entry.offsets[axis] = data.offsets[LANES * axis + lane]
    if map_type(entry.map) >= FIRST_PACKED:
        rule = broken_rule(entry, row_elements(entry))
        if rule != 0:
            return fail(scratch, PACKED_RULE, rule, map_type(entry.map), 0)
    # A prefetch has no destination and signals no mbarrier.
    if op == PREFETCH:
        entry.size = 0
        return 0
    if is_wide(field(request, MODE)):
        if has_wrong_operands(entry):
            return fail(scratch, COLUMN_OPERANDS, entry.wide.halo, entry.wide.shift, 0)
        if has_open_halo(entry):
            return fail(scratch, OPEN_HALO, entry.wide.halo, upper_corner(entry), 0)
    rows, size = count_rows(entry), row_bytes(entry)
    entry.size = rows * size
    shared = int(data.shared[lane])
    interleaved = map_interleave(entry.map) == INTERLEAVE_32B
    alignment = INTERLEAVED_ALIGNMENT if interleaved else BOX_ALIGNMENT
    if shared % alignment != 0:
        return fail(scratch, TENSOR_ALIGNMENT, shared, alignment, 1)
    kind = check_shared(scratch, shared, rows * size)
    if kind != 0:
        return kind
    entry.target = host_address(scratch, shared)
    entry.shared = shared_base(scratch, shared)
    # Only the bytes of each row that lie in the tensor are accessed, so only these are checked.
    for row in range(rows):
        find_row(entry, row)
        first, length = entry.row_from, entry.row_to - entry.row_from
        if length > 0:
            start = entry.row_address + first
            kind = check_global(scratch, allocations, start, length, op != LOAD)
            if kind != 0:
                return kind
    if op == LOAD:
        return prepare_mbarrier(memory, data, scratch, lane, moved_bytes(entry))
    return 0


@jitable
def has_slices(scratch: IssueScratch) -> bool:
    """Returns whether the channels of an interleaved tensor (its whole innermost dimension, in
    bytes of global memory, not the box's) exceed one slice: 32 bytes for INTERLEAVE_32B, else 16;
    False without interleave. That is unsupported: no field of a tensor map gives the distance
    between slices."""
    entry = scratch.entry
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
def check_map(scratch: IssueScratch, request: int, map_address: int) -> int:
    """Returns the kind of fault if a request cannot use the tensor map in `scratch`, or 0: the map
    is not aligned to 64 bytes, invalid, of another rank or mode than the instruction, has several
    slices, or is an im2col map without pixels. `map_address` is its host address, which is recorded
    in `scratch` with the fault."""
    entry = scratch.entry
    if map_address % 64 != 0 or not is_map(entry.map):
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    wanted = map_mode_of(field(request, MODE))
    rank, mode = map_rank(entry.map), map_mode(entry.map)
    if rank != field(request, RANK) or mode != wanted:
        # The message shows the map's rank and mode, which share the word for the size.
        return fail(scratch, OTHER_TENSOR, map_address, rank | mode << 4, 0)
    if has_slices(scratch):
        return fail(scratch, UNSUPPORTED_TENSOR, map_address, MAP_BYTES, 0)
    # Bits 16 to 31 of `column`: pixels per column.
    if mode != TILED and part(entry.map, MapWords.column, 16, 16) == 0:
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    return 0


@jitable
def count_box(scratch: IssueScratch, global_record: Ints, shared_record: Ints) -> None:
    """Counts the access of the box in `scratch`: one request to global memory, with the sectors and
    lines of those parts of its rows that lie in the tensor, and its bytes in shared memory (none
    for a prefetch)."""
    entry = scratch.entry
    global_record[REQUESTS] += 1
    for row in range(count_rows(entry)):
        find_row(entry, row)
        start = entry.row_address
        if entry.row_to > entry.row_from:
            count_global(global_record, start + entry.row_from, start + entry.row_to)
    if entry.size > 0:
        count_shared(shared_record, entry.size)


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
    memory: Memory, data: CopyOperands, scratch: IssueScratch, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Fills the entry of a bulk copy or reduction of contiguous bytes in `scratch` from a lane's
    operands, and checks alignment (16 bytes), both accesses and the mbarrier. With GROUPED the
    operand `shared` is the source, and no mbarrier is signalled; else it is the destination. The
    other operand is global if the request's MODE is not 0, else shared. `byte_mask` gets that of a
    copy with FIELD, else ALL_BYTES. Returns the kind of fault, its details recorded in `scratch`,
    or 0."""
    entry = scratch.entry
    op, size = field(request, OP), int(data.size[lane])
    shared, other = int(data.shared[lane]), int(data.other[lane])
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
    entry.kind = REDUCTION if op == REDUCE_BYTES else BYTES
    entry.size, entry.byte_mask = size, ALL_BYTES
    if op == COPY_BYTES and field(request, FIELD):
        entry.byte_mask = int(data.value[lane])
    shared_address = host_address(scratch, shared)
    entry.shared = shared_base(scratch, shared)
    entry.source, entry.target = (
        (shared_address, other_address) if grouped else (other_address, shared_address)
    )
    if grouped:
        return 0
    return prepare_mbarrier(memory, data, scratch, lane, size)


@jitable
def count_bytes(scratch: IssueScratch, global_record: Ints, shared_record: Ints) -> None:
    """Counts the bulk copy in `scratch`: a request to global memory if one operand is global, and
    one to shared memory (one even if both operands are shared). Nothing for size 0."""
    entry = scratch.entry
    size, request = entry.size, entry.request
    if size == 0:
        return
    if field(request, MODE):
        global_address = entry.target if field(request, GROUPED) else entry.source
        global_record[REQUESTS] += 1
        count_global(global_record, global_address, global_address + size)
    count_shared(shared_record, size)


# ---- tensor maps --------------------------------------------------------------------------------


@jitable
def change_map(
    memory: Memory, data: CopyOperands, scratch: IssueScratch, allocations: Allocations,
    lane: int, request: int,
) -> int:  # fmt: skip
    """Executes `tensormap.replace` (sets a field of a map in shared or global memory), or
    `tensormap.cp_fenceproxy` (copies a map from shared to global memory), at once, with the
    operands of a lane. `request` is the encoded instruction: OP states which of the two, FIELD and
    AXIS what is replaced. Returns 0, or the kind of fault, its details recorded in `scratch`: a bad
    address, a misaligned map in global memory, or no map to replace a field of."""
    entry = scratch.entry
    map_address = int(data.map[lane])
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
        source = int(data.shared[lane])
        kind = check_shared(scratch, source, MAP_BYTES)
        if kind != 0:
            return kind
        source = host_address(scratch, source)
    load_map(memory, scratch, source)
    if address % 64 != 0 and not in_shared:
        return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    if field(request, OP) == REPLACE:
        if not is_map(entry.map):
            return fail(scratch, NO_TENSOR_MAP, map_address, MAP_BYTES, 1 if in_shared else 0)
        value = int(data.value[lane])
        replace(entry.map, field(request, FIELD), field(request, AXIS), value)
    map = entry.map
    for word in range(MapWords.WORDS):
        write_bytes(memory, address - ORIGIN + 8 * word, 8, int(map.words[map.at + word]))
    return 0
