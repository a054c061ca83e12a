"""Defines the codes in the list of pending copies (`asynchronous.late_copies`): kinds of entries
and groups, directions, operations. The list has an entry for each instruction of a warp, in order
of issue."""

from __future__ import annotations

from warploom.asynchronous.records import PendingCopies, PendingList
from warploom.simt.lane_counts import jitable

COPY, VALUE, GROUP_END, UPDATED = range(4)
"""Kinds of entries: copy of bytes, store of a value, end of a group, reduction of a value."""

NO_GROUP, ASYNC_GROUP, BULK_GROUP = range(3)
"""Kinds of groups: none (an mbarrier is signalled), of `cp.async`, of `cp.async.bulk`."""

LOAD, STORE, SEND, UPDATE = range(4)
"""Directions: global to shared memory, shared to global memory, register to shared memory, and
reduction of a register into shared memory."""

OPERATION_AT, TYPE_AT, DIRECTION_BITS = 4, 8, 15
"""Bit positions in an `action`: the direction is in DIRECTION_BITS; an UPDATE also has an operation
and a type (`asynchronous.tensors.numbers`)."""

CAPACITY = 512
"""The most entries of a list; when it is full, the older half completes."""

LIST_WORDS = PendingList.WORDS + CAPACITY * PendingCopies.WORDS


@jitable
def entry_of(pending: PendingList, number: int) -> PendingCopies:
    """Returns entry number `number` of the list; 0 is the oldest."""
    return PendingCopies(pending, PendingList.WORDS, number)
