"""Counts lanes, and the distinct memory segments that lanes touch, for cost rules; marks functions
that Numba compiles for use in compiled kernels.

A segment is an aligned group of 2^shift bytes: `shift` 5 is a sector, 7 a cache line. `mask` has a
bit for each active lane. These are the building blocks of the cost rules (`warploom.cost`).

    addresses 0, 4, 8, ..., 124, all lanes active, shift 5   ->   count_distinct = 4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
"""Arrays of 64-bit words: access records, plans, warp states, operands."""

_F = TypeVar("_F", bound=Callable[..., object])
_JITABLES: list[Callable[..., object]] = []
_COMPILED_AS: list[tuple[Callable[..., object], Callable[..., object]]] = []


def jitable(function: _F) -> _F:
    """Marks a function that Numba may compile into its callers, and returns it unchanged: plain
    Python until `register_jitables` has run."""
    _JITABLES.append(function)
    return function


def compiled_as(loops: _F) -> Callable[[_F], _F]:
    """Returns a decorator for a Python function instead of which Numba compiles `loops`, which
    computes the same result: sets are fast in Python, branchless loops in machine code, as LLVM
    vectorizes them."""

    def mark(function: _F) -> _F:
        """Registers `function` with its replacement, and returns it unchanged."""
        _COMPILED_AS.append((function, loops))
        return function

    return mark


def register_jitables() -> None:
    """Registers all marked functions, and all records, with Numba; must run before Numba compiles
    their callers.

    Deferred until then because Numba is slow to import, and most launches find the compiled code in
    the disk cache.
    """
    from numba.extending import register_jitable

    from warploom.simt.compiled_records import register_records

    register_records()
    while _JITABLES:
        register_jitable(_JITABLES.pop())
    while _COMPILED_AS:
        compile_instead(*_COMPILED_AS.pop())


def compile_instead(function: Callable[..., object], compiled: Callable[..., object]) -> None:
    """Makes Numba compile `compiled` instead of `function`, for arguments of any type."""
    from numba.extending import overload

    def select_implementation(*types: object) -> Callable[..., object]:
        """Returns `compiled`, whatever the types of the arguments."""
        return compiled

    overload(function, strict=False)(select_implementation)


def segments_of(addresses: Addresses, mask: int, shift: int) -> list[int]:
    """Returns the index of the segment of 2^shift bytes that each active lane touches, in the order
    of lanes."""
    return [address >> shift for lane, address in enumerate(addresses.tolist()) if mask >> lane & 1]


@jitable
def _count_in_loop(mask: int) -> int:
    """Returns the result of `count_lanes`, in a loop that LLVM replaces by one instruction."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@compiled_as(_count_in_loop)
def count_lanes(mask: int) -> int:
    """Returns the number of bits set in `mask`, which is not negative."""
    return int(mask).bit_count()


@jitable
def _first_by_count(mask: int) -> int:
    """Returns the number of the lowest set bit of a mask that is not 0, as the count of bits below
    it; Numba compiles it instead of `first_lane`."""
    # The lowest set bit less 1 has as many set bits as there are lanes below it.
    return _count_in_loop((mask & -mask) - 1)


@compiled_as(_first_by_count)
def first_lane(mask: int) -> int:
    """Returns the number of the lowest set bit of a mask that is not 0."""
    lanes = int(mask)
    return (lanes & -lanes).bit_length() - 1


@jitable
def last_lane(mask: int) -> int:
    """Returns the number of the highest set bit of a mask that is not 0, of up to 32 lanes."""
    # Sets all bits below the highest one, whose number is then the count of set bits less 1.
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    return count_lanes(mask | mask >> 16) - 1


def count_distinct(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns the number of distinct segments of 2^shift bytes that the active lanes touch."""
    return len(set(segments_of(addresses, mask, shift)))


ALL_LANES = 0xFFFFFFFF


def is_rising(addresses: Addresses, mask: int) -> bool:
    """Returns whether all 32 lanes are active and addresses never decrease from lane to lane."""
    return mask == ALL_LANES and bool((addresses[1:] >= addresses[:-1]).all())


def count_rising_segments(addresses: Addresses, shift: int) -> int:
    """Returns the number of distinct segments of 2^shift bytes that 32 active lanes touch. Only for
    addresses that never decrease from lane to lane (`is_rising`): equal segments are then
    neighbors, so one pass counts them."""
    segments = addresses >> np.uint64(shift)
    return 1 + int((segments[1:] != segments[:-1]).sum())


@jitable
def count_distinct_branchless(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns the number of distinct segments of 2^shift bytes that the lanes `mask` touch, in
    branchless loops, which Numba compiles instead of `count_distinct`."""
    bits = np.uint64(shift)
    count = 0
    for lane in range(32):
        segment = addresses[lane] >> bits
        repeated = 0
        # Masks instead of branches and an early exit: LLVM then vectorizes the loop.
        for earlier in range(lane):
            repeated |= (mask >> earlier) & (addresses[earlier] >> bits == segment)
        count += (mask >> lane) & 1 & ~repeated
    return int(count)


@jitable
def first_lanes(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns a mask with the lowest lane of each group of active lanes that touch the same segment
    of 2^shift bytes."""
    bits = np.uint64(shift)
    firsts = 0
    for lane in range(32):
        segment = addresses[lane] >> bits
        repeated = 0
        for earlier in range(lane):
            repeated |= (mask >> earlier) & (addresses[earlier] >> bits == segment)
        firsts |= ((mask >> lane) & 1 & ~repeated) << lane
    return int(firsts)


@jitable
def without_segment(addresses: Addresses, mask: int, shift: int, leader: int) -> int:
    """Returns `mask` without those of its lanes that touch the same segment of 2^shift bytes as
    lane `leader`, the lowest lane of `mask`."""
    bits = np.uint64(shift)
    segment = addresses[leader] >> bits
    for lane in range(leader, 32):
        if (mask >> lane) & 1 and addresses[lane] >> bits == segment:
            mask ^= 1 << lane
    return mask
