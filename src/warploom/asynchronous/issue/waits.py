"""Completes late copies before an instruction that waits for them looks: both machines call these.

Nothing is kept, and nothing is to do, where copies complete as they are issued.
"""

from __future__ import annotations

from warploom.asynchronous.issue.late_stores import forget_stores
from warploom.asynchronous.issue.queue import (
    COUNT,
    LANES,
    STORES,
    complete_barrier,
    complete_groups,
    end_group,
    retire,
)
from warploom.asynchronous.late_copies.complete import (
    complete_at_barrier,
    complete_groups_held,
    retire_held,
)
from warploom.asynchronous.late_copies.entries import BULK_GROUP
from warploom.asynchronous.late_copies.entries import COUNT as HELD_COUNT
from warploom.asynchronous.late_copies.hold import end_held_group
from warploom.asynchronous.mbarrier import is_complete
from warploom.asynchronous.tensors.addresses import check_shared, host_address
from warploom.asynchronous.tensors.entries import (
    FIRST_THREAD,
    ORIGIN,
)
from warploom.asynchronous.tensors.requests import (
    BARRIER_ROW,
    VALUE_ROW,
)
from warploom.simt.lane_counts import Row, jitable
from warploom.simt.schedule_layout import CHANGES
from warploom.texture.texels import Memory, read_bytes

END_GROUP, WAIT_GROUPS = range(2)


@jitable
def wait_copies(
    memory: Memory, data: Row, scratch: Row, plan: Row, queue: Row, held: Row, work: Row,
    mask: int, by_parity: int,
) -> int:  # fmt: skip
    """Complete the copies for which lanes wait in vain: those that tell the mbarrier at which a
    lane looks, unless the phase is complete."""
    for lane in range(LANES):
        if (mask >> lane) & 1 and (queue[COUNT] > 0 or held[HELD_COUNT] > 0):
            address = int(data[LANES * BARRIER_ROW + lane])
            if check_shared(scratch, address, 8) == 0:
                place = host_address(scratch, address)
                word = read_bytes(memory, place - ORIGIN, 8)
                wanted = int(data[LANES * VALUE_ROW + lane])
                if not is_complete(word, wanted, by_parity):
                    plan[CHANGES] += complete_barrier(memory, queue, work, place)
                    word = read_bytes(memory, place - ORIGIN, 8)
                if not is_complete(word, wanted, by_parity):
                    plan[CHANGES] += complete_at_barrier(memory, held, place)
    return 0


@jitable
def group_copies(
    memory: Memory, scratch: Row, plan: Row, queue: Row, held: Row, work: Row,
    mask: int, action: int, left: int, groups: int,
) -> int:  # fmt: skip
    """End the groups of lanes, or complete all groups but the newest `left` of each; -1: also
    copies that are in no group."""
    if held[HELD_COUNT] > 0:
        if action == END_GROUP:
            end_held_group(memory, scratch, held, mask, groups)
        else:
            thread = int(scratch[FIRST_THREAD])
            plan[CHANGES] += complete_groups_held(memory, held, thread, mask, groups, left)
    if groups != BULK_GROUP or queue[COUNT] == 0:
        return 0
    for lane in range(LANES):
        if (mask >> lane) & 1:
            thread = int(scratch[FIRST_THREAD]) + lane
            if action == END_GROUP:
                end_group(memory, queue, work, thread)
            else:
                plan[CHANGES] += complete_groups(memory, queue, work, thread, left)
    return 0


@jitable
def retire_copies(memory: Memory, queue: Row, held: Row, work: Row, start: int, end: int) -> int:
    """Complete or forget the copies of a block that has ended
    (`asynchronous.issue.queue.retire`)."""
    if queue[COUNT] > 0:
        retire(memory, queue, work, start, end)
    if queue[STORES] > 0:
        forget_stores(queue, start, end)
    if held[HELD_COUNT] > 0:
        retire_held(memory, held, start, end)
    return 0
