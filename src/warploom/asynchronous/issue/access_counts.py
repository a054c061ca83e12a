"""Counts the accesses of asynchronous copies to global and shared memory: from a request and its
operands, adds requests, sectors and bytes to the copy's access record (`cost.fields`).

Parameters are those of `asynchronous.issue.tensor_copies`."""

from __future__ import annotations

from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensors.boxes import count_rows, find_row
from warploom.asynchronous.tensors.requests import GROUPED, MODE, field
from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Ints, jitable


@jitable
def count_box(issue: WarpIssue, global_record: Ints, shared_record: Ints) -> None:
    """Counts the access of the box in `issue`: one request to global memory, with the sectors and
    lines of those parts of its rows that lie in the tensor, and its bytes in shared memory (none
    for a prefetch)."""
    entry = issue.entry
    CostRecord(global_record, 0).requests += 1
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
    record: their 32-byte sectors to `sectors`, `transactions` and `transactions_32`, and 32 bytes
    for each to `bytes_moved`; their 128-byte lines to `lines`; and to `bytes_requested`. The caller
    counts the request."""
    costs = CostRecord(record, 0)
    sectors = ((end - 1) >> 5) - (start >> 5) + 1
    costs.sectors += sectors
    costs.lines += ((end - 1) >> 7) - (start >> 7) + 1
    costs.transactions += sectors
    costs.transactions_32 += sectors
    costs.bytes_requested += end - start
    costs.bytes_moved += 32 * sectors


@jitable
def count_shared(record: Ints, size: int) -> None:
    """Adds one request for `size` bytes of shared memory to the counters of a record:
    `bytes_requested` and `bytes_moved`, and a wavefront and a transaction for each 128 bytes begun;
    no bank conflicts."""
    costs = CostRecord(record, 0)
    costs.requests += 1
    costs.bytes_requested += size
    costs.bytes_moved += size
    costs.transactions += (size + 127) >> 7
    costs.wavefronts += (size + 127) >> 7


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
        CostRecord(global_record, 0).requests += 1
        count_global(global_record, global_address, global_address + size)
    count_shared(shared_record, size)
