"""Addresses of asynchronous copies: checked, and found on the host.

A check answers the kind of fault, or 0, and leaves what the fault is about in `scratch`
(`asynchronous.tensors.entries`).
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.mbarrier import is_valid
from warploom.asynchronous.tensors.entries import (
    ALLOCATIONS,
    BARRIER,
    CLUSTER_SHARED,
    FAULT_ADDRESS,
    FAULT_IN_SHARED,
    FAULT_SIZE,
    LIVE_BLOCKS,
    ORIGIN,
    OWN_SHARED,
    REQUEST,
    SHARED_BYTES,
    SHARED_STRIDE,
    TX_BYTES,
)
from warploom.asynchronous.tensors.requests import BARRIER_ROW, PAIR, field
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.allocations import CONSTANT, END, Allocations, find_allocation
from warploom.simt.clusters import MOST_BLOCKS
from warploom.simt.lane_counts import Row, jitable
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
) = (1, 3, 14, 23, 24, 25, 26, 27, 28, 51, 52, 53)
"""Kinds of fault, as `machine.faults.fault_errors.FaultKind` numbers them."""

LANES = 32


@jitable
def fail(scratch: Row, kind: int, address: int, size: int, in_shared: int) -> int:
    """Record what a fault is about; returns its kind."""
    scratch[FAULT_ADDRESS] = address
    scratch[FAULT_SIZE] = size
    scratch[FAULT_IN_SHARED] = in_shared
    return kind


@jitable
def block_base(scratch: Row, rank: int) -> int:
    """Returns where the shared memory of a block of the cluster begins; 0 where there is no
    block."""
    if rank >= MOST_BLOCKS or (int(scratch[LIVE_BLOCKS]) >> rank) & 1 == 0:
        return 0
    return int(scratch[CLUSTER_SHARED]) + rank * int(scratch[SHARED_STRIDE])


@jitable
def shared_base(scratch: Row, address: int) -> int:
    """Returns where the shared memory begins that an address of the window leads to; 0: nowhere."""
    rank = (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS
    return int(scratch[OWN_SHARED]) if rank == 0 else block_base(scratch, rank - 1)


@jitable
def check_shared(scratch: Row, address: int, size: int) -> int:
    """Returns the kind of fault of an access to shared memory, or 0."""
    if shared_base(scratch, address) == 0:
        rank = (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS
        return fail(scratch, NO_BLOCK, rank - 1, 0, 1)
    offset = address & ((1 << BLOCK_BITS) - 1)
    if offset + size > scratch[SHARED_BYTES]:
        return fail(scratch, OUT_OF_BOUNDS, offset, size, 1)
    return 0


@jitable
def host_address(scratch: Row, address: int) -> int:
    """Returns where on the host an address of the window of shared memory leads."""
    return shared_base(scratch, address) + (address & ((1 << BLOCK_BITS) - 1))


@jitable
def check_global(
    scratch: Row, allocations: Allocations, address: int, size: int, writes: bool
) -> int:
    """Returns the kind of fault of an access to global memory, or 0."""
    row = find_allocation(allocations, np.uint64(address), int(scratch[ALLOCATIONS]))
    if row < 0 or address + size > int(allocations[row + END]):
        return fail(scratch, OUT_OF_BOUNDS, address, size, 0)
    if writes and allocations[row + CONSTANT] != 0:
        return fail(scratch, READ_ONLY, address, size, 0)
    return 0


@jitable
def leading_address(scratch: Row, address: int) -> int:
    """Returns the address in the first block of a pair that one without a rank stands for.

    On hardware an own address has the rank of its block; code for pairs clears its lowest bit to
    name the first block's mbarrier, which here leaves the address as it is.
    """
    if (address & (WINDOW_SIZE - 1)) >> BLOCK_BITS:
        return address
    rank = (int(scratch[OWN_SHARED]) - int(scratch[CLUSTER_SHARED])) // int(scratch[SHARED_STRIDE])
    return address | ((rank & ~1) + 1) << BLOCK_BITS


@jitable
def prepare_mbarrier(memory: Memory, data: Row, scratch: Row, lane: int, tx_bytes: int) -> int:
    """Find the mbarrier that a copy names; returns the kind of fault, or 0."""
    address = int(data[LANES * BARRIER_ROW + lane])
    if field(int(scratch[REQUEST]), PAIR):
        address = leading_address(scratch, address)
    kind = check_shared(scratch, address, 8)
    if kind != 0:
        return kind
    scratch[BARRIER], scratch[TX_BYTES] = host_address(scratch, address), tx_bytes
    if not is_valid(read_bytes(memory, int(scratch[BARRIER]) - ORIGIN, 8)):
        return fail(scratch, INVALID_MBARRIER, address & ((1 << BLOCK_BITS) - 1), 0, 1)
    return 0
