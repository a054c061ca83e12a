"""Counts the accesses of asynchronous copies to global and shared memory (`cost.fields`).
Parameters as in `asynchronous.issue.tensor_copies`."""

from __future__ import annotations

from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensors.boxes import count_rows, find_row
from warploom.asynchronous.tensors.requests import GROUPED, MODE, field
from warploom.cost.fields import (
    BYTES_MOVED,
    BYTES_REQUESTED,
    LINES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    TRANSACTIONS_32,
    WAVEFRONTS,
)
from warploom.simt.lane_counts import Ints, jitable


@jitable
def count_box(issue: WarpIssue, global_record: Ints, shared_record: Ints) -> None:
    """Counts the access of the box in `issue`: one request to global memory, with the sectors and
    lines of those parts of its rows that lie in the tensor, and its bytes in shared memory (none
    for a prefetch)."""
    entry = issue.entry
    global_record[REQUESTS] += 1
    for row in range(count_rows(entry)):
        find_row(entry, row)
        start = entry.row_address
        if entry.row_to > entry.row_from:
            count_global(global_record, start + entry.row_from, start + entry.row_to)
    if entry.size > 0:
        count_shared(shared_record, entry.size)


@jitable
def count_global(record: Ints, start: int, end: int) -> None:
    """Adds the bytes of global memory from `start` up to `end` (not equal) to the counters of a
    record: their 32-byte sectors to SECTORS, TRANSACTIONS and TRANSACTIONS_32, and 32 bytes for
    each to BYTES_MOVED; their 128-byte lines to LINES; and to BYTES_REQUESTED. The caller counts
    the request."""
    sectors = ((end - 1) >> 5) - (start >> 5) + 1
    record[SECTORS] += sectors
    record[LINES] += ((end - 1) >> 7) - (start >> 7) + 1
    record[TRANSACTIONS] += sectors
    record[TRANSACTIONS_32] += sectors
    record[BYTES_REQUESTED] += end - start
    record[BYTES_MOVED] += 32 * sectors


@jitable
def count_shared(record: Ints, size: int) -> None:
    """Adds one request for `size` bytes of shared memory to the counters of a record:
    BYTES_REQUESTED and BYTES_MOVED, and a wavefront and a transaction for each 128 bytes begun; no
    bank conflicts."""
    record[REQUESTS] += 1
    record[BYTES_REQUESTED] += size
    record[BYTES_MOVED] += size
    record[TRANSACTIONS] += (size + 127) >> 7
    record[WAVEFRONTS] += (size + 127) >> 7


@jitable
def count_bytes(issue: WarpIssue, global_record: Ints, shared_record: Ints) -> None:
    """Counts the bulk copy in `issue`: a request to global memory if one operand is global, and
    one to shared memory (one even if both operands are shared). Nothing for size 0."""
    entry = issue.entry
    size, request = entry.size, entry.request
    if size == 0:
        return
    if field(request, MODE):
        global_address = entry.target if field(request, GROUPED) else entry.source
        global_record[REQUESTS] += 1
        count_global(global_record, global_address, global_address + size)
    count_shared(shared_record, size)
