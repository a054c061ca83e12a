"""Completes late copies before an instruction that waits for them (mbarrier waits, `wait_group`),
and when their block ends; the interpreter and compiled kernels call these functions. They read a
warp's operands, perform the copies that these wait for in memory, signal their mbarriers, and
remove them from the two lists of late copies.

There is nothing to do if copies complete at issue. `queue` holds requests of TMA and `tcgen05`
(`asynchronous.issue.queue`), `pending` all other copies (`asynchronous.late_copies`).
"""

from __future__ import annotations

from warploom.asynchronous.issue.late_stores import drop_stores
from warploom.asynchronous.issue.queue import (
    complete_groups,
    complete_mbarrier_copies,
    end_group,
    remove_requests_of_block,
)
from warploom.asynchronous.late_copies.complete import (
    complete_pending_groups,
    complete_pending_of_mbarrier,
    retire_pending,
)
from warploom.asynchronous.late_copies.entries import BULK_GROUP
from warploom.asynchronous.late_copies.hold import end_pending_group
from warploom.asynchronous.mbarrier import is_complete
from warploom.asynchronous.records import (
    LANES,
    PendingList,
    ProductWork,
    RequestQueue,
    WarpIssue,
    work_of,
)
from warploom.asynchronous.tensors.addresses import check_shared, host_address
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, read_bytes

END_GROUP, WAIT_GROUPS = range(2)


@jitable
def wait_copies(
    memory: Memory, issue_words: Ints, schedule: Ints, queue_words: Ints, pending_words: Ints,
    by_parity: int,
) -> int:  # fmt: skip
    """Prepares `mbarrier.test_wait` or `try_wait` of a warp: for each of its lanes whose awaited
    phase is incomplete, completes the late copies that signal its mbarrier until the phase
    completes, first those in `queue`, then those in `pending`. Skips an mbarrier at a bad address,
    which the wait itself reports. `by_parity` is 1 if operands are phase parities, 0 for the tokens
    of arrivals. Counts each completed copy as a change of memory in `plan`. Returns 0."""
    issue, plan = WarpIssue(issue_words, 0), Plan(schedule, 0)
    queue, pending = RequestQueue(queue_words, 0), PendingList(pending_words, 0)
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 and (queue.count > 0 or pending.count > 0):
            address = int(issue.operands.barrier[lane])
            if check_shared(issue, address, 8) == 0:
                mbarrier_address = host_address(issue, address)
                word = read_bytes(memory, mbarrier_address - ORIGIN, 8)
                wanted = int(issue.operands.value[lane])
                if not is_complete(word, wanted, by_parity):
                    plan.changes += complete_mbarrier_copies(
                        memory, queue, work_of(issue), mbarrier_address
                    )
                    word = read_bytes(memory, mbarrier_address - ORIGIN, 8)
                if not is_complete(word, wanted, by_parity):
                    plan.changes += complete_pending_of_mbarrier(memory, pending, mbarrier_address)
    return 0


@jitable
def group_copies(
    memory: Memory, issue_words: Ints, schedule: Ints, queue_words: Ints, pending_words: Ints,
    action: int, left: int, groups: int,
) -> int:  # fmt: skip
    """Ends the current group of copies of each lane that issues (`action` END_GROUP:
    `commit_group`), or completes all groups except the newest `left` (WAIT_GROUPS: `wait_group`;
    -1: also copies in no group), which counts as changes of memory in `plan`. `groups` is the kind
    of group: only BULK_GROUP has entries in `queue`, all kinds in `pending`; an empty list stays
    empty. Returns 0."""
    issue, plan = WarpIssue(issue_words, 0), Plan(schedule, 0)
    queue, pending = RequestQueue(queue_words, 0), PendingList(pending_words, 0)
    mask, work = issue.mask, work_of(issue)
    if pending.count > 0:
        if action == END_GROUP:
            end_pending_group(memory, issue, pending, mask, groups)
        else:
            thread = issue.first_thread
            plan.changes += complete_pending_groups(memory, pending, thread, mask, groups, left)
    if groups != BULK_GROUP or queue.count == 0:
        return 0
    for lane in range(LANES):
        if (mask >> lane) & 1:
            thread = issue.first_thread + lane
            if action == END_GROUP:
                end_group(memory, queue, work, thread)
            else:
                plan.changes += complete_groups(memory, queue, work, thread, left)
    return 0


@jitable
def retire_copies(
    memory: Memory, queue_words: Ints, pending_words: Ints, work_words: Ints, start: int, end: int
) -> int:
    """Removes the late copies of a block that has ended, whose shared memory is at host addresses
    from `start` up to `end`: completes those to global memory, drops those into shared or tensor
    memory. Returns 0."""
    queue, pending = RequestQueue(queue_words, 0), PendingList(pending_words, 0)
    work = ProductWork(work_words, 0)
    if queue.count > 0:
        remove_requests_of_block(memory, queue, work, start, end)
    if queue.stores > 0:
        drop_stores(queue, start, end)
    if pending.count > 0:
        retire_pending(memory, pending, start, end)
    return 0
