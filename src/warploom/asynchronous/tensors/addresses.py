"""Checks the addresses of asynchronous copies when they are issued, and translates them to host
addresses.

A check returns the kind of fault, or 0, and records the fault's details in `issue`
(`asynchronous.tensors.entries`). Addresses of shared memory are relative to the shared window
(`simt.address_windows`), with the rank of a block of the cluster in their upper bits.
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.mbarrier import is_valid
from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.requests import PAIR, field
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.allocations import Allocations, find_allocation
from warploom.simt.clusters import MOST_BLOCKS
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes

(
    OUT_OF_BOUNDS,
    READ_ONLY,
    INVALID_MBARRIER,
    NO_TENSOR_MAP,
    OTHER_TENSOR,
    TENSOR_ALIGNMENT,
    UNSUPPORTED_TENSOR,
    NO_BLOCK,
    BULK_ALIGNMENT,
    COLUMN_OPERANDS,
    OPEN_HALO,
    PACKED_RULE,
    NEW_VALUES,
    MAP_STRIDE,
) = (1, 3, 14, 23, 24, 25, 26, 27, 28, 51, 52, 53, 54, 61)
"""Kinds of fault, numbered as in `machine.faults.fault_errors.FaultKind`."""


@jitable
def fail(issue: WarpIssue, kind: int, address: int, size: int, in_shared: int) -> int:
    """Records in `issue` the address and size of a fault, or other details of its message (0
    where it has none), and whether it is in shared or tensor memory (`in_shared`, 1 or 0); returns
    `kind`."""
    issue.fault_address = address
    issue.fault_size = size
    issue.fault_in_shared = in_shared
    return kind


@jitable
def block_base(issue: WarpIssue, rank: int) -> int:
    """Returns the host address of the shared memory of the block at `rank` of the executing block's
    cluster; 0 if no such block is running."""
    if rank >= MOST_BLOCKS or (issue.live_blocks >> rank) & 1 == 0:
        return 0
    return issue.cluster_shared + rank * issue.shared_stride


@jitable
def shared_base(issue: WarpIssue, address: int) -> int:
    """Returns the host address of the shared memory of the block that a shared address belongs to.
    The upper bits of an address in the window of shared memory are the rank of a block in the
    cluster plus 1, or 0 for the executing block. Returns 0 if that block is not running."""
    rank = (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS
    return issue.own_shared if rank == 0 else block_base(issue, rank - 1)


@jitable
def check_shared(issue: WarpIssue, address: int, size: int) -> int:
    """Returns 0 if the `size` bytes at a shared address can be accessed, else the kind of fault,
    its details recorded in `issue`: the block of the address is not running, or its shared memory
    is exceeded."""
    if shared_base(issue, address) == 0:
        rank = (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS
        # 0: no size to show; 1: the fault is in shared memory.
        return fail(issue, NO_BLOCK, rank - 1, 0, 1)
    offset = address & ((1 << BLOCK_BITS) - 1)
    if offset + size > issue.shared_bytes:
        return fail(issue, OUT_OF_BOUNDS, offset, size, 1)
    return 0


@jitable
def host_address(issue: WarpIssue, address: int) -> int:
    """Translates a shared address to a host address; its block must be running (`check_shared`)."""
    return shared_base(issue, address) + (address & ((1 << BLOCK_BITS) - 1))


@jitable
def check_global(
    issue: WarpIssue, allocations: Allocations, address: int, size: int, writes: bool
) -> int:
    """Returns 0 if the `size` bytes at an address of global memory can be read, or written if
    `writes`, else the kind of fault, its details recorded in `issue`: not all in one allocation,
    or a write to constant memory."""
    row = find_allocation(allocations, np.uint64(address), issue.allocations)
    if row.at < 0 or address + size > int(row.end):
        return fail(issue, OUT_OF_BOUNDS, address, size, 0)
    # Constant memory can be read by its global address, but not written.
    if writes and row.constant != 0:
        return fail(issue, READ_ONLY, address, size, 0)
    return 0


@jitable
def leading_address(issue: WarpIssue, address: int) -> int:
    """Returns a shared address with the rank of the first block of the pair added, if `address` has
    no rank.

    On hardware, the address of a block's own shared memory contains the block's rank, and kernels
    for pairs of blocks clear the lowest bit of the rank to address the first block's mbarrier. Here
    own addresses have no rank, so clearing the bit has no effect.
    """
    if (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS:
        return address
    rank = (issue.own_shared - issue.cluster_shared) // issue.shared_stride
    # `rank & ~1` is the pair's first block; addresses hold ranks plus 1.
    return address | ((rank & ~1) + 1) << BLOCK_BITS


@jitable
def prepare_mbarrier(memory: Memory, issue: WarpIssue, lane: int, tx_bytes: int) -> int:
    """Checks the mbarrier operand of a lane, and stores its host address (`barrier`) and the bytes
    to signal (`tx_bytes`) in the entry in `issue`. With PAIR an address in the block itself
    becomes that of the first block of the pair. Returns 0, or the kind of fault, its details
    recorded in `issue`: a bad address, or a word that is no mbarrier."""
    entry = issue.entry
    address = int(issue.operands.barrier[lane])
    if field(entry.request, PAIR):
        address = leading_address(issue, address)
    kind = check_shared(issue, address, 8)
    if kind != 0:
        return kind
    entry.barrier, entry.tx_bytes = host_address(issue, address), tx_bytes
    # The fault has no size (0), and is in shared memory (1).
    if not is_valid(read_bytes(memory, entry.barrier - ORIGIN, 8)):
        return fail(issue, INVALID_MBARRIER, address & ((1 << BLOCK_BITS) - 1), 0, 1)
    return 0
