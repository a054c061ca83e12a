"""Lays out the records of an observer (`warploom.simt.records`): the table of its callbacks, and
the events that they receive."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from warploom.simt.records import WordRecord, Words

KINDS = ("access", "branch", "barrier", "block_begin", "block_end")
ACCESS, BRANCH, BARRIER, BLOCK_BEGIN, BLOCK_END = range(len(KINDS))


class ObserverTable(WordRecord):
    """Addresses that a launch calls an observer by."""

    callbacks: Annotated[Words, len(KINDS)]  # one for each of KINDS, 0: none
    lines_at: int  # the instructions' source lines
    state_at: int  # the observer's state
    failed: int  # 1 plus the index of the callback that raised an exception, 0 while none has


class ObservedEvent(WordRecord):
    """An event; those of a thread block have only `block`."""

    block: int
    warp: int
    instruction: int
    mask: int  # the active lanes
    space: int  # of an access (`MemorySpace`)
    taken: Annotated[int, "space"]  # of a branch, the lanes that take it
    number: Annotated[int, "space"]  # of a barrier
    kind: int  # of an access (`AccessKind`)
    threads: Annotated[int, "kind"]  # that a barrier awaits
    size: int  # bytes per lane
    lanes: int  # the warp size
    addresses: Annotated[Words, 0]  # of an access, by lane, 0 for inactive lanes


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
