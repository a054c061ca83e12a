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
    """Receives the mallocs and frees of kernels; a sanitizer implements it."""

    def allocated(self, allocation: Allocation) -> None:
        """Receives each allocation that a kernel makes."""
        ...

    def released(self, address: int, instruction: int, block: int, warp: int, lane: int) -> None:
        """Receives the address that an instruction is about to free in a lane of a warp;
        `instruction` is an index in the program, `block` and `warp` are linear numbers."""
        ...


class Heap:
    """Records which allocations were made by kernels, and how many of `limit` bytes they use."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: the size of the heap in bytes; a malloc that would exceed it fails."""
        self.limit, self.used = limit, 0
        self._sizes: dict[int, int] = {}
        self.lines: dict[int, str] = {}
        """The source lines of the mallocs, by the addresses that they returned."""
        self.watcher: Watcher | None = None

    @property
    def sizes(self) -> dict[int, int]:
        """Returns the bytes that each allocation occupies (its size, rounded up to ALIGNMENT), by
        its address; can be set, to restore a snapshot."""
        return dict(self._sizes)

    @sizes.setter
    def sizes(self, sizes: dict[int, int]) -> None:
        """Replaces the bytes of the allocations by address, and computes `used` from them."""
        self._sizes = dict(sizes)
        self.used = sum(sizes.values())

    def allocate(self, size: int, allocate_memory: Callable[[int], int], line: str) -> int:
        """Returns the address of `size` new bytes, which `allocate_memory(size)` provides, for the
        malloc at source line `line`, and records it with its bytes, rounded up, and its line; 0 if
        they would exceed the limit or `size` is 0."""
        extent = -(-size // ALIGNMENT) * ALIGNMENT
        if size == 0 or self.used + extent > self.limit:
            return 0
        address = allocate_memory(size)
        self._sizes[address] = extent
        self.lines[address] = line
        self.used += extent
        return address

    def release(self, address: int) -> bool:
        """Removes the record of the allocation at `address` and subtracts its bytes from `used`;
        returns False if the heap has none there. The caller frees the memory."""
        extent = self._sizes.pop(address, None)
        self.lines.pop(address, None)
        self.used -= extent or 0
        return extent is not None
