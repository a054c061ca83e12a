"""Counting over the lanes of a warp: how many there are, and how many different things they touch.

The building blocks of the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Row = npt.NDArray[np.int64]

_F = TypeVar("_F", bound=Callable[..., object])
_JITABLES: list[Callable[..., object]] = []
_COMPILED_AS: list[tuple[Callable[..., object], Callable[..., object]]] = []


def jitable(function: _F) -> _F:
    """Mark a function that Numba may compile into its callers; it stays plain Python itself."""
    _JITABLES.append(function)
    return function


def compiled_as(loops: _F) -> Callable[[_F], _F]:
    """Mark a function in whose place Numba compiles `loops`, which computes the same: in Python
    sets are fast, and as machine code loops without branches."""

    def mark(function: _F) -> _F:
        _COMPILED_AS.append((function, loops))
        return function

    return mark


def register_jitables() -> None:
    """Tell Numba of all marked functions, before it compiles one that calls them.

    Numba takes long to import, and most runs find what it made in the cache.
    """
    from numba.extending import register_jitable

    while _JITABLES:
        register_jitable(_JITABLES.pop())
    while _COMPILED_AS:
        compile_instead(*_COMPILED_AS.pop())


def compile_instead(function: Callable[..., object], compiled: Callable[..., object]) -> None:
    """Have Numba compile a function in place of another, whatever the types are."""
    from numba.extending import overload

    def chosen(*types: object) -> Callable[..., object]:
        return compiled

    overload(function, strict=False)(chosen)


def stretches_of(addresses: Addresses, mask: int, shift: int) -> list[int]:
    """Returns the number of the stretch of 2^shift bytes that each lane of `mask` touches."""
    return [address >> shift for lane, address in enumerate(addresses.tolist()) if mask >> lane & 1]


@jitable
def count_lanes(mask: int) -> int:
    """Returns how many bits of `mask` are set."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@jitable
def first_lane(mask: int) -> int:
    """Returns the lowest lane of a mask that is not empty."""
    return count_lanes((mask & -mask) - 1)


@jitable
def last_lane(mask: int) -> int:
    """Return the highest lane of a mask that is not empty."""
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    return count_lanes(mask | mask >> 16) - 1


def count_distinct(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns how many different stretches of 2^shift bytes the lanes touch."""
    return len(set(stretches_of(addresses, mask, shift)))


ALL_LANES = 0xFFFFFFFF


def all_rise(addresses: Addresses, mask: int) -> bool:
    """Returns whether all lanes take part, none at a lower address than the one before."""
    return mask == ALL_LANES and bool((addresses[1:] >= addresses[:-1]).all())


def count_steps(addresses: Addresses, shift: int) -> int:
    """Returns how many stretches of 2^shift bytes all lanes touch, where `all_rise`."""
    stretches = addresses >> np.uint64(shift)
    return 1 + int((stretches[1:] != stretches[:-1]).sum())


@jitable
def distinct_in_loops(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns the same as `count_distinct`, in loops without branches."""
    bits = np.uint64(shift)
    count = 0
    for lane in range(32):
        stretch = addresses[lane] >> bits
        known = 0
        for earlier in range(lane):
            known |= (mask >> earlier) & (addresses[earlier] >> bits == stretch)
        count += (mask >> lane) & 1 & ~known
    return int(count)


@jitable
def first_lanes(addresses: Addresses, mask: int, shift: int) -> int:
    """Return the first of the lanes that touch the same 2^shift bytes."""
    bits = np.uint64(shift)
    firsts = 0
    for lane in range(32):
        stretch = addresses[lane] >> bits
        known = 0
        for earlier in range(lane):
            known |= (mask >> earlier) & (addresses[earlier] >> bits == stretch)
        firsts |= ((mask >> lane) & 1 & ~known) << lane
    return int(firsts)


@jitable
def without_stretch(addresses: Addresses, mask: int, shift: int, leader: int) -> int:
    """`mask` without the lanes that touch the same 2^shift bytes as lane `leader`."""
    bits = np.uint64(shift)
    stretch = addresses[leader] >> bits
    for lane in range(leader, 32):
        if (mask >> lane) & 1 and addresses[lane] >> bits == stretch:
            mask ^= 1 << lane
    return mask
