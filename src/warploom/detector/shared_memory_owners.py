"""Selects the block whose shared memory an access of the race detector is to: the current one, or
another of its cluster.

Records of shared memory are in the state of the block that owns it, the current thread is in that
of its own block. An address in another block's shared memory has the block's rank, and one, above
its bits of offset (`simt.address_windows.BLOCK_BITS`).
"""

from __future__ import annotations

from warploom.detector.records import DetectorEvent, DetectorState, ResidentBlock
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.lane_counts import jitable

NO_BLOCK = -(1 << 62)
"""Returned for an address in the shared memory of a block which the cluster does not have."""


@jitable
def select_own_memory(state: DetectorState, event: DetectorEvent) -> None:
    """Selects the shared memory of the current block: sets `current_owner_slot`, `current_owner`
    and `current_base` to the block's slot, its number, and the event's `base`, the first byte of
    that memory on the host."""
    state.current_owner_slot, state.current_owner, state.current_base = (
        state.current_slot,
        state.current_block,
        event.base,
    )


@jitable
def select_memory(state: DetectorState, event: DetectorEvent, address: int) -> int:
    """Selects the shared memory that an address of an event is in (`current_` words of the owner):
    that of the block whose rank the address names, else that of the current block. Returns the
    address without its rank, a negative one as it is; NO_BLOCK, with the current block's memory
    selected, if the cluster has no such block."""
    select_own_memory(state, event)
    # No rank: the block's own memory, or a negative address, which is out of bounds.
    if address >> BLOCK_BITS <= 0:
        return address
    rank = (address >> BLOCK_BITS) - 1
    if rank >= state.cluster_blocks:
        return NO_BLOCK
    select_memory_of_rank(state, event, rank)
    return address & ((1 << BLOCK_BITS) - 1)


@jitable
def select_memory_of_rank(state: DetectorState, event: DetectorEvent, rank: int) -> None:
    """Selects the shared memory of the block with a rank in the cluster: writes its slot, number
    and first byte on the host to the `current_` words of the owner."""
    owner_slot = ResidentBlock(state, state.current_cluster_at + rank * state.slot_words)
    slots_away = (owner_slot.at - state.current_slot) // state.slot_words
    state.current_owner_slot, state.current_owner = owner_slot.at, owner_slot.block - 1
    state.current_base = event.base + slots_away * state.shared_stride


@jitable
def shared_key(state: DetectorState, address: int) -> int:
    """Returns the key, for the table of locations (`releases.find_location`), of an address in the
    shared memory of the block `current_owner` (`select_memory`): negative, so that it differs from
    all addresses of global memory."""
    return int(-1 - (state.current_owner << BLOCK_BITS | address))


@jitable
def is_peer(state: DetectorState, block: int) -> int:
    """Returns whether the block with number `block` - 1 is of the current block's cluster; 0
    without clusters."""
    if state.cluster_blocks == 1:
        return 0
    for rank in range(state.cluster_blocks):
        if ResidentBlock(state, state.current_cluster_at + rank * state.slot_words).block == block:
            return 1
    return 0
