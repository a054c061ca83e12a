"""Defers stores to tensor memory (`tcgen05.st`) until their warp waits for them
(`tcgen05.wait::st`), to expose kernels that lack the wait (PTX ISA, "tcgen05.st", "tcgen05.wait").

Only under schedules that complete late (`simt.product_groups`): a store is checked at issue, and
its values are appended to a list after the queue of copies (`asynchronous.issue.queue`). A store
that no instruction waits for is dropped with its block.

    tcgen05.st r0  ->  list: (request, thread, address, r0 of 32 lanes)  ->  wait::st writes it
"""

from __future__ import annotations

from warploom.asynchronous.issue.queue import QUEUE_WORDS, STORES
from warploom.asynchronous.tensor_memory.fragments import column_in, lane_in
from warploom.asynchronous.tensor_memory.layout import (
    HALVES,
    REGISTERS,
    SHAPE,
    part,
)
from warploom.asynchronous.tensor_memory.memory import column_of, lane_of, word_offset
from warploom.asynchronous.tensors.entries import FIRST_THREAD
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.schedule_layout import CHANGES
from warploom.texture.texels import Memory, write_bytes

LANES = 32
MOST_WORDS = 128 * LANES
"""The most values of a store: 128 registers of 32 lanes."""

REQUEST, THREAD, START, ADDRESS, SPLIT, VALUES = range(6)
STORE_WORDS = VALUES + MOST_WORDS
"""Words of a deferred store. REQUEST: the encoded instruction; THREAD: number of its warp's first
thread; START: host address of the tensor memory; ADDRESS, SPLIT: the instruction's address and its
offset for the second half of the threads; VALUES: its registers, 32 lanes each."""

CAPACITY = 64
"""The most deferred stores; when the list is full, the oldest completes."""

LIST_WORDS = CAPACITY * STORE_WORDS


@jitable
def store_at(number: int) -> int:
    """Returns the index in the queue array of the first word of deferred store number `number`; 0
    is the oldest."""
    return QUEUE_WORDS + number * STORE_WORDS


@jitable
def register_word_offset(
    start: int, address: int, split: int, request: int, thread: int, register: int
) -> int:
    """Returns the offset in `memory` of the word that `register` of `thread` (a lane of the warp)
    loads or stores, by the shape in `request`. `start` is the host address of the tensor memory,
    `address` and `split` are the instruction's operands; `split`, in columns, moves the second half
    of the threads. With HALVES a register occupies two columns, of which this is the first."""
    shape, halves = part(request, SHAPE), 2 if request & HALVES else 1
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
def complete_store(memory: Memory, queue: Ints, number: int) -> None:
    """Writes the registers of deferred store number `number`, of all 32 lanes, to tensor memory.
    The store stays in the list; the caller removes it."""
    at = store_at(number)
    request = int(queue[at + REQUEST])
    for register in range(request >> REGISTERS & 255):
        for thread in range(LANES):
            offset = register_word_offset(
                int(queue[at + START]), int(queue[at + ADDRESS]), int(queue[at + SPLIT]),
                request, thread, register,
            )  # fmt: skip
            word = int(queue[at + VALUES + LANES * register + thread])
            write_word(memory, offset, request, word)


@jitable
def remove_store(queue: Ints, number: int) -> None:
    """Removes deferred store number `number` from the list without writing it; later stores move
    down by one."""
    for word in range(store_at(number), store_at(int(queue[STORES]) - 1)):
        queue[word] = queue[word + STORE_WORDS]
    queue[STORES] -= 1


@jitable
def allocate_store(memory: Memory, queue: Ints) -> int:
    """Adds a store with undefined words to the end of the list, and returns the index of its first
    word in the queue array. If the list is full, writes and removes the oldest store first."""
    if queue[STORES] == CAPACITY:
        complete_store(memory, queue, 0)
        remove_store(queue, 0)
    queue[STORES] += 1
    return store_at(int(queue[STORES]) - 1)


@jitable
def wait_stores(memory: Memory, scratch: Ints, plan: Ints, queue: Ints) -> int:
    """Executes `tcgen05.wait::st`: writes the deferred stores of the executing warp (from
    FIRST_THREAD) to tensor memory, oldest first, and removes them from the list. Counts each as a
    change of memory in `plan`. Returns 0."""
    number = 0
    while number < queue[STORES]:
        if queue[store_at(number) + THREAD] == scratch[FIRST_THREAD]:
            complete_store(memory, queue, number)
            remove_store(queue, number)
            plan[CHANGES] += 1
        else:
            number += 1
    return 0


@jitable
def drop_stores(queue: Ints, start: int, end: int) -> None:
    """Removes, without writing them, the deferred stores to tensor memory at host addresses from
    `start` up to `end`: that of a block that has ended."""
    number = 0
    while number < queue[STORES]:
        if start <= queue[store_at(number) + START] < end:
            remove_store(queue, number)
        else:
            number += 1
