"""Updates the detector's allocations when kernels call malloc and free, and checks `free` as a
write to the whole allocation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from warploom.core.errors import Allocation
from warploom.detector import layout as words
from warploom.detector.detect import begin_event
from warploom.detector.knowledge import set_current_lane, set_current_thread
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    LineShadow,
    ResidentBlock,
    ShadowCell,
    TrackedAllocation,
)
from warploom.detector.tensor.tensor_copies import PIECE, record_bytes
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.sanitize.events import LANES, HostMemory
from warploom.sanitize.state import Detector, Words, padded, slots_of, written_words

FREED = 0xFD
"""The value that `free` is taken to write: few kernels store bytes of it, so a race is seldom
reported as "same-value"."""


@dataclass
class KernelHeap:
    """Holds the rows of a detector's table of allocations while its launch allocates and frees."""

    detector: Detector
    _freed: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The rows of freed allocations, by address: an allocation at the same address reuses their
    shadow memory."""

    @property
    def _data(self) -> Words:
        return self.detector.data

    @contextmanager
    def watching(self, memory: DeviceMemory) -> Generator[None]:
        """Receives the calls of malloc and free of a memory's heap within the context."""
        memory.heap.watcher = self
        try:
            yield
        finally:
            memory.heap.watcher = None

    def allocated(self, allocation: Allocation) -> None:
        """Inserts the row of a new allocation."""
        self.detector.heap.append(allocation)
        row, place = self._row_for(allocation), self._position(allocation.address)
        count = int(self._data[DetectorState.allocations])
        if not row or count == self.detector.allocation_capacity:
            self._data[DetectorState.exhausted] = 1
            return
        rows = self._rows(count + 1)
        rows[place + 1 :] = rows[place:-1].copy()
        rows[place] = row
        self._data[DetectorState.allocations], self._data[DetectorState.last_allocation] = (
            count + 1,
            0,
        )

    def released(self, address: int, instruction: int, block: int, warp: int, lane: int) -> None:
        """Records the free of an allocation as a write by the thread that frees it, and removes its
        row."""
        count, place = int(self._data[DetectorState.allocations]), self._position(address)
        rows = self._rows(count)
        if place == count or rows[place][TrackedAllocation.start] != address:
            return
        if self._data[DetectorState.tools] & words.RACE:
            self._check(rows[place].tolist(), instruction, block, warp, lane)
        self._freed[address] = rows[place].tolist()
        rows[place:-1] = rows[place + 1 :].copy()
        self._data[DetectorState.allocations], self._data[DetectorState.last_allocation] = (
            count - 1,
            0,
        )

    def _rows(self, count: int) -> Words:
        """Returns the first `count` rows of the table of allocations."""
        start = int(self._data[DetectorState.allocations_at])
        return self._data[start:][: count * TrackedAllocation.WORDS].reshape(count, -1)

    def _position(self, address: int) -> int:
        """Returns the number of allocations that begin before an address."""
        starts = self._rows(int(self._data[DetectorState.allocations]))[:, TrackedAllocation.start]
        return bisect_left(starts, address)

    def _row_for(self, allocation: Allocation) -> list[int]:
        """Returns the row of a new allocation, with empty shadow memory; an empty row if the pool
        is exhausted."""
        start, end = allocation.address, allocation.address + allocation.size
        lines = -(-allocation.size // words.LINE_BYTES) + 1
        sizes = (
            padded(lines * words.LINE_BYTES // 4 * ShadowCell.WORDS),
            padded(lines * LineShadow.WORDS),
            padded(written_words(allocation.size)),
        )
        freed_row = self._freed.pop(start, None)
        # The address was used before: its shadow memory is cleared and used again, as the pool is
        # never freed.
        if freed_row and freed_row[TrackedAllocation.end] >= end:
            offsets = [
                freed_row[word]
                for word in (
                    TrackedAllocation.cells,
                    TrackedAllocation.lines,
                    TrackedAllocation.written,
                )
            ]
            for place, size in zip(offsets, sizes, strict=True):
                self._data[place : place + size] = 0
        else:
            begin = padded(int(self._data[DetectorState.pool_at]))
            if begin + sum(sizes) > self._data[DetectorState.pool_end]:
                return []
            self._data[DetectorState.pool_at] = begin + sum(sizes)
            offsets = [begin, begin + sizes[0], begin + sizes[0] + sizes[1]]
        row = [0] * TrackedAllocation.WORDS
        row[TrackedAllocation.start], row[TrackedAllocation.end] = start, end
        (
            row[TrackedAllocation.cells],
            row[TrackedAllocation.lines],
            row[TrackedAllocation.written],
        ) = offsets
        return row

    def _check(self, row: list[int], instruction: int, block: int, warp: int, lane: int) -> None:
        """Checks a free as a store by the freeing thread to all lines that were accessed."""
        state = DetectorState(self._data, 0)
        starts = (
            self._data[DetectorState.slots_at]
            + np.arange(slots_of(self.detector.launch)) * (self._data[DetectorState.slot_words])
        )
        [slots] = np.nonzero(self._data[starts + ResidentBlock.block] == block + 1)
        if not len(slots):
            return
        launch = self.detector.launch
        plan = launch.schedule.plan(launch, self.detector.program)
        plan.slot = int(slots[0])
        event = DetectorEvent([0] * DetectorEvent.WORDS, 0)
        event.instruction, event.block = instruction, block
        event.warp, event.lanes = warp, 1 << lane
        begin_event(state, event, plan)
        set_current_thread(state, warp << 5)
        set_current_lane(state, (warp << 5) + lane)
        values = np.full(LANES * PIECE, FREED, np.uint8)
        start, end = row[TrackedAllocation.start], row[TrackedAllocation.end]
        base = start & -words.LINE_BYTES
        count = (end - base + words.LINE_BYTES - 1) // words.LINE_BYTES
        lines = self._data[row[TrackedAllocation.lines] :][: count * LineShadow.WORDS]
        [touched_lines] = np.nonzero(lines.reshape(count, LineShadow.WORDS).any(axis=1))
        for number in touched_lines.tolist():
            at = max(start, base + number * words.LINE_BYTES)
            size = min(end, base + (number + 1) * words.LINE_BYTES) - at
            access = words.GLOBAL, words.STORE
            record_bytes(state, event, HostMemory(), values, lane, access, at, size)
