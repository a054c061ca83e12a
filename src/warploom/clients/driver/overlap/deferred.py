"""Adds tasks to streams that unfinished work holds up."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.overlap import works
from warploom.clients.driver.overlap.work import Queue, Work
from warploom.clients.driver.state import state
from warploom.clients.driver.table import reported
from warploom.clients.driver.words import unsigned

LOWEST_POINTER = 1 << 32
"""Words below this are sizes, pitches or flags."""


def add_task(queue: Queue, stream: int, task: Task, words: Sequence[int] = ()) -> Work:
    """Adds a task to a stream after the unfinished work that it has to follow. Waits for its end if
    it is a copy with an address of pageable memory among its `words`, for which CUDA waits as well
    (CUDA Driver API, "API synchronization behavior")."""

    def perform() -> None:
        with ordering.within(stream):
            task.run()

    work = works.add(queue, partial(reported, perform))
    if task.kind is Kind.MEMCPY and any(map(_is_pageable, words)):
        works.host_waits_for([work])
    return work


def words_of(description: ctypes.Structure) -> tuple[int, ...]:
    """Returns a structure as words of 64 bits; what is left at its end is no pointer."""
    count = ctypes.sizeof(description) // 8
    return struct.unpack_from(f"{count}Q", description)


def _is_pageable(word: int) -> bool:
    """Returns whether a word can be the address of memory of the host that is not page-locked."""
    word = unsigned(word)
    if word < LOWEST_POINTER or word in state.handles:
        return False
    return state.device.memory.find(word) is None
