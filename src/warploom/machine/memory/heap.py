"""The heap of a device: what kernels allocate with malloc, until some kernel frees it.

Source: CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations": the heap has
a fixed size, a failed malloc gives a null pointer, memory lives on after the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from warploom.core.errors import Allocation

if TYPE_CHECKING:
    from warploom.machine.services import ServiceCall

DEFAULT_LIMIT = 8 << 20
"""Bytes, as CUDA's cudaLimitMallocHeapSize."""

ALIGNMENT = 16


class Watcher(Protocol):
    """Is told of what kernels allocate and free."""

    def allocated(self, allocation: Allocation) -> None:
        """Takes memory that was allocated."""
        ...

    def released(self, address: int, call: ServiceCall, lane: int) -> None:
        """Takes the address of what a lane is about to free."""
        ...


class Heap:
    """Keeps which allocations are kernels' own, and how much of `limit` bytes they take."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit, self.used = limit, 0
        self._sizes: dict[int, int] = {}
        self.lines: dict[int, str] = {}
        """The source lines that made the allocations, by their addresses."""
        self.watcher: Watcher | None = None

    @property
    def sizes(self) -> dict[int, int]:
        """Return the bytes that each allocation takes, by its address."""
        return dict(self._sizes)

    @sizes.setter
    def sizes(self, sizes: dict[int, int]) -> None:
        self._sizes = dict(sizes)
        self.used = sum(sizes.values())

    def allocate(self, size: int, take: Callable[[int], int], line: str) -> int:
        """Return the address of `size` new bytes, which `take` finds, for a kernel at `line`; 0
        where the heap has no room."""
        extent = -(-size // ALIGNMENT) * ALIGNMENT
        if size == 0 or self.used + extent > self.limit:
            return 0
        address = take(size)
        self._sizes[address] = extent
        self.lines[address] = line
        self.used += extent
        return address

    def release(self, address: int) -> bool:
        """Forget what begins at `address`; False where nothing of the heap does."""
        extent = self._sizes.pop(address, None)
        self.lines.pop(address, None)
        self.used -= extent or 0
        return extent is not None
