"""Executes asynchronous requests of TMA and `tcgen05`, and stores those that complete late in a
queue until a thread waits for them; for both machines.

A queue is an array of 64-bit words that lives as long as one worker's launch: the number of
entries, then entries in order of issue (`asynchronous.tensors.entries`). It is empty unless the
schedule completes late (`simt.product_groups`). An entry completes when a thread waits for the
mbarrier that the entry signals and its phase is incomplete, when its thread waits for its bulk
group, when its block ends, when the launch ends, or when the queue is full.

    issue: append(entry)  ->  mbarrier.try_wait: complete_mbarrier_copies  ->  data and signal
"""

from __future__ import annotations

from warploom.asynchronous import mbarrier
from warploom.asynchronous.records import ProductWork, RequestEntry, RequestQueue
from warploom.asynchronous.tensor_memory.copies import copy_matrix, shift_rows
from warploom.asynchronous.tensor_memory.layout import ARRIVAL, PRODUCT, ROW_SHIFT, TENSOR_COPY
from warploom.asynchronous.tensor_memory.products import multiply
from warploom.asynchronous.tensors.boxes import move_box
from warploom.asynchronous.tensors.cancel import write_response
from warploom.asynchronous.tensors.entries import (
    ALL_BYTES,
    BOX_COPY,
    BULK_GROUP,
    BYTES,
    GROUP_END,
    ORIGIN,
    REDUCTION,
    RESPONSE,
)
from warploom.asynchronous.tensors.maps import type_bytes
from warploom.asynchronous.tensors.numbers import reduce_number
from warploom.asynchronous.tensors.requests import OPERATION, TYPE, field
from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import clear_record, copy_record
from warploom.texture.texels import Memory, read_bytes, write_bytes

CAPACITY = 2048
"""The most entries of a queue; when it is full, the oldest completes."""

QUEUE_WORDS = RequestQueue.WORDS + CAPACITY * RequestEntry.WORDS


@jitable
def entry_of(queue: RequestQueue, number: int) -> RequestEntry:
    """Returns entry number `number` of the queue; 0 is the oldest."""
    return RequestEntry(queue, RequestQueue.WORDS, number)


@jitable
def execute_request(memory: Memory, entry: RequestEntry, work: ProductWork) -> None:
    """Executes the request of an entry, by its kind: copies a box, or bytes (those in `byte_mask`);
    reduces; writes the response of `clusterlaunchcontrol.try_cancel`; multiplies; copies into
    tensor memory, or shifts rows there. A commit and the end of a group do nothing. Then signals
    its mbarrier, unless the address is 0 or the mbarrier is not initialized: one arrival for a
    commit, `tx_bytes` for all others. `work` is work space for a matrix product. Words of the entry
    that locate a row of a box are overwritten."""
    kind, size = entry.kind, entry.size
    source, target = entry.source - ORIGIN, entry.target - ORIGIN
    if kind == BOX_COPY:
        move_box(memory, entry)
    elif kind == BYTES and entry.byte_mask == ALL_BYTES:
        for offset in range(size):
            memory[target + offset] = memory[source + offset]
    elif kind == BYTES:
        for offset in range(size):
            # The byte mask (`.cp_mask`): bit i enables byte i of every 16.
            if (entry.byte_mask >> (offset & 15)) & 1:
                memory[target + offset] = memory[source + offset]
    elif kind == REDUCTION:
        request = entry.request
        type = field(request, TYPE)
        for offset in range(0, size, type_bytes(type)):
            operation = field(request, OPERATION)
            reduce_number(memory, target + offset, source + offset, operation, type)
    elif kind == RESPONSE:
        write_response(memory, entry)
    elif kind == PRODUCT:
        multiply(memory, entry, work)
    elif kind == TENSOR_COPY:
        copy_matrix(memory, entry)
    elif kind == ROW_SHIFT:
        shift_rows(memory, entry)
    if entry.barrier != 0:
        offset = entry.barrier - ORIGIN
        word = read_bytes(memory, offset, 8)
        if mbarrier.is_valid(word):
            if kind == ARRIVAL:
                word = mbarrier.arrive(word)
            else:
                word = mbarrier.complete_tx(word, entry.tx_bytes)
            write_bytes(memory, offset, 8, word)


@jitable
def complete_entry(memory: Memory, queue: RequestQueue, work: ProductWork, number: int) -> None:
    """Executes the request of entry number `number` and signals its mbarrier; the entry stays in
    the queue unchanged, as it is copied to `work` first."""
    copy_record(work.entry, entry_of(queue, number))
    execute_request(memory, work.entry, work)


@jitable
def move_entry(queue: RequestQueue, number: int, retained: int) -> int:
    """Copies entry `number` down to position `retained`, nothing if they are equal; returns
    `retained` + 1, the next free position. Callers compact the queue by it while they complete some
    of its entries, and set `count` afterwards."""
    if number != retained:
        copy_record(entry_of(queue, retained), entry_of(queue, number))
    return retained + 1


@jitable
def free_queue_slot(memory: Memory, queue: RequestQueue, work: ProductWork) -> None:
    """Makes space for one more entry: completes and removes the oldest one if the queue has
    CAPACITY entries, else does nothing. `work` is overwritten."""
    count = queue.count
    if count == CAPACITY:
        complete_entry(memory, queue, work, 0)
        retained = 0
        for number in range(1, count):
            retained = move_entry(queue, number, retained)
        queue.count = retained


@jitable
def append(queue: RequestQueue, entry: RequestEntry) -> None:
    """Appends a copy of `entry` to the queue, as number `count`, which grows by one; the queue must
    have space (`free_queue_slot`)."""
    copy_record(entry_of(queue, queue.count), entry)
    queue.count += 1


@jitable
def is_due(queue: RequestQueue, number: int, barrier: int) -> bool:
    """Returns whether completing entry `number` leads to a signal of the mbarrier at host address
    `barrier`: the entry signals it itself, or is a `tcgen05` operation that is followed by a commit
    of the same thread that signals it."""
    entry = entry_of(queue, number)
    if entry.barrier == barrier:
        return True
    # Kinds from PRODUCT on are those of `tcgen05`.
    if entry.kind < PRODUCT:
        return False
    # `tcgen05` operations signal nothing themselves: a later commit of their thread does.
    for later in range(number + 1, queue.count):
        commit_entry = entry_of(queue, later)
        commits = commit_entry.kind == ARRIVAL and commit_entry.barrier == barrier
        if commits and commit_entry.thread == entry.thread:
            return True
    return False


@jitable
def complete_mbarrier_copies(
    memory: Memory, queue: RequestQueue, work: ProductWork, barrier: int
) -> int:
    """Executes the queued requests that signal the mbarrier at host address `barrier` (`is_due`),
    oldest first, until its phase completes, and removes them from the queue; later ones stay.
    Returns how many were executed."""
    retained, done, offset = 0, 0, barrier - ORIGIN
    phase = mbarrier.phase(read_bytes(memory, offset, 8))
    for number in range(queue.count):
        # Each completed entry may have completed the phase; later entries belong to the next one.
        waits = mbarrier.phase(read_bytes(memory, offset, 8)) == phase
        if waits and is_due(queue, number, barrier):
            complete_entry(memory, queue, work, number)
            done += 1
        else:
            retained = move_entry(queue, number, retained)
    queue.count = retained
    return done


@jitable
def end_group(memory: Memory, queue: RequestQueue, work: ProductWork, thread: int) -> None:
    """Executes `cp.async.bulk.commit_group` for a thread: appends an entry GROUP_END, which closes
    the group of the thread's bulk copies since its previous GROUP_END; if the queue is full, its
    oldest entry is completed first. Overwrites `work`."""
    free_queue_slot(memory, queue, work)
    entry = work.entry
    clear_record(entry)
    entry.kind, entry.thread, entry.groups = GROUP_END, thread, BULK_GROUP
    append(queue, entry)


@jitable
def complete_groups(
    memory: Memory, queue: RequestQueue, work: ProductWork, thread: int, left: int
) -> int:
    """Executes `cp.async.bulk.wait_group` for a thread: executes and removes its copies in bulk
    groups, oldest first, except those of its newest `left` groups and those in no group yet; -1
    completes these as well. Returns how many entries were removed, ends of groups included."""
    count, ends, last = queue.count, 0, -1
    # From the newest entry back: after more than `left` ends of groups, all older entries are due.
    for number in range(count - 1, -1, -1):
        entry = entry_of(queue, number)
        if entry.thread == thread and entry.groups == BULK_GROUP:
            ends += 1 if entry.kind == GROUP_END else 0
            if ends > left and last < 0:
                last = number
    retained, done = 0, 0
    for number in range(count):
        entry = entry_of(queue, number)
        own = entry.thread == thread and entry.groups == BULK_GROUP
        if own and number <= last:
            complete_entry(memory, queue, work, number)
            done += 1
        else:
            retained = move_entry(queue, number, retained)
    queue.count = retained
    return done


@jitable
def remove_requests_of_block(
    memory: Memory, queue: RequestQueue, work: ProductWork, start: int, end: int
) -> None:
    """Removes the requests of a block that has ended, whose shared memory is at host addresses from
    `start` up to `end`. Completes its copies in bulk groups (from shared to global memory), in the
    order of the queue, with the buffers of `work`; drops all others, whose results nothing can read
    any more. Ends of groups stay; they do nothing."""
    retained = 0
    for number in range(queue.count):
        entry = entry_of(queue, number)
        # An end of a group has `shared` 0, so it is of no block.
        if start <= entry.shared < end:
            # A bulk group reads shared memory and writes global memory, which outlives the block.
            if entry.groups == BULK_GROUP:
                complete_entry(memory, queue, work, number)
        else:
            retained = move_entry(queue, number, retained)
    queue.count = retained
