"""Tracks the heap of a device: memory that kernels allocate with malloc, until a kernel frees it.

Source: CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations": the heap has
a fixed size, a failed malloc returns a null pointer, memory outlives the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from warploom.core.errors import Allocation

DEFAULT_LIMIT = 8 << 20
"""The size of the heap in bytes, as CUDA's cudaLimitMallocHeapSize."""

ALIGNMENT = 16


class Watcher(Protocol):
    """Receives the allocations and releases that kernels make (a sanitizer does)."""

    def allocated(self, allocation: Allocation) -> None:
        """Called with each new allocation."""
        ...

    def released(self, address: int, instruction: int, block: int, warp: int, lane: int) -> None:
        """Called with the address that an instruction is about to free in a lane of a warp."""
        ...


class Heap:
    """Records which allocations were made by kernels, and how many of `limit` bytes they use."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: the size of the heap in bytes, from which on malloc fails."""
        self.limit, self.used = limit, 0
        self._sizes: dict[int, int] = {}
        self.lines: dict[int, str] = {}
        """The source lines of the mallocs, by the addresses that they returned."""
        self.watcher: Watcher | None = None

    @property
    def sizes(self) -> dict[int, int]:
        """Returns the bytes that each allocation occupies, by its address."""
        return dict(self._sizes)

    @sizes.setter
    def sizes(self, sizes: dict[int, int]) -> None:
        self._sizes = dict(sizes)
        self.used = sum(sizes.values())

    def allocate(self, size: int, allocate_memory: Callable[[int], int], line: str) -> int:
        """Returns the address of `size` new bytes from `allocate_memory`, for the malloc at `line`;
        0 if the heap is full or `size` is 0."""
        extent = -(-size // ALIGNMENT) * ALIGNMENT
        if size == 0 or self.used + extent > self.limit:
            return 0
        address = allocate_memory(size)
        self._sizes[address] = extent
        self.lines[address] = line
        self.used += extent
        return address

    def release(self, address: int) -> bool:
        """Removes the record of the allocation at `address`; returns False if the heap has none
        there. The caller frees the memory."""
        extent = self._sizes.pop(address, None)
        self.lines.pop(address, None)
        self.used -= extent or 0
        return extent is not None
