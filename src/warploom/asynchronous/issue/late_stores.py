"""Defers stores to tensor memory until the wait for them (PTX ISA, "tcgen05.st", "tcgen05.wait").

Under schedules that complete late (`simt.product_groups`), a store is checked at issue; its values
are appended to a list after the queue of copies (`asynchronous.issue.queue`), and written when its
warp executes `tcgen05.wait::st`. A store that no instruction waits for is dropped with its block.
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

REQUEST, THREAD, START, ADDRESS, SPLIT, VALUES = range(6)
STORE_WORDS = VALUES + MOST_WORDS
"""Words of a store: request; number of its warp's first thread; address of the tensor memory; the
instruction's address and split operands; the values of its registers, 32 lanes each."""

CAPACITY = 64
"""The most deferred stores; when the list is full, the oldest completes."""

LIST_WORDS = CAPACITY * STORE_WORDS


@jitable
def store_at(number: int) -> int:
    """Returns the index of a deferred store in the queue array."""
    return QUEUE_WORDS + number * STORE_WORDS


@jitable
def register_word_offset(
    start: int, address: int, split: int, request: int, thread: int, register: int
) -> int:
    """Returns the offset in `memory` of the word that a register of a thread loads or stores, for
    tensor memory at address `start`."""
    shape, halves = part(request, SHAPE), 2 if request & HALVES else 1
    # With HALVES each register occupies two columns; the split offset is in columns as it is.
    column = halves * column_in(shape, thread, register, 0)
    column += column_in(shape, thread, 0, split) - column_in(shape, thread, 0, 0)
    row = lane_of(address) + lane_in(shape, thread, register)
    return word_offset(start, row, column_of(address) + column)


@jitable
def write_word(memory: Memory, offset: int, request: int, word: int) -> None:
    """Writes a register to tensor memory: as one word, or with HALVES unpacked into two words."""
    if request & HALVES:
        write_bytes(memory, offset, 4, word & 0xFFFF)
        write_bytes(memory, offset + 4, 4, word >> 16)
    else:
        write_bytes(memory, offset, 4, word)


@jitable
def complete_store(memory: Memory, queue: Ints, number: int) -> None:
    """Writes the values of deferred store number `number` to tensor memory; it stays in the
    list."""
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
    """Removes deferred store number `number` from the list, without writing it; later ones move
    down."""
    for word in range(store_at(number), store_at(int(queue[STORES]) - 1)):
        queue[word] = queue[word + STORE_WORDS]
    queue[STORES] -= 1


@jitable
def allocate_store(memory: Memory, queue: Ints) -> int:
    """Appends an empty store to the list and returns its index in the queue array; completes the
    oldest store if the list is full."""
    if queue[STORES] == CAPACITY:
        complete_store(memory, queue, 0)
        remove_store(queue, 0)
    queue[STORES] += 1
    return store_at(int(queue[STORES]) - 1)


@jitable
def wait_stores(memory: Memory, scratch: Ints, plan: Ints, queue: Ints) -> int:
    """Writes the deferred stores of the executing warp to tensor memory, oldest first, and removes
    them from the list; returns 0."""
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
    """Drops the deferred stores to tensor memory at addresses from `start` up to `end`, which
    another block gets."""
    number = 0
    while number < queue[STORES]:
        if start <= queue[store_at(number) + START] < end:
            remove_store(queue, number)
        else:
            number += 1
