"""Describes the allocations of a device at one point: as compiled code reads them, and for a
snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import Allocation
from warploom.core.lazy import cached_property
from warploom.simt.allocations import Allocations


@dataclass(frozen=True)
class AllocationTable:
    """The live allocations as compiled code reads them: `rows` of `simt.allocations`, sorted by
    address.

    A table is immutable: the next allocation or release creates another one, so a running kernel
    uses the table with which it began.
    """

    rows: Allocations
    count: int

    @cached_property
    def address(self) -> int:
        """Returns the address of the rows."""
        return int(self.rows.ctypes.data)


@dataclass(frozen=True)
class MemoryState:
    """The allocations at one point of a launch, for `DeviceMemory.restore`: allocations by address,
    free ranges, the kernels' heap (bytes by address), and `constants`, the addresses of allocations
    that kernels cannot write."""

    live: dict[int, Allocation]
    gaps: tuple[tuple[int, int], ...]
    heap: dict[int, int]
    constants: frozenset[int] = frozenset()
