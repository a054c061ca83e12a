"""Issues the `tcgen05` instructions of a warp (tensor memory, fifth-generation tensor cores):
checks their operands, counts their accesses, and executes or queues them.

`issue_tensor_memory` executes one warp instruction; both machines call it. It returns 0, or 1 with
the fault recorded in `issue`. Products, copies, shifts and commits complete in the order in which a
thread issues them. Under schedules that complete late (`simt.product_groups`), they complete when a
thread waits for the mbarrier of a later commit, and stores when their warp waits for them
(`asynchronous.issue.late_stores`). Parameters are those of `asynchronous.issue.tensor_copies`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.issue.access_counts import count_shared
from warploom.asynchronous.issue.allocation import allocate, free, relinquish
from warploom.asynchronous.issue.late_stores import allocate_store, register_word_offset, write_word
from warploom.asynchronous.issue.tensor_copies import complete_or_queue, multicast
from warploom.asynchronous.mbarrier import is_valid
from warploom.asynchronous.records import (
    LANES,
    RequestQueue,
    WarpIssue,
)
from warploom.asynchronous.tensor_memory.checks import (
    NO_PAIR,
    check_columns,
    check_copy,
    check_lanes,
    check_product,
    check_shift,
    product_bytes,
)
from warploom.asynchronous.tensor_memory.copies import copied_rows, copied_units
from warploom.asynchronous.tensor_memory.descriptors import UNIT_BYTES
from warploom.asynchronous.tensor_memory.fragments import columns_in, lanes_in
from warploom.asynchronous.tensor_memory.layout import (
    A_IN_TENSOR_MEMORY,
    ALLOC,
    ARRIVAL,
    COMMIT,
    COPY,
    FREE,
    HALVES,
    LOAD,
    MULTIPLY,
    OP,
    PAIR,
    PRODUCT,
    REDUCES,
    REGISTERS,
    RELINQUISH,
    ROW_SHIFT,
    SHAPE,
    STORE,
    TENSOR_COPY,
)
from warploom.asynchronous.tensor_memory.memory import own_rank, to_tensor_memory
from warploom.asynchronous.tensor_memory.reductions import reduce_words
from warploom.asynchronous.tensors.addresses import (
    INVALID_MBARRIER,
    block_base,
    check_shared,
    fail,
    host_address,
    shared_base,
)
from warploom.asynchronous.tensors.entries import NO_GROUP, ORIGIN
from warploom.asynchronous.tensors.requests import field
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, read_bytes

Values = npt.NDArray[np.uint32]


@jitable
def issue_tensor_memory(
    memory: Memory, issue_words: Ints, values: Values, shared_record: Ints, schedule: Ints,
    queue_words: Ints, instruction: int,
) -> int:  # fmt: skip
    """Issues a `tcgen05` request: `alloc`, `dealloc`, `relinquish_alloc_permit`, loads and stores
    once per warp, with the operands of the first lane in the mask; products, copies, shifts and
    commits in each lane of it. With PAIR, a missing peer block is a fault (`has_peer`).
    `values` are the registers of a load or store, 32 lanes each; `instruction` is the index of the
    instruction in its program. Counts changes of memory in `plan`. Returns 0, or 1 with the fault
    recorded in `issue`; lanes before it have taken effect."""
    issue, queue = WarpIssue(issue_words, 0), RequestQueue(queue_words, 0)
    plan, request = Plan(schedule, 0), issue.request
    issue.fault_kind = 0
    op = field(request, OP)
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 == 0:
            continue
        issue.fault_lane = lane
        # Of `fail`, 0: no second detail of the fault; 1: it is not in global memory.
        if request & PAIR and not has_peer(issue, plan, op):
            kind = fail(issue, NO_PAIR, own_rank(issue), 0, 1)
        elif op == ALLOC:
            kind = allocate(memory, issue, shared_record, lane, instruction)
        elif op == FREE:
            kind = free(memory, issue, lane)
        elif op == RELINQUISH:
            kind = relinquish(memory, issue)
        elif op in (LOAD, STORE):
            kind = transfer_registers(memory, issue, values, plan, queue, lane)
        else:
            kind = issue_lane(memory, issue, shared_record, plan, queue, lane)
        if kind != 0:
            issue.fault_kind = kind
            return 1
        plan.changes += 1
        # Operations up to STORE are executed once per warp, with the operands of its first lane.
        if op <= STORE:
            return 0
    return 0


@jitable
def has_peer(issue: WarpIssue, plan: Plan, op: int) -> bool:
    """Returns whether the block has a peer for `.cta_group::2`: the block whose rank in the cluster
    differs in the lowest bit. For ALLOC, FREE, RELINQUISH and COMMIT the cluster must have that
    rank; for all other operations, which access the peer's memory, the peer must also be
    running."""
    peer = own_rank(issue) ^ 1
    if op in (ALLOC, FREE, RELINQUISH, COMMIT):
        return peer < plan.cluster
    return block_base(issue, peer) != 0


# ---- loads and stores ---------------------------------------------------------------------------


@jitable
def transfer_registers(
    memory: Memory, issue: WarpIssue, values: Values, plan: Plan, queue: RequestQueue, lane: int
) -> int:
    """Executes `tcgen05.ld` or `tcgen05.st` of a warp, with the operands of lane `lane`: loads
    tensor memory into `values`, or stores `values` in it. A store that completes late is appended
    to the list of deferred stores in `queue` instead; `plan`, the launch's, decides that by its
    policy. Returns the kind of fault, or 0."""
    address, request = int(issue.tensor_operands.d[lane]), issue.request
    split = int(issue.tensor_operands.a[lane])
    start = issue.own_shared + to_tensor_memory(issue)
    kind = check_move(memory, issue, start, address, split)
    if kind != 0:
        return kind
    if field(request, OP) == LOAD:
        load_registers(memory, values, start, address, split, request)
    elif completes_late(plan, issue.block, issue.warp):
        store = allocate_store(memory, queue)
        store.request, store.thread = request, issue.first_thread
        store.start, store.address, store.split = start, address, split
        for number in range(LANES * ((request >> REGISTERS) & 255)):
            store.values[number] = np.int64(values[number])
    else:
        for register in range((request >> REGISTERS) & 255):
            for thread in range(LANES):
                offset = register_word_offset(start, address, split, request, thread, register)
                word = int(np.int64(values[LANES * register + thread]))
                write_word(memory, offset, request, word)
    return 0


@jitable
def check_move(memory: Memory, issue: WarpIssue, start: int, address: int, split: int) -> int:
    """Returns the kind of fault of a load or store of tensor memory at host address
    `start`, or 0: it accesses lanes outside the warp's quarter, or columns that are not allocated;
    its details are recorded in `issue`. `address` and `split` are operands; with `split`, the
    columns at `address` + `split` are checked, too."""
    request = issue.request
    shape, registers = field(request, SHAPE), (request >> REGISTERS) & 255
    columns = columns_in(shape, registers) * (2 if request & HALVES else 1)
    kind = check_lanes(issue, address, lanes_in(shape))
    if kind == 0:
        kind = check_columns(memory, issue, start, address, columns)
    if kind == 0 and split != 0:
        kind = check_columns(memory, issue, start, address + split, columns)
    return kind


@jitable
def load_registers(
    memory: Memory, values: Values, start: int, address: int, split: int, request: int
) -> None:
    """Executes `tcgen05.ld`: loads the registers of all 32 lanes into `values` from the tensor
    memory at host address `start`, by the operands `address` and `split` (`register_word_offset`).
    With HALVES (`.pack::16b`) a register packs the low halves of two consecutive columns. With
    REDUCES (`tcgen05.ld.red`) the reduction follows in one more register."""
    registers = (request >> REGISTERS) & 255
    for register in range(registers):
        for thread in range(LANES):
            offset = register_word_offset(start, address, split, request, thread, register)
            word = read_bytes(memory, offset, 4)
            if request & HALVES:
                word = (word & 0xFFFF) | (read_bytes(memory, offset + 4, 2) << 16)
            values[LANES * register + thread] = np.uint32(word)
    if request & REDUCES:
        reduce_registers(values, registers, request)


@jitable
def reduce_registers(values: Values, registers: int, request: int) -> None:
    """Stores the minimum or maximum (by the flags of `request`) of each thread's `registers`
    registers in one more register after them, in `values`."""
    for thread in range(LANES):
        reduction = int(np.int64(values[thread]))
        for register in range(registers):
            word = int(np.int64(values[LANES * register + thread]))
            # The first is reduced with itself, so that ABSOLUTE_VALUES and NaNs apply to it, too.
            reduction = reduce_words(word if register == 0 else reduction, word, request)
        values[LANES * registers + thread] = np.uint32(reduction)


# ---- asynchronous operations --------------------------------------------------------------------


@jitable
def issue_lane(
    memory: Memory, issue: WarpIssue, shared_record: Ints, plan: Plan, queue: RequestQueue,
    lane: int,
) -> int:  # fmt: skip
    """Issues a product, copy, shift or commit with the operands of one lane: checks it, counts what
    it reads from shared memory, then executes it, or queues it if the warp's operations complete
    late. Returns the kind of fault, or 0."""
    entry, request = issue.entry, issue.request
    late = completes_late(plan, issue.block, issue.warp)
    fill_entry(issue, lane)
    op = field(request, OP)
    if op == COMMIT:
        return commit(memory, issue, plan, queue, lane, late)
    if op == MULTIPLY:
        entry.kind = PRODUCT
        entry.zeros = issue.tensor_operands.zeros[lane]
        kind = check_product(memory, issue)
        if kind == 0:
            if not request & A_IN_TENSOR_MEMORY:
                count_shared(shared_record, product_bytes(issue, True))
            count_shared(shared_record, product_bytes(issue, False))
    elif op == COPY:
        entry.kind = TENSOR_COPY
        kind = check_copy(memory, issue)
        shape = field(request, SHAPE)
        if kind == 0:
            count_shared(shared_record, copied_rows(shape) * copied_units(shape) * UNIT_BYTES)
    else:
        entry.kind = ROW_SHIFT
        kind = check_shift(memory, issue)
    if kind == 0:
        complete_or_queue(memory, issue, plan, queue, late)
    return kind


@jitable
def fill_entry(issue: WarpIssue, lane: int) -> None:
    """Fills the entry in `issue` of a lane's operation in tensor memory: its operands, its
    disabled lanes (one bit each), its thread, the shared memory of its block and the distance to
    its tensor memory. With `.cta_group::2`, `own` and `peer` have the shared memory of the pair's
    blocks, the one with the even rank first. `kind` and `zeros` are set by the caller; the entry
    signals no mbarrier and joins no group."""
    entry, sources, request = issue.entry, issue.tensor_operands, issue.request
    operands = entry.operands
    rank = own_rank(issue)
    own, peer = issue.own_shared, 0
    if request & PAIR:
        own, peer = block_base(issue, rank & ~1), block_base(issue, rank | 1)
    operands.d = sources.d[lane]
    operands.a = sources.a[lane]
    operands.b = sources.b[lane]
    operands.descriptor = sources.descriptor[lane]
    operands.metadata = sources.metadata[lane]
    operands.scale_a = sources.scale_a[lane]
    operands.scale_b = sources.scale_b[lane]
    operands.enable = sources.enable[lane]
    operands.scale_d = sources.scale_d[lane]
    operands.own, operands.peer = own, peer
    operands.memory = to_tensor_memory(issue)
    # Four words of 64 bits from eight operands of 32: the disabled lanes, one bit each.
    for word in range(4):
        low = int(sources.disabled[LANES * 2 * word + lane])
        high = int(sources.disabled[LANES * (2 * word + 1) + lane])
        # Words are signed: if bit 31 of the high half is set, 2^32 is subtracted so that it is the
        # sign.
        operands.disabled[word] = low | (high - ((high & 0x80000000) << 1)) << 32
    entry.request, entry.barrier, entry.groups = request, 0, NO_GROUP
    entry.thread = issue.first_thread + lane
    entry.shared = issue.own_shared


@jitable
def commit(
    memory: Memory, issue: WarpIssue, plan: Plan, queue: RequestQueue, lane: int, late: bool
) -> int:
    """Issues `tcgen05.commit` with a lane's operands: one arrival at the mbarrier, or with a
    multicast mask at that of each block, which follows all earlier operations of the thread.
    Executed at once, or queued after them if `late`. Returns the kind of fault, or 0; without a
    mask, a word that is no mbarrier is a fault."""
    entry = issue.entry
    address = int(issue.tensor_operands.shared[lane])
    blocks = int(issue.tensor_operands.blocks[lane])
    kind = check_shared(issue, address, 8)
    if kind != 0:
        return kind
    entry.kind = ARRIVAL
    entry.barrier, entry.tx_bytes = host_address(issue, address), 0
    entry.shared = shared_base(issue, address)
    if blocks == 0:
        # The fault has no size (0), and is in shared memory (1).
        if not is_valid(read_bytes(memory, entry.barrier - ORIGIN, 8)):
            return fail(issue, INVALID_MBARRIER, address & ((1 << BLOCK_BITS) - 1), 0, 1)
        complete_or_queue(memory, issue, plan, queue, late)
        return 0
    return multicast(memory, issue, plan, queue, late, blocks)
