"""Holds the access sets of the workers of a launch (`abi.access_sets`), finds whether blocks of two
workers conflict, and undoes the launch if they do.

Two workers conflict if one has written a unit of memory that the other has read or written. Pages
are compared first, and units only of pages that several workers have touched:

    worker 0 writes pages 0 to 3, worker 1 pages 3 to 7     only units of page 3 are compared
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.abi.access_sets import PAGE_BYTES, READ, SAVED, WRITTEN, AccessSet
from warploom.core.errors import LaunchError
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.reservation import reserve

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

UNITS_IN_WORD = 64

REUSED_BYTES = 1 << 28
"""Access sets of more memory do not serve the next launch, which makes new ones."""


def recorded_pages(memory: DeviceMemory) -> range | None:
    """Returns the addresses of the memory that access sets record, in whole pages: of all live
    allocations. None if there is none, or if kernels can access memory of the host, which is
    elsewhere."""
    live = memory.live()
    last = memory.base + memory.capacity
    if not live or any(not memory.base <= allocation.address < last for allocation in live):
        return None
    start = min(allocation.address for allocation in live) // PAGE_BYTES * PAGE_BYTES
    end = (
        -(-max(allocation.address + allocation.size for allocation in live) // PAGE_BYTES)
        * PAGE_BYTES
    )
    return range(start, end)


class AccessSets:
    """The access sets of `workers` workers for the memory `recorded`, in units of `unit` bytes. All
    are empty at first, and after `clear`."""

    def __init__(self, recorded: range, unit: int, workers: int) -> None:
        """Reserves the arrays, whose pages the system makes as they are touched. Raises LaunchError
        if it does not reserve as many bytes."""
        self.recorded, self.unit, self.workers = recorded, unit, workers
        pages = len(recorded) // PAGE_BYTES
        words = PAGE_BYTES // unit // UNITS_IN_WORD
        flags, bitmap = _whole_pages(pages), _whole_pages(8 * pages * words)
        of_worker = flags + 3 * bitmap
        size = flags + len(recorded) + workers * of_worker
        self._map = reserve(size)
        if len(self._map) < size:
            raise LaunchError(f"the system cannot reserve {size:,} bytes for access sets")
        arrays = np.frombuffer(self._map, np.uint8)
        self._states = arrays[:pages]
        self._saved = arrays[flags:][: len(recorded)].reshape(pages, PAGE_BYTES)
        sets = arrays[flags + len(recorded) :].reshape(workers, of_worker)
        self._touched = sets[:, :pages]
        self._reads, self._writes, self._stores = (
            [
                storage[at:][: 8 * pages * words].view(np.uint64).reshape(pages, words)
                for storage in sets
            ]
            for at in (flags, flags + bitmap, flags + 2 * bitmap)
        )
        self._records = np.zeros((workers, AccessSet.WORDS), np.int64)
        for record, touched, *bitmaps in zip(
            self._records, self._touched, *self._bitmaps, strict=True
        ):
            addressed = (touched, *bitmaps, self._states, self._saved)
            record[: AccessSet.strayed] = (
                recorded.start,
                pages,
                *(storage.ctypes.data for storage in addressed),
            )

    @property
    def _bitmaps(self) -> tuple[list[Words], ...]:
        """Returns the bitmaps of each kind, in the order of `AccessSet`: one of each worker."""
        return self._reads, self._writes, self._stores

    def serve(self, recorded: range, unit: int, workers: int) -> bool:
        """Returns whether there is a set for each of `workers` workers, which records some memory
        in units of `unit` bytes."""
        within = self.recorded.start <= recorded.start and recorded.stop <= self.recorded.stop
        return within and (unit, workers) == (self.unit, self.workers)

    @property
    def are_reusable(self) -> bool:
        """Returns whether the access sets may serve another launch: the memory that they record has
        at most REUSED_BYTES, to which the pages of the sets are in proportion."""
        return len(self.recorded) <= REUSED_BYTES

    def address(self, worker: int) -> int:
        """Returns the address of a worker's access set, for its code."""
        return int(self._records[worker].ctypes.data)

    def have_conflict(self) -> bool:
        """Returns whether two workers conflict, or one has accessed memory that is not recorded."""
        if self._records[:, AccessSet.strayed].any():
            return True
        # Few pages are compared unit by unit: those that several workers touched, one of them to
        # write. Units that are only STORED are in none of the bitmaps compared.
        compared = self._touched & np.uint8(READ | WRITTEN)
        several = np.count_nonzero(compared, axis=0) > 1
        [pages] = np.nonzero(several & ((compared & WRITTEN) != 0).any(axis=0))
        return len(pages) > 0 and _overlap(
            [bitmap[pages] for bitmap in self._reads], [bitmap[pages] for bitmap in self._writes]
        )

    def undo(self, memory: DeviceMemory) -> None:
        """Restores what the workers have written to as it was before; other bytes of a page may be
        written by the host meanwhile."""
        start = self.recorded.start - memory.base
        contents = memory.bytes[start : start + len(self.recorded)].reshape(-1, PAGE_BYTES)
        [pages] = np.nonzero(self._states == SAVED)
        for page in pages:
            written = np.bitwise_or.reduce(
                [bitmap[page] for bitmap in (*self._writes, *self._stores)]
            )
            units = np.unpackbits(written.view(np.uint8), bitorder="little")
            is_written = np.repeat(units.astype(bool), self.unit)
            np.copyto(contents[page], self._saved[page], where=is_written)

    def clear(self) -> None:
        """Empties the access sets."""
        # Only what has been touched: to write all would make the system's pages of all.
        for touched, *bitmaps in zip(self._touched, *self._bitmaps, strict=True):
            [pages] = np.nonzero(touched)
            for bitmap in bitmaps:
                bitmap[pages] = 0
            touched[pages] = 0
        self._states[:] = 0
        self._records[:, AccessSet.strayed] = 0


def _whole_pages(size: int) -> int:
    """Returns a number of bytes, rounded up to whole pages of the system."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _overlap(reads: Sequence[Words], writes: Sequence[Words]) -> bool:
    """Returns whether a unit that one worker writes is read or written by another, by the bitmaps
    of each worker."""
    # Each worker is compared with all before it together, so each pair of workers is compared once.
    read_before = np.zeros_like(reads[0])
    written_before = np.zeros_like(reads[0])
    for read, written in zip(reads, writes, strict=True):
        if (written & (read_before | written_before)).any() or (read & written_before).any():
            return True
        read_before |= read
        written_before |= written
    return False
