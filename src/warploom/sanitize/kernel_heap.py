"""Tells the detector what kernels allocate and free while they run, with malloc and free."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.core.errors import Allocation
from warploom.detector import layout as words
from warploom.detector.detect import begin_event
from warploom.detector.knowledge import become, become_lane
from warploom.detector.tensor.tensor_copies import PIECE, take_stretch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.services import ServiceCall
from warploom.sanitize.events import LANES, HostMemory
from warploom.sanitize.state import Detector, Words, padded, slots_of, written_words
from warploom.simt.schedule_layout import SLOT

FREED = 0xFD
"""What a freed byte is taken to hold: nothing that a kernel stores is likely to equal it."""


@dataclass
class KernelHeap:
    """Keeps the rows of a detector's allocations as its launch allocates and frees."""

    detector: Detector
    _freed: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The rows of what was freed, by address: whoever gets the address again gets their room."""

    @property
    def _data(self) -> Words:
        return self.detector.data

    @contextmanager
    def watching(self, memory: DeviceMemory) -> Generator[None]:
        """Has the heap of a memory tell of what happens meanwhile."""
        memory.heap.watcher = self
        try:
            yield
        finally:
            memory.heap.watcher = None

    def allocated(self, allocation: Allocation) -> None:
        """Adds the row of a new allocation."""
        self.detector.heap.append(allocation)
        row, place = self._row_for(allocation), self._place(allocation.address)
        count = int(self._data[words.ALLOCATIONS])
        if not row or count == self.detector.most_allocations:
            self._data[words.EXHAUSTED] = 1
            return
        rows = self._rows(count + 1)
        rows[place + 1 :] = rows[place:-1].copy()
        rows[place] = row
        self._data[words.ALLOCATIONS], self._data[words.LAST_ALLOCATION] = count + 1, 0

    def released(self, address: int, call: ServiceCall, lane: int) -> None:
        """Looks at what other threads do with an allocation that a thread frees, and takes its row
        out."""
        count, place = int(self._data[words.ALLOCATIONS]), self._place(address)
        rows = self._rows(count)
        if place == count or rows[place][words.A_START] != address:
            return
        if self._data[words.TOOLS] & words.RACE:
            self._check(rows[place].tolist(), call, lane)
        self._freed[address] = rows[place].tolist()
        rows[place:-1] = rows[place + 1 :].copy()
        self._data[words.ALLOCATIONS], self._data[words.LAST_ALLOCATION] = count - 1, 0

    def _rows(self, count: int) -> Words:
        """Returns the rows of so many allocations."""
        start = int(self._data[words.ALLOCATIONS_AT])
        return self._data[start:][: count * words.ALLOCATION_WORDS].reshape(count, -1)

    def _place(self, address: int) -> int:
        """Returns how many allocations begin before an address."""
        starts = self._rows(int(self._data[words.ALLOCATIONS]))[:, words.A_START]
        return bisect_left(starts, address)

    def _row_for(self, allocation: Allocation) -> list[int]:
        """Returns the row of a new allocation, with room of which nothing is known; an empty one
        where there is none."""
        start, end = allocation.address, allocation.address + allocation.size
        lines = -(-allocation.size // words.LINE_BYTES) + 1
        sizes = (
            padded(lines * words.LINE_BYTES // 4 * words.CELL_WORDS),
            padded(lines * words.LINE_WORDS),
            padded(written_words(allocation.size)),
        )
        known = self._freed.pop(start, None)
        if known and known[words.A_END] >= end:
            places = [known[word] for word in (words.A_CELLS, words.A_LINES, words.A_WRITTEN)]
            for place, size in zip(places, sizes, strict=True):
                self._data[place : place + size] = 0
        else:
            begin = padded(int(self._data[words.POOL_AT]))
            if begin + sum(sizes) > self._data[words.POOL_END]:
                return []
            self._data[words.POOL_AT] = begin + sum(sizes)
            places = [begin, begin + sizes[0], begin + sizes[0] + sizes[1]]
        row = [0] * words.ALLOCATION_WORDS
        row[words.A_START], row[words.A_END] = start, end
        row[words.A_CELLS], row[words.A_LINES], row[words.A_WRITTEN] = places
        return row

    def _check(self, row: list[int], call: ServiceCall, lane: int) -> None:
        """Takes the end of an allocation as a store by who frees it, to all that was reached."""
        state: Any = self._data
        starts = (
            self._data[words.SLOTS_AT]
            + np.arange(slots_of(self.detector.launch)) * (self._data[words.SLOT_WORDS])
        )
        [slots] = np.nonzero(self._data[starts + words.B_BLOCK] == call.block + 1)
        if not len(slots):
            return
        launch = self.detector.launch
        plan = launch.schedule.plan(launch, self.detector.program).astype(np.int64)
        plan[SLOT] = slots[0]
        event = [0] * words.EVENT_WORDS
        event[words.E_INSTRUCTION], event[words.E_BLOCK] = call.instruction, call.block
        event[words.E_WARP], event[words.E_LANES] = call.warp, 1 << lane
        begin_event(state, event, plan)
        become(state, call.warp << 5)
        become_lane(state, (call.warp << 5) + lane)
        values = np.full(LANES * PIECE, FREED, np.uint8)
        start, end = row[words.A_START], row[words.A_END]
        base = start & -words.LINE_BYTES
        count = (end - base + words.LINE_BYTES - 1) // words.LINE_BYTES
        lines = self._data[row[words.A_LINES] :][: count * words.LINE_WORDS]
        [reached] = np.nonzero(lines.reshape(count, words.LINE_WORDS).any(axis=1))
        for number in reached.tolist():
            at = max(start, base + number * words.LINE_BYTES)
            size = min(end, base + (number + 1) * words.LINE_BYTES) - at
            access = words.GLOBAL, words.STORE
            take_stretch(state, event, HostMemory(), values, lane, access, at, size)
