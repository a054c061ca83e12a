"""Lays out the records of asynchronous work (`warploom.simt.records`): tensor maps, operands,
requests, the queues of what completes late, and tensor memory's own state.

Both machines fill operands, 32 lanes of 64 bits each: a `Row` has a word of each lane. Addresses
are those of the host, but operands in shared memory are relative to the shared window.
"""

from __future__ import annotations

from typing import Annotated

from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord, Words

LANES = 32
Row = Annotated[Words, LANES]

# ---- operands -----------------------------------------------------------------------------------


class CopyOperands(WordRecord):
    """The operands of a request to the Tensor Memory Accelerator."""

    map: Row  # the address of the tensor map
    coordinates: Annotated[Words, 5 * LANES]
    offsets: Annotated[Words, 3 * LANES]
    shared: Row
    barrier: Row
    blocks: Row  # a multicast mask, 0 for none
    # The address that is not `shared`: in global memory, or the source in shared memory.
    opposite: Row
    size: Row  # in bytes
    value: Row  # also the high bits of `strides`, four for each
    # The following replace values of a map; they are set only where a request says so.
    sizes: Annotated[Words, 5 * LANES]
    strides: Annotated[Words, 4 * LANES]  # their low words, in units of 16 bytes


class TensorMemoryOperands(WordRecord):
    """The operands of a `tcgen05` instruction."""

    d: Row
    a: Row
    b: Row
    descriptor: Row
    enable: Row
    scale_d: Row
    metadata: Row
    scale_a: Row
    scale_b: Row
    zeros: Row
    shared: Row
    blocks: Row  # a multicast mask
    columns: Row  # how many
    disabled: Annotated[Words, 8 * LANES]  # up to eight words of `disable-output-lane`


# ---- requests -----------------------------------------------------------------------------------


class MapWords(WordRecord):
    """A tensor map (`asynchronous.tensors.maps`); fields span words."""

    address: int  # in global memory
    flags: int  # in the lower half
    strides: Annotated[int, "flags"]  # divided by 16, 32 bits each, from the upper half on
    more_strides: int
    high_strides: int  # the higher bits of strides, four each, in the upper half
    dims: Annotated[Words, 2]  # sizes less 1, 32 bits each, the fifth in the next word
    steps: int  # element strides less 1, three bits each, in the upper half
    box: Annotated[int, "steps"]  # its sizes less 1, 8 bits each, from the last byte on
    more_box: int
    lower: int  # for im2col, a corner of the bounding box, 16 bits for each axis
    upper: int
    column: int  # channels in bits 0 to 15, pixels per column in bits 16 to 31
    unused: Annotated[Words, 5]


class TensorCoreOperands(WordRecord):
    """The operands of a product, a copy or a shift of `tcgen05`, as an entry has them."""

    d: int
    a: int
    b: int
    descriptor: int
    metadata: int
    scale_a: int
    scale_b: int
    enable: int  # D is an addend
    scale_d: int
    own: int  # the shared memory of the executing block; of a pair, that with the even rank
    peer: int  # and of the other block
    memory: int  # offset from there to its tensor memory
    disabled: Annotated[Words, 4]  # disabled lanes, as bits


class WideOffsets(WordRecord):
    """The offsets of a copy in the modes `im2col::w` and `im2col::w::128`."""

    halo: int
    shift: int  # wOffset


class RequestEntry(WordRecord):
    """An asynchronous request (TMA or `tcgen05`), at issue and in the queue."""

    map: MapWords
    operands: Annotated[TensorCoreOperands, "map"]
    kind: int
    groups: int  # the kind of group that it joins
    thread: int  # number of the issuing thread
    source: int
    target: int  # for a box, its address in shared memory
    size: int  # in bytes
    barrier: int  # address of the mbarrier that is signalled `tx_bytes` bytes, or 0
    tx_bytes: int
    request: int  # the encoded instruction (`asynchronous.tensors.requests`)
    shared: int  # address of the block's shared memory
    coordinates: Annotated[Words, 5]  # for a gather the column and four rows
    zeros: Annotated[int, "coordinates"]  # a zero-column mask
    offsets: Annotated[Words, 3]  # of im2col
    wide: Annotated[WideOffsets, "offsets"]
    byte_mask: Annotated[int, "offsets"]  # of contiguous bytes, those of each 16
    row_coordinates: Annotated[Words, 5]  # of one row of a box at a time
    row_address: int
    row_from: int  # the range of its bytes that lies in the tensor
    row_to: int


class WarpIssue(WordRecord):
    """The issue of an asynchronous instruction by a warp: its operands, the entry of one lane's
    request, its fault, and the state of the machine. Work space follows it (`work_of`). It begins
    with the operands: the offset of a row in them is its offset in the issue."""

    operands: CopyOperands
    tensor_operands: Annotated[TensorMemoryOperands, "operands"]
    entry: RequestEntry
    fault_kind: int
    fault_lane: int
    fault_address: int
    fault_size: int
    fault_in_shared: int  # its address is in shared or tensor memory
    allocations: int  # number of global allocations
    own_shared: int  # address of the shared memory of the block
    shared_bytes: int  # of a block
    cluster_shared: int  # address of that of the first block of its cluster
    shared_stride: int  # bytes from block to block
    live_blocks: int  # running blocks of the cluster, as bits
    first_thread: int  # number of the warp's first thread
    block: int  # its grid index
    warp: int  # its index in the block
    mask: int  # the lanes that issue
    request: int  # the encoded instruction


# ---- what completes late ------------------------------------------------------------------------


class RequestQueue(WordRecord):
    """The head of a queue of requests (`asynchronous.issue.queue`), which follow in order of issue;
    after those, a list of deferred stores to tensor memory (`asynchronous.issue.late_stores`)."""

    count: int
    stores: int


class DeferredStore(WordRecord):
    """A store to tensor memory of the warp whose first thread is `thread`, to `start`, the address
    of the memory. `address` and `split` (the offset of the second half of the threads) are
    operands; `values`: up to 128 registers, 32 lanes each."""

    request: int  # the encoded instruction
    thread: int
    start: int
    address: int
    split: int
    values: Annotated[Words, 128 * LANES]


SAVED_BYTES = 1 << 16


class PendingList(WordRecord):
    """The head of the list of pending copies (`asynchronous.late_copies`), which follow in order of
    issue."""

    count: int
    ends: Row  # ends of groups of each lane, while these are counted
    saved: Annotated[Words, SAVED_BYTES]  # the bytes that the last entry's copies overwrite


class PendingCopies(WordRecord):
    """The pending copies of an instruction of a warp."""

    kind: int
    mask: int  # lanes whose copies are pending
    due: int  # those of them that are to be completed now
    thread: int  # number of lane 0's thread
    groups: int  # kind of group
    shared: int  # address of the shared memory that is read or written
    source: Row  # address; for `red.async` the `action` of `hold_copies`
    target: Row
    size: Row  # bytes copied
    zeros: Row  # bytes after them that are set to zero
    barrier: Row  # address of the mbarrier or 0
    tx_bytes: Row  # bytes that it is signalled
    saved_at: Row  # position in `saved` of the mbarrier's old bytes, followed by the target's
    low_data: Row  # the bytes that `st.async` writes; the operand of `red.async`
    high_data: Row


# ---- tensor memory ------------------------------------------------------------------------------

UNITS = 16
"""Units of tensor memory that are allocated: 32 columns each."""
BLOCK_COLUMNS, MOST_DEPTH = 64, 128
"""Columns of D that are computed together, and the most elements along k."""


class TensorMemoryState(WordRecord):
    """The words before the columns of a block's tensor memory."""

    owner: Annotated[Words, UNITS]  # of a unit: 0, or 1 plus the first unit of its allocation
    relinquished: int  # the block has given up its permit
    last_columns: int  # size of its last allocation
    allocated_at: int  # 1 plus the index of that instruction
    allocated_by: int  # the block


class ProductWork(WordRecord):
    """A copy of a request's entry, and the work space of its product, with numbers as bits of
    doubles."""

    entry: RequestEntry
    b: Annotated[Words, BLOCK_COLUMNS * MOST_DEPTH]  # a block of B
    sums: Annotated[Words, BLOCK_COLUMNS]  # a row of them
    a: Annotated[Words, MOST_DEPTH]  # a row of A
    positions: Annotated[Words, MOST_DEPTH]  # along k, of each element of that row


@jitable
def work_of(issue: WarpIssue) -> ProductWork:
    """Returns the work space after an issue, in the same array; of kernels without tensor memory,
    only its entry exists (`program.requests.tensor_memory.work_words`)."""
    return ProductWork(issue, WarpIssue.WORDS)
