"""Checks accesses to four bytes of memory against the earlier ones and records them, in a cell of
the race detector's shadow memory.

A cell has the last weak write with its value, one weak read, and two lists of further records.
Threads 0 and 1 of a warp read one word; the cell has both reads, one of them in the list. After
`bar.sync` thread 2 writes the word: both reads are ordered before the write, which replaces them,
since what is ordered after the write is ordered after them. Not bounded: with `exact`, unordered
reads of different threads are all retained.
"""

from __future__ import annotations

from warploom.detector.conflicts import check_record
from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    AGENT,
    AGENT_BITS,
    AGENT_KIND_AT,
    ALL_BYTES,
    BLOCK_AT,
    BYTES_AT,
    COPIES_OF_THREAD,
    FLAGS_AT,
    GLOBAL,
    GPU,
    LOAD,
    LOW,
    OP_AT,
    OP_BITS,
    SCOPE_AT,
    SCOPE_BITS,
    STRONG,
    THREAD_BITS,
    TIME_AT,
    VOLATILE,
)
from warploom.detector.pool import free_node, push_record
from warploom.detector.records import AccessNode, DetectorState, ShadowCell, ShadowRecord
from warploom.simt.lane_counts import jitable

MERGE_DEPTH = 4
"""Number of records at the head of a list that are compared with a new one; deeper ones stay."""

SAME_WARP, OTHER_WARP, OTHER_BLOCK = 1, 2, 3
"""Distances of two threads (`thread_distance`): of one warp, of two warps of a block, of two
blocks."""


@jitable
def pack_access(state: DetectorState, op: int, bytes_: int, flags: int) -> int:
    """Returns the access word of a record of the current access (`layout`): its instruction, and in
    their bit fields `op`, the mask `bytes_` of the cell's four bytes, and the instruction's
    `flags`."""
    return int(state.current_instruction | op << OP_AT | bytes_ << BYTES_AT | flags << FLAGS_AT)


@jitable
def check_and_record(state: DetectorState, cell: ShadowCell, access_word: int, value: int) -> int:
    """Checks an access of the current thread to a cell (shadow of 4 bytes) against the accesses
    recorded there, and reports races: against the cell's weak write; its weak read, unless the
    access is a load; its list of wide accesses, unless the access is wide
    (`is_strong_at_gpu_scope`); and its list of all others. Then records the access, as strong
    access, weak read or weak write. `value` is the word that it writes. Returns 1 if the cell had
    lists before, which hold all its strong accesses, else 0."""
    interval_word = state.current_block + 1 << BLOCK_AT | state.current_interval
    thread_word = state.current_time << TIME_AT | state.current_thread | state.current_agent
    op, bytes_ = access_word >> OP_AT & OP_BITS, access_word >> BYTES_AT & ALL_BYTES
    if cell.write_interval:
        check_record(
            state,
            cell.write_interval,
            cell.write_thread,
            cell.write_access,
            cell.write_value,
            access_word,
            value,
        )
    if op != LOAD and cell.read_interval:
        # A read has no value: 0.
        check_record(
            state,
            cell.read_interval,
            cell.read_thread,
            cell.read_access,
            0,
            access_word,
            value,
        )
    # Two list heads in one word: the high half has wide accesses, the low half all others.
    lists = cell.lists
    strong = AccessNode(state, lists >> 32)
    if lists:
        if lists & LOW:
            check_list(state, AccessNode(state, lists & LOW), access_word, value)
        # Both lists are checked but for two wide accesses, which are morally strong.
        if strong.at and not is_strong_at_gpu_scope(access_word):
            check_list(state, strong, access_word, value)
    if access_word >> FLAGS_AT & STRONG:
        record_strong_access(state, cell, interval_word, thread_word, access_word, value)
    elif op == LOAD:
        record_weak_read(state, cell, interval_word, thread_word, access_word)
    else:
        record_weak_write(state, cell, bytes_, interval_word, thread_word, access_word, value)
    return int(strong.at != 0 or lists & LOW != 0)


@jitable
def is_strong_at_gpu_scope(access_word: int) -> int:
    """Returns whether an access is strong and not volatile, on all four bytes, at gpu scope or
    wider: two such accesses are morally strong, so never a race."""
    flags = access_word >> FLAGS_AT
    whole = access_word >> BYTES_AT & ALL_BYTES == ALL_BYTES
    strong = flags & (STRONG | VOLATILE) == STRONG
    return int(strong and whole and flags >> SCOPE_AT & SCOPE_BITS >= GPU)


@jitable
def check_list(state: DetectorState, node: AccessNode, access_word: int, value: int) -> None:
    """Checks the current access, with access word `access_word`, which writes `value`, against each
    record (`check_record`, which reports races) of a linked list that begins with `node` (`node.at`
    0: empty)."""
    while node.at:
        check_record(state, node.interval, node.thread, node.access, node.value, access_word, value)
        node = AccessNode(state, node.next)


@jitable
def record_weak_write(
    state: DetectorState,
    cell: ShadowCell,
    bytes_: int,
    interval_word: int,
    thread_word: int,
    access_word: int,
    value: int,
) -> None:
    """Records a weak write of `value` to `bytes_`, given by the words of its record, as the cell's
    write record. Removes the reads and list records whose bytes it covers: an access that is
    ordered after this write is ordered after those, too, unless they race with it, which has been
    reported. The earlier write moves to the list if it has bytes that this one does not."""
    lists = cell.lists
    low, high = lists & LOW, lists >> 32
    if lists:
        low = drop_covered(state, low, bytes_)
        high = drop_covered(state, high, bytes_)
    if cell.write_interval and cell.write_access >> BYTES_AT & ALL_BYTES & ~bytes_:
        low = push_record(
            state,
            low,
            cell.write_interval,
            cell.write_thread,
            cell.write_access,
            cell.write_value,
        )
    # A read of bytes that this does not write has to be compared with later writes of those.
    if cell.read_interval and cell.read_access >> BYTES_AT & ALL_BYTES & ~bytes_ == 0:
        cell.read_interval = 0
    cell.lists = high << 32 | low
    cell.write_interval = interval_word
    cell.write_thread = thread_word
    cell.write_access = access_word
    cell.write_value = value


@jitable
def drop_covered(state: DetectorState, head: int, bytes_: int) -> int:
    """Returns the head of list `head` without the records whose bytes are all in the mask `bytes_`;
    their nodes are freed, and the others are in reverse order."""
    retained, node = 0, AccessNode(state, head)
    while node.at:
        following = node.next
        if node.access >> BYTES_AT & ALL_BYTES & ~bytes_:
            node.next = retained
            retained = node.at
        else:
            free_node(state, node)
        node = AccessNode(state, following)
    return int(retained)


@jitable
def record_weak_read(
    state: DetectorState, cell: ShadowCell, interval_word: int, thread_word: int, access_word: int
) -> None:
    """Records a weak read in a cell. It replaces the cell's read record if that is empty or
    redundant (`supersedes`), else a redundant record of the same bytes in the list (with `exact`
    among the first MERGE_DEPTH); else it becomes a new head of the list. Without `exact` two reads
    of the same bytes are enough: a third replaces the second if it is farther from the first
    (`thread_distance`: lane, warp, block), else is dropped. A later write that is ordered after
    both is ordered after all others. Stores in `current_distance` the distance between the two
    retained reads of the bytes, of which the one just written may be the second; 0 if there is only
    one, or if the cell's own record was written.

    Lanes 0 to 31 of warp 0 and lane 0 of warp 1 read a word: lane 0 of each warp is retained. Only
    a barrier of the block orders a write after both, and that orders it after the other 31 lanes,
    too.
    """
    read = read_of(cell)
    bytes_ = access_word >> BYTES_AT & ALL_BYTES
    state.current_distance = 0
    if read.interval == 0 or supersedes(state, read.interval, read.thread, read.access, bytes_):
        write_record(read, interval_word, thread_word, access_word)
        return
    # Indices of records; 0 for none.
    first_reader, second_reader, seen = 0, 0, 0
    if read.access >> BYTES_AT & ALL_BYTES == bytes_:
        first_reader = read.at
    lists = cell.lists
    node = AccessNode(state, lists & LOW)
    while node.at and second_reader == 0 and (seen < MERGE_DEPTH or state.exact == 0):
        record, node_access = ShadowRecord(node, node.at + AccessNode.interval), node.access
        is_read = node_access >> OP_AT & OP_BITS == LOAD and node_access >> FLAGS_AT & STRONG == 0
        if is_read and node_access >> BYTES_AT & ALL_BYTES == bytes_:
            if supersedes(state, record.interval, record.thread, node_access, bytes_):
                write_record(record, interval_word, thread_word, access_word)
                state.current_distance = distance_between(state, first_reader, record.at)
                return
            if first_reader == 0:
                first_reader = record.at
            elif state.exact == 0:
                second_reader = record.at
        node = AccessNode(state, node.next)
        seen += 1
    if second_reader == 0:
        # Into the list in the low half of `lists`; the high half stays. A read has no value: 0.
        cell.lists = lists >> 32 << 32 | push_record(
            state, lists & LOW, interval_word, thread_word, access_word, 0
        )
        state.current_distance = distance_between(
            state, first_reader, (cell.lists & LOW) + AccessNode.interval
        )
        return
    first_record = ShadowRecord(state, first_reader)
    if distance_between(state, first_reader, second_reader) < thread_distance(
        first_record.interval, first_record.thread, interval_word, thread_word
    ):
        write_record(ShadowRecord(state, second_reader), interval_word, thread_word, access_word)
    state.current_distance = distance_between(state, first_reader, second_reader)


@jitable
def write_of(cell: ShadowCell) -> ShadowRecord:
    """Returns the record of a cell's last weak write."""
    return ShadowRecord(cell, cell.at + ShadowCell.write_interval)


@jitable
def read_of(cell: ShadowCell) -> ShadowRecord:
    """Returns the record of a cell's weak read, which has no value."""
    return ShadowRecord(cell, cell.at + ShadowCell.read_interval)


@jitable
def write_record(
    record: ShadowRecord, interval_word: int, thread_word: int, access_word: int
) -> None:
    """Writes the three words of a record, without a value."""
    record.interval, record.thread, record.access = interval_word, thread_word, access_word


@jitable
def distance_between(state: DetectorState, left_at: int, right_at: int) -> int:
    """Returns the distance (`thread_distance`) of the threads of the access records at indices
    `left_at` and `right_at` of the state; 0 if `left_at` is 0, which means no record."""
    if left_at == 0:
        return 0
    left, right = ShadowRecord(state, left_at), ShadowRecord(state, right_at)
    return thread_distance(left.interval, left.thread, right.interval, right.thread)


@jitable
def max_distance(state: DetectorState) -> int:
    """Returns the largest `thread_distance` of two threads that can access the same memory of the
    current space: OTHER_BLOCK for global memory, else OTHER_WARP."""
    return OTHER_BLOCK if state.current_space == GLOBAL else OTHER_WARP


@jitable
def thread_distance(
    interval_word: int, thread_word: int, other_interval_word: int, other_thread_word: int
) -> int:
    """Returns the distance of the threads of two records, by their interval and thread words:
    SAME_WARP, OTHER_WARP or OTHER_BLOCK, which rise in this order. Of one block, a thread and an
    agent have the distance OTHER_WARP, whatever their warps."""
    if interval_word >> BLOCK_AT != other_interval_word >> BLOCK_AT:
        return OTHER_BLOCK
    a, b = thread_word & THREAD_BITS, other_thread_word & THREAD_BITS
    return OTHER_WARP if a >> 5 != b >> 5 else SAME_WARP


@jitable
def supersedes(
    state: DetectorState, interval_word: int, thread_word: int, access_word: int, bytes_: int
) -> int:
    """Returns whether the current access, to the bytes `bytes_`, makes an earlier record of its
    kind redundant: it accesses all bytes of that, and is ordered after it. A record of an agent (an
    asynchronous part of a thread) is only made redundant by the same agent's later work in tensor
    memory; a copy never, since copies may complete in any order."""
    if access_word >> BYTES_AT & ALL_BYTES & ~bytes_:
        return 0
    if thread_word & AGENT:
        # A later copy may complete before an earlier one, so it never replaces that.
        # Of its tensor memory, a thread or a warp waits for all that it has begun.
        agent = state.current_thread | state.current_agent
        same = (
            thread_word & AGENT_BITS == agent
            and interval_word >> BLOCK_AT == state.current_block + 1
        )
        return int(same and agent >> AGENT_KIND_AT != COPIES_OF_THREAD)
    return is_ordered(state, interval_word, thread_word)


@jitable
def record_strong_access(
    state: DetectorState,
    cell: ShadowCell,
    interval_word: int,
    thread_word: int,
    access_word: int,
    value: int,
) -> None:
    """Records a strong access, which writes `value`, in the cell's list of wide accesses
    (`is_strong_at_gpu_scope`), or in its list of all others. It replaces a record that is alike (of
    the same op, flags and bytes) and redundant (`supersedes`; with `exact` only the first
    MERGE_DEPTH are searched), else it becomes the new head. Without `exact`, two records that are
    alike are enough, as for weak reads: a third replaces the second if it is farther from the first
    (`thread_distance`), else is dropped."""
    lists = cell.lists
    at_gpu_scope, bytes_ = is_strong_at_gpu_scope(access_word), access_word >> BYTES_AT & ALL_BYTES
    head = lists >> 32 if at_gpu_scope else lists & LOW
    # Indices of records; 0 for none.
    first_at, second_at, seen = 0, 0, 0
    node = AccessNode(state, head)
    while node.at and second_at == 0 and (seen < MERGE_DEPTH or state.exact == 0):
        # Alike: no bit differs but those of the instruction.
        if (node.access ^ access_word) >> OP_AT == 0:
            record = ShadowRecord(node, node.at + AccessNode.interval)
            if supersedes(state, record.interval, record.thread, record.access, bytes_):
                write_record(record, interval_word, thread_word, access_word)
                record.value = value
                return
            if first_at == 0:
                first_at = record.at
            elif state.exact == 0:
                second_at = record.at
        node = AccessNode(state, node.next)
        seen += 1
    if second_at:
        first_record, second_record = ShadowRecord(state, first_at), ShadowRecord(state, second_at)
        if distance_between(state, first_at, second_at) < thread_distance(
            first_record.interval, first_record.thread, interval_word, thread_word
        ):
            write_record(second_record, interval_word, thread_word, access_word)
            second_record.value = value
        return
    head = push_record(state, head, interval_word, thread_word, access_word, value)
    cell.lists = head << 32 | lists & LOW if at_gpu_scope else lists >> 32 << 32 | head
