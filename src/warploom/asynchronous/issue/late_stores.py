"""Defers stores to tensor memory (`tcgen05.st`) until their warp waits for them
(`tcgen05.wait::st`), to expose kernels that lack the wait (PTX ISA, "tcgen05.st", "tcgen05.wait").

Only under schedules that complete late (`simt.product_groups`): a store is checked at issue, and
its values are appended to a list after the queue of copies (`asynchronous.issue.queue`). A store
that no instruction waits for is dropped with its block.

    tcgen05.st r0  ->  list: (request, thread, address, r0 of 32 lanes)  ->  wait::st writes it
"""

from __future__ import annotations

from warploom.asynchronous.issue.queue import QUEUE_WORDS
from warploom.asynchronous.records import LANES, DeferredStore, IssueScratch, RequestQueue
from warploom.asynchronous.tensor_memory.fragments import column_in, lane_in
from warploom.asynchronous.tensor_memory.layout import HALVES, REGISTERS, SHAPE
from warploom.asynchronous.tensor_memory.memory import column_of, lane_of, word_offset
from warploom.asynchronous.tensors.requests import field
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, write_bytes

CAPACITY = 64
"""The most deferred stores; when the list is full, the oldest completes."""

LIST_WORDS = CAPACITY * DeferredStore.WORDS


@jitable
def store_of(queue: RequestQueue, number: int) -> DeferredStore:
    """Returns deferred store number `number` of the list after the queue; 0 is the oldest."""
    return DeferredStore(queue, QUEUE_WORDS, number)


@jitable
def register_word_offset(
    start: int, address: int, split: int, request: int, thread: int, register: int
) -> int:
    """Returns the offset in `memory` of the word that `register` of `thread` (a lane of the warp)
    loads or stores, by the shape in `request`. `start` is the host address of the tensor memory,
    `address` and `split` are the instruction's operands; `split`, in columns, moves the second half
    of the threads. With HALVES a register occupies two columns, of which this is the first."""
    shape, halves = field(request, SHAPE), 2 if request & HALVES else 1
    # The split offset is in columns already, so it is added undoubled, as the difference that it
    # makes at register 0.
    column = halves * column_in(shape, thread, register, 0)
    column += column_in(shape, thread, 0, split) - column_in(shape, thread, 0, 0)
    row = lane_of(address) + lane_in(shape, thread, register)
    return word_offset(start, row, column_of(address) + column)


@jitable
def write_word(memory: Memory, offset: int, request: int, word: int) -> None:
    """Writes the 32 bits of a register to tensor memory at `offset`: as one word, or, if the
    request has HALVES (`.unpack::16b`), its two halves as the low halves of two consecutive words.
    """
    if request & HALVES:
        write_bytes(memory, offset, 4, word & 0xFFFF)
        write_bytes(memory, offset + 4, 4, word >> 16)
    else:
        write_bytes(memory, offset, 4, word)


@jitable
def complete_store(memory: Memory, queue: RequestQueue, number: int) -> None:
    """Writes the registers of deferred store number `number`, of all 32 lanes, to tensor memory.
    The store stays in the list; the caller removes it."""
    store = store_of(queue, number)
    request = store.request
    for register in range(request >> REGISTERS & 255):
        for thread in range(LANES):
            offset = register_word_offset(
                store.start, store.address, store.split, request, thread, register
            )  # fmt: skip
            word = int(store.values[LANES * register + thread])
            write_word(memory, offset, request, word)


@jitable
def remove_store(queue: RequestQueue, number: int) -> None:
    """Removes deferred store number `number` from the list without writing it; later stores move
    down by one."""
    queue.stores -= 1
    for word in range(store_of(queue, number).at, store_of(queue, queue.stores).at):
        queue.words[word] = queue.words[word + DeferredStore.WORDS]


@jitable
def allocate_store(memory: Memory, queue: RequestQueue) -> DeferredStore:
    """Adds a store with undefined words to the end of the list, and returns it. If the list is
    full, writes and removes the oldest store first."""
    if queue.stores == CAPACITY:
        complete_store(memory, queue, 0)
        remove_store(queue, 0)
    queue.stores += 1
    return store_of(queue, queue.stores - 1)


@jitable
def wait_stores(memory: Memory, scratch_words: Ints, schedule: Ints, queue_words: Ints) -> int:
    """Executes `tcgen05.wait::st`: writes the deferred stores of the executing warp (from
    `first_thread`) to tensor memory, oldest first, and removes them from the list. Counts each as a
    change of memory in `plan`. Returns 0."""
    scratch, queue, number = IssueScratch(scratch_words, 0), RequestQueue(queue_words, 0), 0
    while number < queue.stores:
        if store_of(queue, number).thread == scratch.first_thread:
            complete_store(memory, queue, number)
            remove_store(queue, number)
            Plan(schedule, 0).changes += 1
        else:
            number += 1
    return 0


@jitable
def drop_stores(queue: RequestQueue, start: int, end: int) -> None:
    """Removes, without writing them, the deferred stores to tensor memory at host addresses from
    `start` up to `end`: that of a block that has ended."""
    number = 0
    while number < queue.stores:
        if start <= store_of(queue, number).start < end:
            remove_store(queue, number)
        else:
            number += 1
