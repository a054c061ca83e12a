"""The heap of a device: what kernels allocate with malloc, until some kernel frees it.

Source: CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations": the heap has
a fixed size, a failed malloc gives a null pointer, memory lives on after the kernel.
"""

from __future__ import annotations

from warploom.core.errors import LaunchError
from warploom.machine.memory import DeviceMemory

DEFAULT_LIMIT = 8 << 20
"""Bytes, as CUDA's cudaLimitMallocHeapSize."""

ALIGNMENT = 16


class Heap:
    """Allocations of kernels in `memory`, of at most `limit` bytes together."""

    def __init__(self, memory: DeviceMemory, limit: int = DEFAULT_LIMIT) -> None:
        self.memory, self.limit = memory, limit
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Bytes that are allocated now."""
        return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in self._sizes.values())

    def allocate(self, size: int, name: str) -> int:
        """The address of `size` new bytes; 0 where the heap has no room."""
        if size == 0 or self.used + size > self.limit:
            return 0
        try:
            made = self.memory.allocate(size, name)
        except LaunchError:
            return 0
        self._sizes[made.address] = size
        return made.address

    def free(self, address: int) -> bool:
        """Give back what begins at `address`; False where nothing of the heap does."""
        if self._sizes.pop(address, None) is None:
            return False
        self.memory.free(address)
        return True
