"""Allocates address ranges, first fit, with a guard between neighbors.

It handles addresses only; `machine.memory.device_memory` owns the bytes.
"""

from __future__ import annotations

from bisect import bisect_left

ALIGNMENT = 256
"""Allocations start on multiples of this many bytes (CUDA C++ Programming Guide, "Device Memory
Accesses": memory from the runtime is aligned to at least 256 bytes)."""

GUARD = 256
"""The fewest unallocated bytes between two allocations, so that an access slightly out of bounds
does not hit a neighbor."""


class Allocator:
    """Allocates ranges of the addresses from `start` up to `end`; stores a sorted list of the free
    ones."""

    def __init__(self, start: int, end: int) -> None:
        """Begins with one free range: the addresses from `start`, rounded up to ALIGNMENT, to
        `end`, which is excluded."""
        aligned_start = _round_up(start, ALIGNMENT)
        self._gaps: list[tuple[int, int]] = [(aligned_start, end)]

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Returns the free ranges (start, end), in order; can be set, to restore a snapshot."""
        return tuple(self._gaps)

    @gaps.setter
    def gaps(self, gaps: tuple[tuple[int, int], ...]) -> None:
        """Replaces the free ranges by others, in order of address."""
        self._gaps = list(gaps)

    @property
    def largest(self) -> int:
        """Returns the bytes of the longest free range less GUARD: an estimate of the largest
        allocation that would succeed now; 0 without a free range longer than that."""
        return max([0, *(end - start - GUARD for start, end in self._gaps)])

    def allocate(self, size: int, alignment: int = ALIGNMENT) -> int | None:
        """Cuts a new allocation of `size` bytes from the lowest free range that is long enough, and
        returns its address, a multiple of `alignment` (a power of 2, at least ALIGNMENT); None if
        no range is long enough."""
        extent = _extent(size)
        for index, (start, end) in enumerate(self._gaps):
            address = _round_up(start, alignment)
            if end - address >= extent:
                # Alignment may leave a free range in front of the allocation as well as behind it.
                rest = [(start, address), (address + extent, end)]
                self._gaps[index : index + 1] = [gap for gap in rest if gap[0] < gap[1]]
                return address
        return None

    def give_back(self, address: int, size: int) -> None:
        """Frees an allocation of `size` bytes that `allocate` returned, and merges its range with
        free neighbors."""
        start, end = address, address + _extent(size)
        index = bisect_left(self._gaps, (start, end))
        if index < len(self._gaps) and self._gaps[index][0] == end:
            end = self._gaps.pop(index)[1]
        if index > 0 and self._gaps[index - 1][1] == start:
            index -= 1
            start = self._gaps.pop(index)[0]
        self._gaps.insert(index, (start, end))


def _round_up(value: int, multiple: int) -> int:
    """Returns the least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def _extent(size: int) -> int:
    """Returns the bytes that an allocation of `size` bytes occupies: rounded up to ALIGNMENT, plus
    the guard that follows it."""
    return _round_up(size, ALIGNMENT) + GUARD
