"""Issues the `tcgen05` instructions of a warp (tensor memory, fifth-generation tensor cores):
checks their operands, counts their accesses, and executes or queues them.

`issue_tensor_memory` executes one warp instruction; both machines call it. It returns 0, or 1 with
the fault recorded in `scratch`. Products, copies, shifts and commits complete in the order in which
a thread issues them. Under schedules that complete late (`simt.product_groups`), they complete when
a thread waits for the mbarrier of a later commit, and stores when their warp waits for them
(`asynchronous.issue.late_stores`). Parameters as in `asynchronous.issue.tensor_copies`; the rows of
`data` are those of `asynchronous.tensor_memory.layout`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.issue.allocation import allocate, free, relinquish
from warploom.asynchronous.issue.late_stores import (
    ADDRESS,
    SPLIT,
    START,
    VALUES,
    allocate_store,
    register_word_offset,
    write_word,
)
from warploom.asynchronous.issue.late_stores import REQUEST as STORE_REQUEST
from warploom.asynchronous.issue.late_stores import THREAD as STORE_THREAD
from warploom.asynchronous.issue.tensor_copies import complete_or_queue, count_shared, multicast
from warploom.asynchronous.mbarrier import is_valid
from warploom.asynchronous.tensor_memory.checks import (
    NO_PAIR,
    check_columns,
    check_copy,
    check_lanes,
    check_product,
    product_bytes,
)
from warploom.asynchronous.tensor_memory.copies import copied_rows, copied_units
from warploom.asynchronous.tensor_memory.descriptors import UNIT_BYTES
from warploom.asynchronous.tensor_memory.fragments import columns_in, lanes_in
from warploom.asynchronous.tensor_memory.layout import (
    A_IN_TENSOR_MEMORY,
    A_ROW,
    ALLOC,
    ARRIVAL,
    B_ROW,
    BLOCKS_ROW,
    COMMIT,
    COPY,
    D_ROW,
    DESCRIPTOR_ROW,
    DISABLED_ROW,
    E_A,
    E_B,
    E_D,
    E_DESCRIPTOR,
    E_DISABLED,
    E_ENABLE_D,
    E_MEMORY,
    E_METADATA,
    E_OWN,
    E_PEER,
    E_SCALE_A,
    E_SCALE_B,
    E_SCALE_D,
    E_ZEROS,
    ENABLE_ROW,
    FREE,
    HALVES,
    LOAD,
    METADATA_ROW,
    MULTIPLY,
    OP,
    PAIR,
    PRODUCT,
    REDUCES,
    REGISTERS,
    RELINQUISH,
    ROW_SHIFT,
    SCALE_A_ROW,
    SCALE_B_ROW,
    SCALE_D_ROW,
    SHAPE,
    SHARED_ROW,
    STORE,
    TENSOR_COPY,
    ZEROS_ROW,
    part,
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
from warploom.asynchronous.tensors.entries import (
    BARRIER,
    BLOCK,
    FAULT_KIND,
    FAULT_LANE,
    FIRST_THREAD,
    GROUPS,
    KIND,
    NO_GROUP,
    ORIGIN,
    OWN_SHARED,
    REQUEST,
    SHARED,
    THREAD,
    TX_BYTES,
    WARP,
)
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import CHANGES, CLUSTER
from warploom.texture.texels import Memory, read_bytes

Values = npt.NDArray[np.uint32]

WARP_LANES = 32
ROW_BYTES = 32
"""Bytes of each lane that `tcgen05.shift` moves."""


@jitable
def issue_tensor_memory(
    memory: Memory, data: Ints, scratch: Ints, values: Values, shared_record: Ints, plan: Ints,
    queue: Ints, work: Ints, mask: int, request: int, instruction: int,
) -> int:  # fmt: skip
    """Issues a request: allocations, loads and stores once per warp, with the operands of the first
    lane in `mask`; products, copies, shifts and commits in each lane of `mask`. With PAIR, a
    missing peer block is a fault (`has_peer`). `values` are the registers of a load or store, 32
    lanes each; `instruction` is the index of the instruction in its program. Each adds to the
    changes of memory in `plan`. Returns 0, or 1 with the fault recorded in `scratch`."""
    scratch[FAULT_KIND] = 0
    op = part(request, OP)
    for lane in range(WARP_LANES):
        if (mask >> lane) & 1 == 0:
            continue
        scratch[FAULT_LANE] = lane
        # Of `fail`, 0: no second detail of the fault; 1: it is not in global memory.
        if request & PAIR and not has_peer(scratch, plan, op):
            kind = fail(scratch, NO_PAIR, own_rank(scratch), 0, 1)
        elif op == ALLOC:
            kind = allocate(memory, data, scratch, shared_record, lane, instruction)
        elif op == FREE:
            kind = free(memory, data, scratch, lane)
        elif op == RELINQUISH:
            kind = relinquish(memory, scratch)
        elif op in (LOAD, STORE):
            kind = transfer_registers(memory, data, scratch, values, plan, queue, lane, request)
        else:
            kind = issue_lane(
                memory, data, scratch, shared_record, plan, queue, work, lane, request
            )
        if kind != 0:
            scratch[FAULT_KIND] = kind
            return 1
        plan[CHANGES] += 1
        # Operations up to STORE are executed once per warp, with the operands of its first lane.
        if op <= STORE:
            return 0
    return 0


@jitable
def has_peer(scratch: Ints, plan: Ints, op: int) -> bool:
    """Returns whether the block has a peer for `.cta_group::2`: the block whose rank in the cluster
    differs in the lowest bit. For allocations and commits it must exist, for operations that access
    its memory it must also be running."""
    peer = own_rank(scratch) ^ 1
    if op in (ALLOC, FREE, RELINQUISH, COMMIT):
        return peer < plan[CLUSTER]
    return block_base(scratch, peer) != 0


# ---- loads and stores ---------------------------------------------------------------------------


@jitable
def transfer_registers(
    memory: Memory, data: Ints, scratch: Ints, values: Values, plan: Ints, queue: Ints, lane: int,
    request: int,
) -> int:  # fmt: skip
    """Executes `tcgen05.ld` or `tcgen05.st` of a warp, with the operands of lane `lane`: loads
    tensor memory into `values`, or stores `values` in it. A store that completes late is appended
    to the list of deferred stores in `queue` instead; `plan`, the launch's, decides that by its
    policy. `request` encodes operation, shape and number of registers. Returns the kind of fault,
    or 0."""
    address = int(data[WARP_LANES * D_ROW + lane])
    split = int(data[WARP_LANES * A_ROW + lane])
    start = int(scratch[OWN_SHARED]) + to_tensor_memory(scratch)
    kind = check_move(memory, scratch, start, address, split, request)
    if kind != 0:
        return kind
    if part(request, OP) == LOAD:
        load_registers(memory, values, start, address, split, request)
    elif completes_late(plan, int(scratch[BLOCK]), int(scratch[WARP])):
        at = allocate_store(memory, queue)
        queue[at + STORE_REQUEST], queue[at + STORE_THREAD] = request, scratch[FIRST_THREAD]
        queue[at + START], queue[at + ADDRESS], queue[at + SPLIT] = start, address, split
        for number in range(WARP_LANES * ((request >> REGISTERS) & 255)):
            queue[at + VALUES + number] = np.int64(values[number])
    else:
        for register in range((request >> REGISTERS) & 255):
            for thread in range(WARP_LANES):
                offset = register_word_offset(start, address, split, request, thread, register)
                word = int(np.int64(values[WARP_LANES * register + thread]))
                write_word(memory, offset, request, word)
    return 0


@jitable
def check_move(
    memory: Memory, scratch: Ints, start: int, address: int, split: int, request: int
) -> int:
    """Returns the kind of fault of a load or store (`request`) of tensor memory at host address
    `start`, or 0: it accesses lanes outside the warp's quarter, or columns that are not allocated;
    its details are recorded in `scratch`. `address` and `split` are operands; with `split`, the
    columns at `address` + `split` are checked, too."""
    shape, registers = part(request, SHAPE), (request >> REGISTERS) & 255
    columns = columns_in(shape, registers) * (2 if request & HALVES else 1)
    kind = check_lanes(scratch, address, lanes_in(shape))
    if kind == 0:
        kind = check_columns(memory, scratch, start, address, columns)
    if kind == 0 and split != 0:
        kind = check_columns(memory, scratch, start, address + split, columns)
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
        for thread in range(WARP_LANES):
            offset = register_word_offset(start, address, split, request, thread, register)
            word = read_bytes(memory, offset, 4)
            if request & HALVES:
                word = (word & 0xFFFF) | (read_bytes(memory, offset + 4, 2) << 16)
            values[WARP_LANES * register + thread] = np.uint32(word)
    if request & REDUCES:
        reduce_registers(values, registers, request)


@jitable
def reduce_registers(values: Values, registers: int, request: int) -> None:
    """Stores the minimum or maximum (by the flags of `request`) of each thread's `registers`
    registers in one more register after them, in `values`."""
    for thread in range(WARP_LANES):
        reduction = int(np.int64(values[thread]))
        for register in range(registers):
            word = int(np.int64(values[WARP_LANES * register + thread]))
            # The first is reduced with itself, so that ABSOLUTE_VALUES and NaNs apply to it, too.
            reduction = reduce_words(word if register == 0 else reduction, word, request)
        values[WARP_LANES * registers + thread] = np.uint32(reduction)


# ---- asynchronous operations --------------------------------------------------------------------


@jitable
def issue_lane(
    memory: Memory, data: Ints, scratch: Ints, shared_record: Ints, plan: Ints, queue: Ints,
    work: Ints, lane: int, request: int,
) -> int:  # fmt: skip
    """Issues a product, copy, shift or commit with the operands of one lane: checks it, counts what
    it reads from shared memory, then executes it, or queues it if the warp's operations complete
    late. Returns the kind of fault, or 0."""
    late = completes_late(plan, int(scratch[BLOCK]), int(scratch[WARP]))
    fill_entry(data, scratch, lane, request)
    op = part(request, OP)
    if op == COMMIT:
        return commit(memory, data, scratch, plan, queue, work, lane, late)
    if op == MULTIPLY:
        scratch[KIND] = PRODUCT
        scratch[E_ZEROS] = data[WARP_LANES * ZEROS_ROW + lane]
        kind = check_product(memory, scratch, request)
        if kind == 0:
            if not request & A_IN_TENSOR_MEMORY:
                count_shared(shared_record, product_bytes(scratch, request, True))
            count_shared(shared_record, product_bytes(scratch, request, False))
    elif op == COPY:
        scratch[KIND] = TENSOR_COPY
        kind = check_copy(memory, scratch, request)
        shape = part(request, SHAPE)
        if kind == 0:
            count_shared(shared_record, copied_rows(shape) * copied_units(shape) * UNIT_BYTES)
    else:
        scratch[KIND] = ROW_SHIFT
        first = int(scratch[E_OWN]) + int(scratch[E_MEMORY])
        kind = check_columns(memory, scratch, first, int(scratch[E_D]), ROW_BYTES // 4)
    if kind == 0:
        complete_or_queue(memory, scratch, plan, queue, work, late)
    return kind


@jitable
def fill_entry(data: Ints, scratch: Ints, lane: int, request: int) -> None:
    """Fills the entry in `scratch` of a lane's operation in tensor memory: its operands, its
    disabled lanes (one bit each), its thread, the shared memory of its block and the distance to
    its tensor memory. With `.cta_group::2`, E_OWN and E_PEER have the shared memory of the pair's
    blocks, the one with the even rank first. KIND and E_ZEROS are set by the caller; the entry
    signals no mbarrier and joins no group."""
    rank = own_rank(scratch)
    own, peer = int(scratch[OWN_SHARED]), 0
    if request & PAIR:
        own, peer = block_base(scratch, rank & ~1), block_base(scratch, rank | 1)
    scratch[E_D] = data[WARP_LANES * D_ROW + lane]
    scratch[E_A] = data[WARP_LANES * A_ROW + lane]
    scratch[E_B] = data[WARP_LANES * B_ROW + lane]
    scratch[E_DESCRIPTOR] = data[WARP_LANES * DESCRIPTOR_ROW + lane]
    scratch[E_METADATA] = data[WARP_LANES * METADATA_ROW + lane]
    scratch[E_SCALE_A] = data[WARP_LANES * SCALE_A_ROW + lane]
    scratch[E_SCALE_B] = data[WARP_LANES * SCALE_B_ROW + lane]
    scratch[E_ENABLE_D] = data[WARP_LANES * ENABLE_ROW + lane]
    scratch[E_SCALE_D] = data[WARP_LANES * SCALE_D_ROW + lane]
    scratch[E_OWN], scratch[E_PEER] = own, peer
    scratch[E_MEMORY] = to_tensor_memory(scratch)
    # Four words of 64 bits from eight operands of 32: the disabled lanes, one bit each.
    for word in range(4):
        low = int(data[WARP_LANES * (DISABLED_ROW + 2 * word) + lane])
        high = int(data[WARP_LANES * (DISABLED_ROW + 2 * word + 1) + lane])
        # Words are signed: if bit 31 of the high half is set, 2^32 is subtracted so that it is the
        # sign.
        scratch[E_DISABLED + word] = low | (high - ((high & 0x80000000) << 1)) << 32
    scratch[REQUEST], scratch[BARRIER], scratch[GROUPS] = request, 0, NO_GROUP
    scratch[THREAD] = int(scratch[FIRST_THREAD]) + lane
    scratch[SHARED] = scratch[OWN_SHARED]


@jitable
def commit(
    memory: Memory, data: Ints, scratch: Ints, plan: Ints, queue: Ints, work: Ints, lane: int,
    late: bool,
) -> int:  # fmt: skip
    """Issues `tcgen05.commit` with a lane's operands: one arrival at the mbarrier, or with a
    multicast mask at that of each block, which follows all earlier operations of the thread.
    Executed at once, or queued after them if `late`. Returns the kind of fault, or 0; without a
    mask, a word that is no mbarrier is a fault."""
    address = int(data[WARP_LANES * SHARED_ROW + lane])
    blocks = int(data[WARP_LANES * BLOCKS_ROW + lane])
    kind = check_shared(scratch, address, 8)
    if kind != 0:
        return kind
    scratch[KIND] = ARRIVAL
    scratch[BARRIER], scratch[TX_BYTES] = host_address(scratch, address), 0
    scratch[SHARED] = shared_base(scratch, address)
    if blocks == 0:
        # The fault has no size (0), and is in shared memory (1).
        if not is_valid(read_bytes(memory, int(scratch[BARRIER]) - ORIGIN, 8)):
            return fail(scratch, INVALID_MBARRIER, address & ((1 << BLOCK_BITS) - 1), 0, 1)
        complete_or_queue(memory, scratch, plan, queue, work, late)
        return 0
    return multicast(memory, scratch, plan, queue, work, late, blocks)
