"""Records in the race detector the accesses of `tcgen05` instructions: to words of tensor memory,
and to bytes of shared memory.

Loads and stores are accesses by an agent of their warp (`agents`), allocations by the warp itself;
what the tensor core of a thread does is recorded by `tensor_core`.
"""

from __future__ import annotations

from typing import Any

from warploom.asynchronous.issue.allocation import ADDRESS_BYTES, is_size
from warploom.asynchronous.issue.tensor_memory import check_move, fill_entry, has_peer
from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensor_memory.fragments import column_in, lane_in
from warploom.asynchronous.tensor_memory.layout import (
    ALLOC,
    COLUMNS,
    COMMIT,
    FREE,
    HALVES,
    LANES,
    LOAD,
    OP,
    PAIR,
    REGISTERS,
    RELINQUISH,
    SHAPE,
    STORE,
)
from warploom.asynchronous.tensor_memory.memory import (
    column_of,
    lane_of,
    own_rank,
    to_tensor_memory,
)
from warploom.asynchronous.tensors.addresses import check_shared
from warploom.asynchronous.tensors.requests import field
from warploom.detector.accesses import read_host_word
from warploom.detector.copy_completion import signal_for_agent
from warploom.detector.detect import begin_event
from warploom.detector.knowledge import set_current_lane, set_current_thread
from warploom.detector.layout import LOAD as READS
from warploom.detector.layout import LOADS_OF_WARP, RACE, SHARED, STORES_OF_WARP
from warploom.detector.layout import STORE as WRITES
from warploom.detector.line_expansion import clear_cell
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    ShadowCell,
    ThreadKnowledge,
    WarpKnowledge,
)
from warploom.detector.shared_memory_owners import select_memory, select_memory_of_rank, shared_key
from warploom.detector.tensor.tensor_copies import act_as_agent, record_bytes
from warploom.detector.tensor.tensor_core import cell_of, record_tensor_core_op, record_words
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan

WARP_LANES = 32


def detect_tensor_memory(
    state_words: Any, event_words: Any, schedule: Any, memory: Any, all_memory: Any,
    issue_words: Any, values: Any,
) -> int:  # fmt: skip
    """Records what the lanes of an event do to tensor memory (`asynchronous.issue.tensor_memory`):
    by the function for its op, once for an op of the whole warp, else for each lane; loads, stores
    and deallocations only with RACE in `tools`. `all_memory` is the host's memory by address,
    `values` a buffer for stored bytes. Returns 0; faults, such as PAIR without a peer, are reported
    by the code that executes the request, and nothing is recorded for them, nor for RELINQUISH."""
    state, event = DetectorState(state_words, 0), DetectorEvent(event_words, 0)
    issue, plan = WarpIssue(issue_words, 0), Plan(schedule, 0)
    request = issue.request
    begin_event(state, event, plan)
    set_current_thread(state, event.warp << 5)
    event.base, event.limit = issue.own_shared, issue.shared_bytes
    op = field(request, OP)
    for lane in range(WARP_LANES):
        if event.lanes >> lane & 1 == 0 or op == RELINQUISH:
            continue
        if request & PAIR and not has_peer(issue, plan, op):
            return 0
        set_current_lane(state, (event.warp << 5) + lane)
        if op in (LOAD, STORE):
            if state.tools & RACE:
                record_move(state, event, memory, issue, lane)
        elif op == ALLOC:
            record_allocation(state, event, all_memory, issue, values, lane)
        elif op == FREE:
            if state.tools & RACE:
                record_deallocation(state, event, issue, lane)
        elif op == COMMIT:
            record_commit(state, event, all_memory, issue, lane)
        else:
            fill_entry(issue, lane)
            record_tensor_core_op(state, event, memory, all_memory, issue, values, lane)
        # Ops up to STORE are of the whole warp, with their operands in the lowest executing lane.
        if op <= STORE:
            return 0
    return 0


# ---- loads and stores ---------------------------------------------------------------------------


@jitable
def record_move(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, lane: int
) -> None:
    """Records a load or a store of tensor memory by a warp, with the operands of `lane`: each word
    that each thread's registers move, by the agent of the warp's loads or stores, whose count it
    advances. Nothing for a request that faults."""
    address, request = int(issue.tensor_operands.d[lane]), issue.request
    split = int(issue.tensor_operands.a[lane])
    shape, registers = field(request, SHAPE), request >> REGISTERS & 255
    halves = 2 if request & HALVES else 1
    start = issue.own_shared + to_tensor_memory(issue)
    if check_move(memory, issue, start, address, split):
        return
    stores = int(field(request, OP) == STORE)
    warp = WarpKnowledge(state, state.current_warp_at)
    set_current_lane(state, event.warp << 5)
    act_as_agent(state, STORES_OF_WARP if stores else LOADS_OF_WARP, warp.begun[stores])
    for register in range(registers):
        for thread in range(WARP_LANES):
            column = halves * column_in(shape, thread, register, 0)
            column += column_in(shape, thread, 0, split) - column_in(shape, thread, 0, 0)
            tensor_lane = lane_of(address) + lane_in(shape, thread, register)
            op = WRITES if stores else READS
            record_words(state, event, op, tensor_lane, column_of(address) + column, halves)
    warp.begun[stores] += 1


assert STORES_OF_WARP == LOADS_OF_WARP + 1


# ---- allocations --------------------------------------------------------------------------------


@jitable
def record_allocation(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, values: Any,
    lane: int,
) -> None:  # fmt: skip
    """Records the store by which `tcgen05.alloc` writes the address of its columns to shared
    memory, as the current thread's; nothing if that address would fault. Bytes of the thread's
    number are stored in `values` instead of the stored address."""
    target = int(issue.tensor_operands.shared[lane])
    if check_shared(issue, target, ADDRESS_BYTES):
        return
    for byte in range(ADDRESS_BYTES):
        values[lane * ADDRESS_BYTES + byte] = state.current_thread >> 8 * byte & 255
    at = select_memory(state, event, target)
    record_bytes(state, event, memory, values, lane, (SHARED, WRITES), at, ADDRESS_BYTES)


@jitable
def record_deallocation(
    state: DetectorState, event: DetectorEvent, issue: WarpIssue, lane: int
) -> None:
    """Records `tcgen05.dealloc` by the current thread as a write to all words of the columns that
    have records, which reports accesses not ordered before it; then clears their cells. Nothing for
    invalid sizes or columns."""
    address = int(issue.tensor_operands.d[lane])
    columns = int(issue.tensor_operands.columns[lane])
    if not is_size(columns) or column_of(address) + columns > COLUMNS:
        return
    select_memory_of_rank(state, event, own_rank(issue))
    for tensor_lane in range(LANES):
        for column in range(column_of(address), column_of(address) + columns):
            cell = ShadowCell(state, cell_of(state, tensor_lane, column))
            if cell.write_interval or cell.read_interval or cell.lists:
                record_words(state, event, WRITES, tensor_lane, column, 1)
                clear_cell(state, cell)


# ---- what completes later -----------------------------------------------------------------------


@jitable
def record_commit(
    state: DetectorState, event: DetectorEvent, memory: Any, issue: WarpIssue, lane: int
) -> None:
    """Processes `tcgen05.commit`: lets the threads that wait for its mbarrier know as complete all
    that the current thread's tensor core has begun. The mbarrier is in the block that the address
    names, the current one if it names none; with a mask at the same offset in each block of it.
    Does nothing if the 8 bytes of the mbarrier are out of bounds (`event.limit`: of shared memory,
    which is as large in each block of the mask)."""
    address = int(issue.tensor_operands.shared[lane])
    blocks = int(issue.tensor_operands.blocks[lane])
    at = select_memory(state, event, address)
    if at < 0 or at + 8 > event.limit:
        return
    # A tensor core completes its work in order, so the agent word has a bound alone: 1 plus the
    # number of the last work (from 1). `agent` is the word's index (`agent_index`): after those of
    # the copies of each thread.
    done = ThreadKnowledge(state, state.current_lane_at).works + 1
    agent = state.threads + state.current_thread
    if blocks == 0:
        signal_for_agent(
            state,
            shared_key(state, at),
            read_host_word(memory, state.current_base + at),
            agent,
            done,
        )
    for rank in range(state.cluster_blocks):
        if blocks >> rank & 1:
            select_memory_of_rank(state, event, rank)
            signal_for_agent(
                state,
                shared_key(state, at),
                read_host_word(memory, state.current_base + at),
                agent,
                done,
            )
