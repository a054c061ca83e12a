"""Records in the race detector the accesses of TMA's tensor copies: the rows of each box in global
memory, and its bytes in shared memory. Copies and reductions of contiguous bytes, which the same
unit executes, are recorded likewise.

    cp.async.bulk [shared + 0], [a], 64, [mbar]:
      reads of a to a + 64 and writes of shared bytes 0 to 64, 16 bytes at a time, by the agent of
      the issuing thread; then its copy number is added to the phase of mbar
"""

from __future__ import annotations

from typing import Any

from warploom.asynchronous.issue.box_copies import prepare_box
from warploom.asynchronous.issue.tensor_copies import prepare_bytes
from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensors.boxes import count_rows, find_row
from warploom.asynchronous.tensors.cancel import prepare_response
from warploom.asynchronous.tensors.entries import BOX_COPY
from warploom.asynchronous.tensors.requests import (
    CANCEL,
    COPY_BYTES,
    GROUPED,
    LOAD,
    MODE,
    OP,
    PAIR,
    REDUCE,
    REDUCE_BYTES,
    STORE,
    field,
)
from warploom.detector.accesses import read_host_word
from warploom.detector.bounds import find_allocation
from warploom.detector.copy_completion import signal_mbarrier
from warploom.detector.detect import begin_event
from warploom.detector.knowledge import set_current_lane, set_current_thread
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    COPIES_OF_THREAD,
    GLOBAL,
    INIT,
    RACE,
    SHARED,
)
from warploom.detector.layout import ATOMIC as UPDATES
from warploom.detector.layout import LOAD as READS
from warploom.detector.layout import STORE as WRITES
from warploom.detector.memory_words import check_words, check_written
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    ThreadKnowledge,
    TrackedAllocation,
)
from warploom.detector.shared_memory_owners import (
    select_memory_of_rank,
    select_own_memory,
    shared_key,
)
from warploom.detector.touched import record_touched_lane
from warploom.simt.clusters import MOST_BLOCKS
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan

LANES = 32
PIECE = 16
"""Bytes that are recorded at once."""


def detect_copies(
    state_words: Any, event_words: Any, schedule: Any, memory: Any, all_memory: Any,
    issue_words: Any, allocations: Any, values: Any,
) -> int:  # fmt: skip
    """Records the copies that the lanes of an event issue (`asynchronous.issue.tensor_copies`);
    prefetches and changes of tensor maps are ignored. `all_memory` is the host's memory by address;
    `values` is a buffer for the bytes that lanes store, which is filled with a number of the copy
    instead of its bytes. Returns 0. A copy that would fault is skipped: the code that executes it
    reports that."""
    state, event = DetectorState(state_words, 0), DetectorEvent(event_words, 0)
    issue = WarpIssue(issue_words, 0)
    entry, op = issue.entry, field(issue.request, OP)
    boxes = op in (LOAD, STORE, REDUCE)
    if not boxes and op not in (COPY_BYTES, REDUCE_BYTES, CANCEL):
        return 0
    begin_event(state, event, Plan(schedule, 0))
    set_current_thread(state, event.warp << 5)
    for lane in range(LANES):
        if (event.lanes >> lane) & 1 == 0:
            continue
        entry.request, entry.barrier = issue.request, 0
        if boxes:
            failed = prepare_box(memory, issue, allocations, lane)
        elif op == CANCEL:
            failed = prepare_response(memory, issue, lane)
        else:
            failed = prepare_bytes(memory, issue, allocations, lane)
        if failed:
            continue
        set_current_lane(state, (event.warp << 5) + lane)
        act_as_agent(state, COPIES_OF_THREAD, ThreadKnowledge(state, state.current_lane_at).copies)
        event.base, event.limit = issue.own_shared, issue.shared_bytes
        record_copy(state, event, all_memory, issue, values, lane)
    return 0


@jitable
def record_copy(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, values: Any,
    lane: int,
) -> None:  # fmt: skip
    """Records the accesses of the copy whose entry is in `issue`, in global or remote memory and in
    the shared memory of each block of its multicast mask (0: of the block that the address is in).
    Records its signals to mbarriers: one in each of these blocks, or with PAIR and a mask in the
    first block of each one's pair. If it signals any, the thread's next copy begins. A number of
    the copy is stored in `values` instead of its bytes."""
    entry, blocks = issue.entry, int(issue.operands.blocks[lane])
    # Two copies that write the same bytes must differ, or a race would be reported as "same-value":
    # the copy's number, the thread from bit 8 on, the block from bit 18 on.
    copy = (
        ThreadKnowledge(state, state.current_lane_at).copies
        + 1
        + (state.current_thread << 8)
        + (state.current_block << 18)
    )
    for byte in range(PIECE):
        values[lane * PIECE + byte] = copy >> 8 * (byte & 3) & 255
    record_other_operand(state, event, memory, issue, values, lane)
    op = WRITES if field(entry.request, GROUPED) == 0 else READS
    if field(entry.request, OP) == REDUCE_BYTES and op == WRITES:
        op = UPDATES
    own_address = entry.source if op == READS and entry.kind != BOX_COPY else entry.target
    own_rank = rank_of(issue, own_address)
    for rank in range(state.cluster_blocks):
        if (blocks >> rank if blocks else int(rank == own_rank)) & 1:
            select_memory_of_rank(state, event, rank)
            start = own_address - base_of(issue, own_rank)
            record_bytes(state, event, memory, values, lane, (SHARED, op), start, entry.size)
    if entry.barrier == 0:
        return
    signalled = rank_of(issue, entry.barrier)
    at = entry.barrier - base_of(issue, signalled)
    for rank in range(state.cluster_blocks):
        if (blocks >> rank if blocks else int(rank == signalled)) & 1:
            signalled_rank = rank & ~1 if blocks and field(entry.request, PAIR) else rank
            select_memory_of_rank(state, event, signalled_rank)
            signal_mbarrier(
                state, shared_key(state, at), read_host_word(memory, state.current_base + at)
            )
    ThreadKnowledge(state, state.current_lane_at).copies += 1


@jitable
def rank_of(issue: WarpIssue, address: int) -> int:
    """Returns the rank, in the current cluster, of the block in whose part of the cluster's shared
    memory a host address lies (parts are `shared_stride` bytes long); -1 if there is none or that
    block does not run."""
    offset = address - issue.cluster_shared
    if offset < 0:
        return -1
    rank = offset // max(issue.shared_stride, 1)
    return rank if rank < MOST_BLOCKS and issue.live_blocks >> rank & 1 else -1


@jitable
def base_of(issue: WarpIssue, rank: int) -> int:
    """Returns the host address of the shared memory of the block at `rank` of the cluster."""
    return issue.cluster_shared + rank * issue.shared_stride


@jitable
def record_other_operand(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, values: Any,
    lane: int,
) -> None:  # fmt: skip
    """Records the accesses of the copy in `issue` on the side that is not the own shared memory:
    global memory, row by row for a box, or another block's shared memory. A store (GROUPED) writes
    or updates there, a load reads; a request to cancel a cluster (CANCEL) accesses nothing."""
    entry = issue.entry
    grouped, request_op = field(entry.request, GROUPED), field(entry.request, OP)
    if request_op == CANCEL:
        return
    op = WRITES if grouped else READS
    if request_op == REDUCE or (request_op == REDUCE_BYTES and grouped):
        op = UPDATES
    if entry.kind == BOX_COPY:
        select_own_memory(state, event)
        for row in range(count_rows(entry)):
            find_row(entry, row)
            row_start, row_end = entry.row_from, entry.row_to
            start = entry.row_address + row_start
            record_bytes(
                state, event, memory, values, lane, (GLOBAL, op), start, row_end - row_start
            )
        return
    remote_address = entry.target if grouped else entry.source
    rank = -1 if field(entry.request, MODE) else rank_of(issue, remote_address)
    if rank < 0:
        record_bytes(state, event, memory, values, lane, (GLOBAL, op), remote_address, entry.size)
        return
    select_memory_of_rank(state, event, rank)
    start = remote_address - base_of(issue, rank)
    record_bytes(state, event, memory, values, lane, (SHARED, op), start, entry.size)


@jitable
def act_as_agent(state: DetectorState, kind: int, time: int) -> None:
    """Makes an asynchronous part of the current thread (its agent of a kind: COPIES_OF_THREAD, ...)
    the one whose accesses are recorded (`current_agent`); `time`, stored as `current_time`, is the
    number of its copy or work, instead of the thread's time. Valid until the current lane is set
    again."""
    state.current_agent, state.current_time = AGENT | kind << AGENT_KIND_AT, time


@jitable
def record_bytes(
    state: DetectorState,
    event: DetectorEvent,
    memory: Any,
    values: Any,
    lane: int,
    access: Any,
    start: int,
    size: int,
) -> None:
    """Records an access of the current thread or its agent to `size` contiguous bytes from `start`
    on, in aligned pieces of PIECE bytes: touched bytes, unwritten ones (INIT), races (RACE).
    `access` is a space and an op; `values` has the stored bytes of `lane`, the same for each piece.
    Pieces that begin in no global allocation are skipped. Overwrites space, op and sizes of `event`
    and of the current access."""
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    event.space, event.op = access
    state.current_space = event.space
    if event.space == GLOBAL:
        state.current_base = 0
    at, end = start, start + size
    while at < end:
        size = min(PIECE - at % PIECE, end - at)
        event.size = event.part = state.current_size = size
        state.current_address = at
        # Shared memory has no record of an allocation.
        allocation = TrackedAllocation(state, 1)
        if event.space == GLOBAL:
            allocation = TrackedAllocation(state, find_allocation(state, at))
        if allocation.at > 0:
            writes = int(event.op != READS)
            record_touched_lane(state, event, allocation, writes)
            if state.tools & INIT:
                check_written(state, event, flags, allocation)
            if state.tools & RACE:
                # Lanes' addresses are only used for runs, and no run is of a copy: the event's
                # words are passed instead.
                check_words(state, event, memory, event.words, values, lane, allocation, writes)
        at += size
