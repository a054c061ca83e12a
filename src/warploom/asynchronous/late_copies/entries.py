"""Defines the layout of the list of pending copies (`asynchronous.late_copies`): an array of words
with one entry for each instruction of a warp, in order of issue."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

LANES = 32

COUNT, ENDS, SAVED = 0, 1, 1 + LANES
"""Words of the list: COUNT: number of entries; ENDS: for each lane, ends of groups while these are
counted; SAVED: the bytes, one per word, that the last entry's copies overwrite."""
SAVED_BYTES = 1 << 16
FIRST = SAVED + SAVED_BYTES

KIND, MASK, DUE, THREAD, GROUPS, SHARED, ROWS = range(7)
SOURCE, TARGET, SIZE, ZEROS, BARRIER, TX_BYTES, SAVED_AT, LOW_DATA, HIGH_DATA = range(9)
ENTRY_WORDS = ROWS + 9 * LANES
"""Words of an entry. KIND: below; MASK: lanes whose copies are pending; DUE: those of them that are
to be completed now; THREAD: number of lane 0's thread; GROUPS: kind of group; SHARED: address of
the shared memory that is read or written. From ROWS on, rows of a word for each lane: SOURCE,
TARGET: addresses; SIZE, ZEROS: bytes copied, and bytes after them that are set to zero; BARRIER:
address of the mbarrier or 0; TX_BYTES: bytes that it is signalled; SAVED_AT: position in SAVED of
the mbarrier's old bytes, followed by the target's; LOW_DATA, HIGH_DATA: the bytes that `st.async`
writes. For `red.async`, LOW_DATA is the operand, and SOURCE the `action` of `hold_copies`."""

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

LIST_WORDS = FIRST + CAPACITY * ENTRY_WORDS


@jitable
def entry_at(number: int) -> int:
    """Returns the index in the list of the first word of entry number `number`; 0 is the oldest."""
    return FIRST + number * ENTRY_WORDS


@jitable
def lane_word(entry: int, row: int, lane: int) -> int:
    """Returns the index in the list of a lane's word in a row (SOURCE, TARGET, ...). `entry` is the
    index of the entry's first word."""
    return entry + ROWS + row * LANES + lane
