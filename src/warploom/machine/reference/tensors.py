"""Executes copies of tensors and waits for asynchronous copies on the reference machine: passes
operand rows (one word per lane for each operand) to `asynchronous`, which does the work."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.issue.allocation import find_unfreed
from warploom.asynchronous.issue.tensor_copies import issue_copies
from warploom.asynchronous.issue.waits import group_copies, retire_copies, wait_copies
from warploom.asynchronous.late_copies.hold import defer_copies, hold_copies
from warploom.asynchronous.records import CopyOperands, PendingList, RequestQueue, WarpIssue
from warploom.core.errors import Allocation
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Address, Instruction, Operand, Space
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import shared_stride
from warploom.machine.memory.host_memory import host_memory
from warploom.machine.reference.lane_access import LANES
from warploom.machine.reference.lanes import Values, resized
from warploom.machine.reference.operands import WINDOWS, addresses, read
from warploom.machine.reference.state import LaunchState, ThreadBlock, Warp
from warploom.program.effects.tensor_waits import group_request, late_copy, wait_request
from warploom.program.requests.tensor_memory import work_words
from warploom.program.requests.tensors import tensor_request
from warploom.simt.clusters import live_blocks
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

THREADS = 64
"""The number of threads that `first_thread` reserves for each warp, and of warps for each block."""


def execute_tensor_request(
    warp: Warp, index: int, instruction: Instruction, mask: int, _on: Values
) -> None:
    """Executes any operation of `isa.ops.tensors` (tensor and bulk copies, reductions, prefetches,
    `tensormap.replace`) in the lanes of `mask`, 32 lanes at a time. Converts its operands to rows,
    one for each, reports it to the sanitizer, and issues it. Raises the fault that `issue_copies`
    records in the issue; lower lanes have taken effect then."""
    request = tensor_request(instruction)
    operand_rows = np.zeros((CopyOperands.WORDS // LANES, warp.size), np.int64)
    for row, operand, type in request.inputs:
        if type is None:
            window = WINDOWS.get(request.map_space, 0) if row == CopyOperands.map else 0
            values = np.array(_addresses(warp, operand), np.uint64) + np.uint64(window)
        else:
            values = resized(read(warp, operand, type), 64, sign=type.is_signed)
        operand_rows[row // LANES] = values.view(np.int64)
    rows = access_record(warp, index, Space.GLOBAL), access_record(warp, index, Space.SHARED)
    table = warp.run.memory.table_in_launch()
    # `issue_copies` processes 32 lanes, also in a warp of 64.
    for first_lane in range(0, warp.size, LANES):
        issue = new_issue(warp, first_lane, mask, operand_rows)
        issue.request, issue.allocations = request.request, table.count
        if warp.run.sanitizer is not None and issue.mask:
            warp.run.sanitizer.copies(warp, index, issue)
        plan, queue = warp.run.plan.words, warp.run.queue
        with np.errstate(all="ignore"):
            failed = issue_copies(host_memory(), issue.words, table.rows, *rows, plan, queue)
        if failed:
            raise tensor_fault(warp, index, first_lane, issue)


def new_issue(
    warp: Warp, first_lane: int, mask: int = 0, operand_rows: Words | None = None
) -> WarpIssue:
    """Returns the issue of an instruction by those of a warp's lanes `mask` that are among the 32
    from `first_lane` on, with `operand_rows`, shape (rows, lanes). It has addresses, stride and
    size of the shared memory of block and cluster; the cluster's live blocks; and the numbers of
    block, warp and first thread. Work space follows it."""
    block, run = warp.block, warp.run
    words = np.zeros(WarpIssue.WORDS + work_words(run.program.has_tensor_memory), np.int64)
    if operand_rows is not None:
        lanes = operand_rows[:, first_lane : first_lane + LANES].reshape(-1)
        words[: len(lanes)] = lanes
    issue, cluster = WarpIssue(words, 0), int(block.cluster.ctypes.data)
    issue.mask = mask >> first_lane & ALL_LANES
    stride = shared_stride(run.program, run.launch)
    issue.own_shared = cluster + block.rank * stride
    issue.cluster_shared, issue.shared_stride = cluster, stride
    issue.shared_bytes = len(block.shared)
    issue.live_blocks = live_blocks(run.plan, run.slots)
    issue.block, issue.warp = block.number, warp.number
    threads = (block.number * THREADS + warp.number) * THREADS
    issue.first_thread = threads + first_lane
    return issue


def _addresses(warp: Warp, operand: Operand) -> list[int]:
    """Returns the address of each lane for an address operand."""
    assert isinstance(operand, Address)
    return addresses(warp, operand)


def access_record(warp: Warp, index: int, space: Space) -> Words:
    """Returns the access record of an instruction for a space, to be added to; a new one that
    nobody reads if its accesses are not counted."""
    number = warp.run.record_numbers.get((index, space))
    return (
        np.zeros(CostRecord.WORDS, np.int64) if number is None else warp.run.tally.records[number]
    )


def tensor_fault(warp: Warp, index: int, first_lane: int, issue: WarpIssue) -> Exception:
    """Returns the error of the fault that an issue of the lanes from `first_lane` on records."""
    lane, in_shared = first_lane + issue.fault_lane, issue.fault_in_shared
    space = Space.SHARED if in_shared else Space.GLOBAL
    address, size, kind = issue.fault_address, issue.fault_size, FaultKind(issue.fault_kind)
    fault = Fault(kind, index, warp.block.number, warp.number, lane, address, size, space)
    run = warp.run
    shared_memory = Allocation(0, len(warp.block.shared), "the block's shared memory")
    nearest = shared_memory if in_shared else run.memory.nearest(address)
    return fault_error(fault, run.program, run.launch, nearest)


# ---- waits --------------------------------------------------------------------------------------


def before_wait(warp: Warp, instruction: Instruction, mask: int) -> None:
    """Completes, before an instruction tests an mbarrier's phase in the lanes of `mask`, the late
    copies that the phase depends on (`asynchronous.issue.waits`); nothing for other instructions,
    or without incomplete copies."""
    request = wait_request(instruction)
    if request is None or not _has_incomplete_copies(warp.run):
        return
    operand_rows = np.zeros((CopyOperands.WORDS // LANES, warp.size), np.int64)
    operand_rows[CopyOperands.barrier // LANES] = np.array(
        _addresses(warp, request.barrier), np.uint64
    ).view(np.int64)
    operand_rows[CopyOperands.value // LANES] = resized(
        read(warp, request.value, request.type), 64
    ).view(np.int64)
    for first_lane in range(0, warp.size, LANES):
        issue, run = new_issue(warp, first_lane, mask, operand_rows), warp.run
        arrays = (host_memory(), issue.words, run.plan.words, run.queue, run.held)
        wait_copies(*arrays, int(request.by_parity))


def commit_or_wait(warp: Warp, instruction: Instruction, mask: int) -> None:
    """Commits a group of copies of the lanes of `mask`, or completes the groups that an instruction
    waits for (`group_copies`); nothing for other instructions, or without incomplete copies."""
    request = group_request(instruction)
    if request is None or not _has_incomplete_copies(warp.run):
        return
    for first_lane in range(0, warp.size, LANES):
        issue, run = new_issue(warp, first_lane, mask), warp.run
        arrays = (host_memory(), issue.words, run.plan.words, run.queue, run.held)
        group_copies(*arrays, request.action, request.left, request.groups)


def shared_range(run: LaunchState, block: ThreadBlock) -> range:
    """Returns the host addresses of a thread block's shared memory."""
    stride = shared_stride(run.program, run.launch)
    start = int(block.cluster.ctypes.data) + block.rank * stride
    return range(start, start + stride)


def check_freed(run: LaunchState, block: ThreadBlock) -> None:
    """Raises the fault of tensor memory that a thread block which has ended has not freed."""
    start, stride = shared_range(run, block).start, shared_stride(run.program, run.launch)
    if run.program.has_tensor_memory:
        leaking = np.zeros(1, np.int64)
        unfreed = find_unfreed(host_memory(), start, stride, count=1, block=leaking)
        if unfreed:
            # The result is 1 plus the index of the instruction; warp and lane do not matter.
            kind, index = FaultKind.STILL_ALLOCATED, unfreed - 1
            fault = Fault(kind, index, block.number, warp=0, lane=0, space=Space.SHARED)
            raise fault_error(fault, run.program, run.launch, None)


def retire(run: LaunchState, addresses: range) -> None:
    """Completes the late copies in bulk groups (from shared to global memory) of thread blocks that
    have ended, whose shared memory is at these host addresses, in the order in which they were
    issued; drops their other copies and their late stores to tensor memory."""
    if RequestQueue(run.queue, 0).stores or _has_incomplete_copies(run):
        work = np.zeros(work_words(run.program.has_tensor_memory), np.int64)
        ends = addresses.start, addresses.stop
        retire_copies(host_memory(), run.queue, run.held, work, *ends)


def _has_incomplete_copies(run: LaunchState) -> bool:
    """Returns true if any copy is incomplete; late stores to tensor memory do not count."""
    return RequestQueue(run.queue, 0).count + PendingList(run.held, 0).count > 0


# ---- copies of lanes ----------------------------------------------------------------------------


NO_BARRIER = -1
"""The address, in `CopyOperands.barrier`, of a copy that signals no mbarrier."""


@contextmanager
def deferring(
    warp: Warp, instruction: Instruction, mask: int, rows: Mapping[int, Words]
) -> Generator[None]:
    """Wraps statements that perform copies of the lanes of `mask`. Under a policy other than the
    default, in warps of 32 lanes, `hold_copies` may complete the copies late: then the bytes that
    they overwrite are saved before the statements and restored after them, and the copies are put
    into the list of incomplete ones (`run.held`). Else, and for an instruction that is no such
    copy, only the statements run. `rows` are operands of `hold_copies`, by offset."""
    copy, run = late_copy(instruction), warp.run
    # Without shuffling, copies complete at once.
    if copy is None or not run.launch.schedule.shuffles or warp.size != LANES:
        yield
        return
    operand_rows = np.zeros((CopyOperands.WORDS // LANES, LANES), np.int64)
    operand_rows[CopyOperands.barrier // LANES] = NO_BARRIER  # unless `rows` has one
    for row, values in rows.items():
        operand_rows[row // LANES] = values
    table, issue = run.memory.table_in_launch(), new_issue(warp, 0, mask, operand_rows)
    issue.allocations = table.count
    arrays = (host_memory(), issue.words, table.rows, run.plan.words, run.held)
    is_held = hold_copies(*arrays, copy.action, copy.groups)
    # An exception in the statements ends the launch, so the entry that was begun may stay.
    yield
    if is_held:
        defer_copies(host_memory(), run.plan.words, run.held)


def address_words(warp: Warp, operand: Operand) -> Words:
    """Returns the addresses of an operand by lane, as signed 64-bit words."""
    return np.array(_addresses(warp, operand), np.uint64).view(np.int64)
