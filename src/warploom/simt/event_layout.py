"""Defines the layout of the events that an observer receives: arrays of 64-bit words.

An observer is up to five callbacks, one for each of KINDS. A table of TABLE_WORDS words holds the
callbacks' addresses in that order (0: none), the addresses of the instructions' source lines
(LINES_AT) and of the observer's state (STATE_AT), and FAILED: 1 plus the index of the callback that
raised an exception, 0 while none has.
"""

from __future__ import annotations

from enum import IntEnum

KINDS = ("access", "branch", "barrier", "block_begin", "block_end")
ACCESS, BRANCH, BARRIER, BLOCK_BEGIN, BLOCK_END = range(len(KINDS))

LINES_AT, STATE_AT, FAILED, TABLE_WORDS = range(len(KINDS), len(KINDS) + 4)

E_BLOCK, E_WARP, E_INSTRUCTION, E_MASK, E_FIRST, E_SECOND, E_THIRD, E_LANES, E_ADDRESSES = range(9)
"""Words of an event. E_MASK: the active lanes. Access: E_FIRST, E_SECOND, E_THIRD are its state
space (`MemorySpace`), operation (`AccessKind`) and bytes per lane; E_LANES is the warp size; from
E_ADDRESSES on follows the address of each lane, 0 for inactive lanes. Branch: E_FIRST is the mask
of lanes that take it. Barrier: E_FIRST and E_SECOND are its number and the threads that it awaits.
The events of a thread block have E_BLOCK only."""


class MemorySpace(IntEnum):
    """Numbers the state spaces in access events."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2
    CONSTANT = 3


class AccessKind(IntEnum):
    """Numbers the operations in access events."""

    LOAD = 0
    STORE = 1
    ATOMIC = 2
