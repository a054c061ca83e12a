"""Selects the block whose shared memory an access of the race detector is to: the current one, or
another of its cluster.

Records of shared memory are in the state of the block that owns it, the current thread is in that
of its own block. An address in another block's shared memory has the block's rank, and one, above
its bits of offset (`simt.address_windows.BLOCK_BITS`).
"""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    B_BLOCK,
    CLUSTER_BLOCKS,
    E_BASE,
    ME_BASE,
    ME_BLOCK,
    ME_CLUSTER_AT,
    ME_OWNER,
    ME_OWNER_SLOT,
    ME_SLOT,
    SHARED_STRIDE,
    SLOT_WORDS,
)
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.lane_counts import jitable

NO_BLOCK = -(1 << 62)
"""Returned for an address in the shared memory of a block which the cluster does not have."""


@jitable
def select_own_memory(state: Any, event: Any) -> None:
    """Selects the shared memory of the current block, at the event's E_BASE: the ME_ words of the
    owner (its slot, number and first byte on the host) are the current block's."""
    state[ME_OWNER_SLOT], state[ME_OWNER], state[ME_BASE] = (
        state[ME_SLOT],
        state[ME_BLOCK],
        event[E_BASE],
    )


@jitable
def select_memory(state: Any, event: Any, address: int) -> int:
    """Selects the shared memory that an address of an event is in (ME_ words of the owner); returns
    the address without its rank, NO_BLOCK if the cluster has no such block."""
    select_own_memory(state, event)
    # No rank: the block's own memory, or a negative address, which is out of bounds.
    if address >> BLOCK_BITS <= 0:
        return address
    rank = (address >> BLOCK_BITS) - 1
    if rank >= state[CLUSTER_BLOCKS]:
        return NO_BLOCK
    select_memory_of_rank(state, event, rank)
    return address & ((1 << BLOCK_BITS) - 1)


@jitable
def select_memory_of_rank(state: Any, event: Any, rank: int) -> None:
    """Selects the shared memory of the block with a rank in the cluster: writes its slot, number
    and first byte on the host to the ME_ words of the owner."""
    owner_slot = state[ME_CLUSTER_AT] + rank * state[SLOT_WORDS]
    slots_away = (owner_slot - state[ME_SLOT]) // state[SLOT_WORDS]
    state[ME_OWNER_SLOT], state[ME_OWNER] = owner_slot, state[owner_slot + B_BLOCK] - 1
    state[ME_BASE] = event[E_BASE] + slots_away * state[SHARED_STRIDE]


@jitable
def shared_key(state: Any, address: int) -> int:
    """Returns the key of the location at an address of the selected shared memory
    (`releases.find_location`): negative, so that it differs from all addresses of global memory."""
    return int(-1 - (state[ME_OWNER] << BLOCK_BITS | address))


@jitable
def is_peer(state: Any, block: int) -> int:
    """Returns whether the block with number `block` - 1 is of the current block's cluster; 0
    without clusters."""
    if state[CLUSTER_BLOCKS] == 1:
        return 0
    for rank in range(state[CLUSTER_BLOCKS]):
        if state[state[ME_CLUSTER_AT] + rank * state[SLOT_WORDS] + B_BLOCK] == block:
            return 1
    return 0
