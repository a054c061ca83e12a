"""What instructions that wait for asynchronous copies do before they look: both machines call
these.

Nothing is kept, and nothing is to do, where copies complete as they are issued.
"""

from __future__ import annotations

from warploom.rules.distinct import Row, jitable
from warploom.rules.mbarrier import is_complete
from warploom.rules.plan_words import CHANGES
from warploom.rules.tensors.entries import (
    ARRIVAL,
    BARRIER,
    BYTES,
    COPY_GROUP,
    ENTRY_WORDS,
    FIRST_THREAD,
    GROUPS,
    KIND,
    ORIGIN,
    SHARED,
    SIZE,
    SOURCE,
    TARGET,
    TELLS,
    THREAD,
)
from warploom.rules.tensors.issue import check_shared, host_address, shared_base
from warploom.rules.tensors.queue import (
    COUNT,
    LANES,
    append,
    complete_barrier,
    complete_groups,
    end_group,
    make_room,
    retire,
)
from warploom.rules.tensors.requests import (
    BARRIER_ROW,
    GLOBAL_ROW,
    SHARED_ROW,
    SIZE_ROW,
    VALUE_ROW,
)
from warploom.rules.texels import Memory, read_bytes

END_GROUP, WAIT_GROUPS = range(2)


@jitable
def wait_copies(
    memory: Memory, data: Row, scratch: Row, plan: Row, queue: Row, work: Row,
    mask: int, by_parity: int,
) -> int:  # fmt: skip
    """Complete the copies for which lanes wait in vain: those that tell the mbarrier at which a
    lane looks, unless the phase is complete."""
    for lane in range(LANES):
        if (mask >> lane) & 1 and queue[COUNT] > 0:
            address = int(data[LANES * BARRIER_ROW + lane])
            if check_shared(scratch, address, 8) == 0:
                place = host_address(scratch, address)
                word = read_bytes(memory, place - ORIGIN, 8)
                if not is_complete(word, int(data[LANES * VALUE_ROW + lane]), by_parity):
                    plan[CHANGES] += complete_barrier(memory, queue, work, place)
    return 0


@jitable
def group_copies(
    memory: Memory, scratch: Row, plan: Row, queue: Row, work: Row,
    mask: int, groups: int, action: int, left: int,
) -> int:  # fmt: skip
    """End the groups of lanes, or complete all groups but the newest `left` of each (-1: and the
    copies that are in none)."""
    for lane in range(LANES):
        if (mask >> lane) & 1:
            thread = int(scratch[FIRST_THREAD]) + lane
            if action == END_GROUP:
                end_group(memory, queue, work, thread, groups)
            else:
                plan[CHANGES] += complete_groups(memory, queue, work, thread, groups, left)
    return 0


@jitable
def keep_bytes(
    memory: Memory, data: Row, scratch: Row, queue: Row, work: Row,
    mask: int, groups: int, reads_shared: int,
) -> int:  # fmt: skip
    """Keep copies of bytes between global memory (GLOBAL_ROW) and shared memory (SHARED_ROW), that
    have been checked and counted; SIZE_ROW of them, VALUE_ROW are told the mbarrier of BARRIER_ROW,
    if they are any."""
    for lane in range(LANES):
        if (mask >> lane) & 1:
            for word in range(ENTRY_WORDS):
                scratch[word] = 0
            shared = int(data[LANES * SHARED_ROW + lane])
            near, far = host_address(scratch, shared), int(data[LANES * GLOBAL_ROW + lane])
            scratch[KIND], scratch[GROUPS] = BYTES, groups
            scratch[THREAD] = int(scratch[FIRST_THREAD]) + lane
            scratch[SHARED] = shared_base(scratch, shared)
            scratch[SOURCE], scratch[TARGET] = (near, far) if reads_shared else (far, near)
            scratch[SIZE] = data[LANES * SIZE_ROW + lane]
            tells = int(data[LANES * VALUE_ROW + lane])
            if tells > 0:
                scratch[TELLS] = tells
                scratch[BARRIER] = host_address(scratch, int(data[LANES * BARRIER_ROW + lane]))
            make_room(memory, queue, work)
            append(queue, scratch)
    return 0


@jitable
def keep_arrivals(memory: Memory, data: Row, scratch: Row, queue: Row, work: Row, mask: int) -> int:
    """Keep arrivals at the mbarriers of BARRIER_ROW, behind the copies of their threads."""
    for lane in range(LANES):
        if (mask >> lane) & 1:
            for word in range(ENTRY_WORDS):
                scratch[word] = 0
            address = int(data[LANES * BARRIER_ROW + lane])
            scratch[KIND], scratch[GROUPS] = ARRIVAL, COPY_GROUP
            scratch[THREAD] = int(scratch[FIRST_THREAD]) + lane
            scratch[SHARED] = shared_base(scratch, address)
            scratch[BARRIER] = host_address(scratch, address)
            make_room(memory, queue, work)
            append(queue, scratch)
    return 0


@jitable
def retire_copies(memory: Memory, queue: Row, work: Row, start: int, end: int) -> int:
    """Complete or forget the copies of a block that has ended (`rules.tensors.queue.retire`)."""
    if queue[COUNT] > 0:
        retire(memory, queue, work, start, end)
    return 0
