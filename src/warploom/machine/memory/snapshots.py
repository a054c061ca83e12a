"""Creates and restores snapshots of device memory during a launch; equal pages are stored once.

The debugger steps backwards with them. A page is copied only if it differs from the same page of
the last snapshot, or from zeros, so a snapshot costs a comparison of all memory and a copy of what
has changed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.memory.allocation_table import MemoryState
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.pages import PAGE_BYTES, PageStore

Bytes = npt.NDArray[np.uint8]

_compare: Any = ctypes.CDLL(None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class MemorySnapshot:
    """The contents of memory at one point of a launch: the pages of each allocation by its address,
    and the allocations."""

    pages: dict[int, tuple[Bytes, ...]]
    state: MemoryState


class MemorySnapshots:
    """Creates and restores snapshots of a device's memory. `allocates`: kernels allocate and free
    memory between snapshots. `constants`: snapshots include constant memory, which kernels cannot
    write."""

    def __init__(self, memory: DeviceMemory, *, allocates: bool, constants: bool = False) -> None:
        """Starts with no snapshot, and an empty store of pages. `allocates`: kernels allocate
        memory, so `restore` restores the allocations too; `constants`: snapshots include constant
        allocations."""
        self._memory, self._allocates, self._constants = memory, allocates, constants
        self._latest: MemorySnapshot | None = None
        self._store = PageStore()

    @property
    def bytes(self) -> int:
        """Returns the bytes of memory that stored pages occupy, without those in the file."""
        return self._store.in_memory

    @property
    def file_bytes(self) -> int:
        """Returns the bytes of stored pages that are in the temporary file."""
        return self._store.in_file

    def capture(self) -> MemorySnapshot:
        """Returns a snapshot of memory as it is now. Pages that are equal in the snapshot captured
        or restored last are shared with it. The next snapshot is compared with this one."""
        latest = self._latest.pages if self._latest else {}
        pages = {
            address: tuple(self._stored_pages(content, latest.get(address, ())))
            for address, content in self._contents()
        }
        self._latest = MemorySnapshot(pages, self._memory.state())
        return self._latest

    def restore(self, image: MemorySnapshot) -> None:
        """Restores the contents of snapshot `image`, and its allocations if kernels allocate; only
        pages that differ are written. The next snapshot is compared with this one."""
        if self._allocates:
            self._memory.restore(image.state)
        for address, content in self._contents():
            for page, current in zip(image.pages[address], _pages(content), strict=True):
                # Writing equal bytes would make the system create pages that were never touched.
                if not _equal(page, current):
                    current[:] = page
        self._latest = image

    def _stored_pages(self, bytes_now: Bytes, before: tuple[Bytes, ...]) -> Iterator[Bytes]:
        """Yields the pages of an allocation, whose bytes are `bytes_now`: where the content is
        equal, the page of that number in `before`, or, where `before` has none, a page of zeros
        that all share; else a new copy from the page store."""
        for number, content_page in enumerate(_pages(bytes_now)):
            # Fresh device memory is zero, so untouched pages share one page of zeros.
            page = before[number] if number < len(before) else _ZERO[: len(content_page)]
            is_equal = len(page) == len(content_page) and _equal(page, content_page)
            yield page if is_equal else self._store.retain(content_page)

    def _contents(self) -> Iterator[tuple[int, Bytes]]:
        """Yields the address and a view of the bytes of each live allocation that snapshots
        include: not of empty ones, and of constant ones only with `constants`."""
        memory = self._memory
        for allocation in memory.live():
            constant = not self._constants and memory.is_constant(allocation.address)
            if allocation.size and not constant:
                yield allocation.address, memory.view(allocation.address, allocation.size)


_ZERO: Bytes = np.zeros(PAGE_BYTES, np.uint8)


def _pages(content: Bytes) -> Iterator[Bytes]:
    """Yields views of the pages of a content, PAGE_BYTES each, the last one perhaps shorter."""
    for start in range(0, len(content), PAGE_BYTES):
        yield content[start : start + PAGE_BYTES]


def _equal(a: Bytes, b: Bytes) -> bool:
    """Returns true if two contiguous pages of one length have equal bytes (memcmp)."""
    return _compare(a.ctypes.data, b.ctypes.data, len(b)) == 0
