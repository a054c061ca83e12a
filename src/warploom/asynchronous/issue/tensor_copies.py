"""Issues the instructions of the Tensor Memory Accelerator (TMA) in the lanes of a warp: checks
their operands, counts their accesses, and executes or queues them.

`issue_copies` executes one warp instruction, lane by lane; both machines call it. It returns 0, or
1 with the fault of the lowest lane recorded in `issue`. Parameters: `memory`: the host's memory
as bytes, from address ORIGIN on; `issue`: operands, encoded instruction, entry of the request,
fault and machine state (`WarpIssue`), then space for an entry and a product; `allocations`: of
global memory; `global_record`, `shared_record`: counters of accesses; `plan`: the launch's schedule
(`simt.schedule_layout`); `queue`: requests that complete late.
"""

from __future__ import annotations

from warploom.asynchronous.issue.access_counts import count_box, count_bytes, count_shared
from warploom.asynchronous.issue.box_copies import load_map, prepare_box
from warploom.asynchronous.issue.queue import append, execute_request, free_queue_slot
from warploom.asynchronous.records import (
    LANES,
    MapWords,
    RequestQueue,
    WarpIssue,
    work_of,
)
from warploom.asynchronous.tensors.addresses import (
    BULK_ALIGNMENT,
    MAP_STRIDE,
    NO_BLOCK,
    NO_TENSOR_MAP,
    block_base,
    check_global,
    check_shared,
    fail,
    host_address,
    prepare_mbarrier,
    shared_base,
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
    GLOBAL_STRIDE,
    MAP_BYTES,
    STRIDE_UNIT,
    TILED,
    begin_map,
    is_blank,
    is_map,
    replace,
)
from warploom.asynchronous.tensors.requests import (
    AXIS,
    CANCEL,
    COPY_BYTES,
    COPY_MAP,
    FIELD,
    GROUPED,
    LOAD,
    MODE,
    OP,
    PAIR,
    PREFETCH,
    REDUCE,
    REDUCE_BYTES,
    REPLACE,
    STORE,
    field,
)
from warploom.simt.address_windows import SHARED_WINDOW, WINDOW_SIZE
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, write_bytes

BULK_UNIT = 16
"""Required alignment in bytes of bulk copies (PTX ISA, "cp.async.bulk")."""


@jitable
def issue_copies(
    memory: Memory, issue_words: Ints, allocations: Allocations, global_record: Ints,
    shared_record: Ints, schedule: Ints, queue_words: Ints,
) -> int:  # fmt: skip
    """Issues a request in each lane of its mask, from the lowest: checks and counts it; then
    executes it or, if the warp's operations complete late, queues it (a multicast once for each
    block of its mask). A change of a tensor map is executed at once; a prefetch is only checked and
    counted. Counts a change of memory in `plan` for each request, of a multicast for each block.
    Returns 0, or 1 with the kind of fault recorded in `issue`: lanes before the fault have taken
    effect."""
    issue, queue = WarpIssue(issue_words, 0), RequestQueue(queue_words, 0)
    entry, plan, request = issue.entry, Plan(schedule, 0), issue.request
    issue.fault_kind = 0
    late = completes_late(plan, issue.block, issue.warp)
    op = field(request, OP)
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 == 0:
            continue
        issue.fault_lane = lane
        entry.request = request
        entry.thread = issue.first_thread + lane
        entry.groups = BULK_GROUP if field(request, GROUPED) else NO_GROUP
        entry.barrier = 0
        blocks = int(issue.operands.blocks[lane])
        if op in (REPLACE, COPY_MAP):
            kind = change_map(memory, issue, allocations, lane)
        elif op == CANCEL:
            kind = prepare_response(memory, issue, lane)
            if kind == 0:
                fill_response(issue, plan)
                # A multicast to all blocks is ALL_BLOCKS, which exceeds the cluster.
                blocks &= (1 << plan.cluster) - 1
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, issue, allocations, lane)
        else:
            kind = prepare_box(memory, issue, allocations, lane)
        if kind != 0:
            issue.fault_kind = kind
            return 1
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            count_box(issue, global_record, shared_record)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            count_bytes(issue, global_record, shared_record)
        elif op == CANCEL:
            count_shared(shared_record, RESPONSE_BYTES)
        if op in (REPLACE, COPY_MAP, PREFETCH):
            plan.changes += 1
        elif blocks != 0:
            kind = multicast(memory, issue, plan, queue, late, blocks)
            if kind != 0:
                issue.fault_kind = kind
                return 1
        else:
            complete_or_queue(memory, issue, plan, queue, late)
    return 0


@jitable
def complete_or_queue(
    memory: Memory, issue: WarpIssue, plan: Plan, queue: RequestQueue, late: bool
) -> None:
    """Executes the request in `issue` at once, or, if `late` (its warp's asynchronous operations
    complete at the wait for them), appends it to the queue, from which it first completes the
    oldest entry if it is full. Either way counts a change of memory in `plan`, as deadlock
    detection demands."""
    entry = issue.entry
    if late:
        free_queue_slot(memory, queue, work_of(issue))
        append(queue, entry)
    else:
        execute_request(memory, entry, work_of(issue))
    plan.changes += 1


@jitable
def multicast(
    memory: Memory, issue: WarpIssue, plan: Plan, queue: RequestQueue, late: bool, blocks: int
) -> int:
    """Issues the operation that the entry in `issue` has for the executing block, a copy, a
    response of `try_cancel` or the arrival of a `tcgen05.commit`, once for each block in the mask
    `blocks` (bit: rank in the cluster), from the lowest rank on: with its target and mbarrier at
    the same offsets in that block's shared memory. With PAIR the mbarrier of a tensor copy is that
    of the even rank of each pair. Each is executed at once or, if `late`, queued, and counts as a
    change of memory in `plan` (`complete_or_queue`).

    Returns 0, or, if a block is not running, the kind of fault, with the block's rank recorded in
    `issue`; blocks of lower rank have been served then. `target`, `barrier` and `shared` of the
    entry remain those of the last block."""
    entry = issue.entry
    target, barrier = entry.target, entry.barrier
    own = entry.shared
    # A multicast mask has 16 bits, one for each block of the largest cluster.
    for rank in range(16):
        if (blocks >> rank) & 1:
            base = block_base(issue, rank)
            if base == 0:
                # 0: no size to show; 1: the fault is in shared memory.
                return fail(issue, NO_BLOCK, rank, 0, 1)
            moved = base - own
            entry.target, entry.barrier = target + moved, barrier + moved
            if entry.kind == BOX_COPY and field(entry.request, PAIR):
                offset = (barrier - issue.cluster_shared) % issue.shared_stride
                entry.barrier = block_base(issue, rank & ~1) + offset
            entry.shared = base
            complete_or_queue(memory, issue, plan, queue, late)
    return 0


# ---- contiguous bytes ---------------------------------------------------------------------------


@jitable
def prepare_bytes(memory: Memory, issue: WarpIssue, allocations: Allocations, lane: int) -> int:
    """Fills the entry of a bulk copy or reduction of contiguous bytes in `issue` from a lane's
    operands, and checks alignment (16 bytes), both accesses and the mbarrier. With GROUPED the
    operand `shared` is the source, and no mbarrier is signalled; else it is the destination. The
    other operand is global if the request's MODE is not 0, else shared. `byte_mask` gets that of a
    copy with FIELD, else ALL_BYTES. Returns the kind of fault, its details recorded in `issue`,
    or 0."""
    entry, operands, request = issue.entry, issue.operands, issue.request
    op, size = field(request, OP), int(operands.size[lane])
    shared, opposite = int(operands.shared[lane]), int(operands.opposite[lane])
    if size % BULK_UNIT or shared % BULK_UNIT or opposite % BULK_UNIT:
        return fail(issue, BULK_ALIGNMENT, size, BULK_UNIT, 1)
    kind = check_shared(issue, shared, size)
    if kind != 0:
        return kind
    grouped, is_global = field(request, GROUPED) != 0, field(request, MODE)
    if is_global:
        kind = check_global(issue, allocations, opposite, size, grouped)
        opposite_address = opposite
    else:
        kind = check_shared(issue, opposite, size)
        opposite_address = host_address(issue, opposite)
    if kind != 0:
        return kind
    entry.kind = REDUCTION if op == REDUCE_BYTES else BYTES
    entry.size, entry.byte_mask = size, ALL_BYTES
    if op == COPY_BYTES and field(request, FIELD):
        entry.byte_mask = int(operands.value[lane])
    shared_address = host_address(issue, shared)
    entry.shared = shared_base(issue, shared)
    entry.source, entry.target = (
        (shared_address, opposite_address) if grouped else (opposite_address, shared_address)
    )
    if grouped:
        return 0
    return prepare_mbarrier(memory, issue, lane, size)


# ---- tensor maps --------------------------------------------------------------------------------


@jitable
def change_map(memory: Memory, issue: WarpIssue, allocations: Allocations, lane: int) -> int:
    """Executes `tensormap.replace` (sets a field of a map in shared or global memory), or
    `tensormap.cp_fenceproxy` (copies a map from shared to global memory), at once, with the
    operands of a lane. Of the encoded instruction OP states which of the two, FIELD and
    AXIS what is replaced. Returns 0, or the kind of fault, its details recorded in `issue`: a bad
    address, a misaligned map in global memory, no map to replace a field of, or a stride that is no
    multiple of STRIDE_UNIT bytes."""
    entry, operands, request = issue.entry, issue.operands, issue.request
    map_address = int(operands.map[lane])
    in_shared = SHARED_WINDOW <= map_address < SHARED_WINDOW + WINDOW_SIZE
    if in_shared:
        kind = check_shared(issue, map_address, MAP_BYTES)
    else:
        kind = check_global(issue, allocations, map_address, MAP_BYTES, True)
    if kind != 0:
        return kind
    address = host_address(issue, map_address) if in_shared else map_address
    source = address
    if field(request, OP) == COPY_MAP:
        source = int(operands.shared[lane])
        kind = check_shared(issue, source, MAP_BYTES)
        if kind != 0:
            return kind
        source = host_address(issue, source)
    load_map(memory, issue, source)
    if address % 64 != 0 and not in_shared:
        return fail(issue, NO_TENSOR_MAP, map_address, MAP_BYTES, 0)
    if field(request, OP) == REPLACE:
        if is_blank(entry.map):
            begin_map(entry.map, TILED)
        if not is_map(entry.map):
            return fail(issue, NO_TENSOR_MAP, map_address, MAP_BYTES, 1 if in_shared else 0)
        value = int(operands.value[lane])
        if field(request, FIELD) == GLOBAL_STRIDE and value % STRIDE_UNIT != 0:
            return fail(issue, MAP_STRIDE, value, 0, 0)
        replace(entry.map, field(request, FIELD), field(request, AXIS), value)
    map = entry.map
    for word in range(MapWords.WORDS):
        write_bytes(memory, address - ORIGIN + 8 * word, 8, int(map.words[map.at + word]))
    return 0
