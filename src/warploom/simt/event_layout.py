"""The events that an observer is called with: arrays of 64-bit words that both machines fill.

An observer is up to five functions, one for each of KINDS. A table of words has their addresses, in
that order, 0 where there is none; then where the source lines of the instructions begin, where the
observer's state begins, and a word that is one more than the number of the function that raised an
exception, 0 while none has.
"""

from __future__ import annotations

from enum import IntEnum

KINDS = ("access", "branch", "barrier", "block_begin", "block_end")
ACCESS, BRANCH, BARRIER, BLOCK_BEGIN, BLOCK_END = range(len(KINDS))

LINES_AT, STATE_AT, FAILED, TABLE_WORDS = range(len(KINDS), len(KINDS) + 4)

E_BLOCK, E_WARP, E_INSTRUCTION, E_MASK, E_FIRST, E_SECOND, E_THIRD, E_LANES, E_ADDRESSES = range(9)
"""An event: MASK are the active lanes. Of an access, FIRST, SECOND and THIRD are its space, its
operation and the bytes of a lane, LANES how many a warp has, and from ADDRESSES on there is one for
each of them, 0 for those that are off. Of a branch, FIRST are the lanes that take it; of a barrier,
FIRST and SECOND are its number and the threads that it awaits. Block events have no more than
BLOCK."""


class MemorySpace(IntEnum):
    """The state spaces of accesses that observers see."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2
    CONSTANT = 3


class AccessKind(IntEnum):
    """The operations of accesses that observers see."""

    LOAD = 0
    STORE = 1
    ATOMIC = 2
