"""Finds the block in whose shared memory an access is: its own, or another one of its cluster.

What is kept of shared memory is kept with the block that it belongs to, who a thread is with its
own. An address in the shared memory of another block has the block's rank above its bits of offset
(`simt.address_windows.BLOCK_BITS`).
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
    ME_HOME,
    ME_OWNER,
    ME_SLOT,
    SHARED_STRIDE,
    SLOT_WORDS,
)
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.lane_counts import jitable

NOWHERE = -(1 << 62)
"""The place of an address that leads to a block which the cluster does not have."""


@jitable
def stay(s: Any, e: Any) -> None:
    """Turn to the memory of the current block, which an event has the place of."""
    s[ME_HOME], s[ME_OWNER], s[ME_BASE] = s[ME_SLOT], s[ME_BLOCK], e[E_BASE]


@jitable
def turn_to(s: Any, e: Any, address: int) -> int:
    """Turn to the shared memory to which an address leads; return the address without its rank,
    NOWHERE where the cluster has no such block."""
    stay(s, e)
    if address >> BLOCK_BITS <= 0:
        return address
    rank = (address >> BLOCK_BITS) - 1
    if rank >= s[CLUSTER_BLOCKS]:
        return NOWHERE
    turn_to_rank(s, e, rank)
    return address & ((1 << BLOCK_BITS) - 1)


@jitable
def turn_to_rank(s: Any, e: Any, rank: int) -> None:
    """Turn to the shared memory of a block of the cluster."""
    home = s[ME_CLUSTER_AT] + rank * s[SLOT_WORDS]
    behind = (home - s[ME_SLOT]) // s[SLOT_WORDS]
    s[ME_HOME], s[ME_OWNER] = home, s[home + B_BLOCK] - 1
    s[ME_BASE] = e[E_BASE] + behind * s[SHARED_STRIDE]


@jitable
def shared_key(s: Any, address: int) -> int:
    """Return the key of a location in the shared memory turned to (`releases.location`)."""
    return int(-1 - (s[ME_OWNER] << BLOCK_BITS | address))


@jitable
def is_peer(s: Any, block: int) -> int:
    """Return whether a block, given by its number and one, is of the current block's cluster."""
    if s[CLUSTER_BLOCKS] == 1:
        return 0
    for rank in range(s[CLUSTER_BLOCKS]):
        if s[s[ME_CLUSTER_AT] + rank * s[SLOT_WORDS] + B_BLOCK] == block:
            return 1
    return 0
