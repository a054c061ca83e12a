"""The words of late copies: a list of entries, one for each instruction of a warp."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

LANES = 32

COUNT, ENDS, SAVED = 0, 1, 1 + LANES
"""Words of the list: how many entries it has; for each lane, ends of groups while they are counted;
the bytes, one a word, that the last entry's copies are about to write over."""
SAVED_BYTES = 1 << 16
FIRST = SAVED + SAVED_BYTES

KIND, MASK, DUE, THREAD, GROUPS, SHARED, ROWS = range(7)
SOURCE, TARGET, SIZE, ZEROS, BARRIER, TX_BYTES, SAVED_AT, LOW_DATA, HIGH_DATA = range(9)
ENTRY_WORDS = ROWS + 9 * LANES
"""An entry: its kind; the lanes whose copies are not complete, those of them that are about to be;
the number of lane 0's thread; the kind of group; where the shared memory begins that it concerns.
Rows of a word for each lane follow: addresses; the bytes copied, and those behind them that become
zero; the mbarrier, or 0, and of how many bytes it is told; where the saved bytes are, behind those
of the mbarrier; and, of `st.async`, the bytes that are written. Of `red.async`, LOW_DATA is its
operand, and SOURCE the operation and the type, as `hold_copies` is told."""

COPY, VALUE, GROUP_END, UPDATED = range(4)
"""Kinds of entries: bytes copied, bytes written, the end of a group, numbers updated."""

NO_GROUP, ASYNC_GROUP, BULK_GROUP = range(3)
"""Groups: none (an mbarrier is told), those of `cp.async`, and those of `cp.async.bulk`."""

LOAD, STORE, SEND, UPDATE = range(4)
"""Directions: global to shared memory, shared to global memory, registers to shared memory, and a
number in shared memory combined with one in a register."""

OPERATION_AT, TYPE_AT, DIRECTION_BITS = 4, 8, 15
"""Where the words of an UPDATE have its operation and its type (`asynchronous.tensors.numbers`)."""

CAPACITY = 512
"""Entries of a list; when it is full, the older half completes."""

LIST_WORDS = FIRST + CAPACITY * ENTRY_WORDS


@jitable
def entry_at(number: int) -> int:
    """Returns where an entry stands in a list."""
    return FIRST + number * ENTRY_WORDS


@jitable
def lane_word(entry: int, row: int, lane: int) -> int:
    """Returns where a lane's word of a row stands."""
    return entry + ROWS + row * LANES + lane
