"""Defines the address pattern: what stays equal when the accesses of a warp's lanes are all moved
by a multiple of the device's access unit (`AccessRules.unit`, 128 or 256 bytes).

The cost of an access depends on its pattern alone. So counters, traces and the timing model number
patterns in this one form, and apply the rules to each of them once.

    unit 128; lanes 0, 1, 3 at 0x10c4, 0x10c8, 0x10c0
        ->  base 0x1080; pattern: lanes 0b1011, offsets 0x44, 0x48, 0x40
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np

from warploom.simt.lane_counts import Addresses

WARP = 32

LARGEST_UNIT = 256
"""A multiple of every device's access unit."""


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """Holds the active lanes of an access as a mask, and for each of them, in the order of lanes,
    the distance of its address from the access's base.

    The base is the first active lane's address, rounded down to a multiple of the unit, so that
    lane's offset is in [0, unit). Offsets of other lanes may be negative.
    """

    lanes: int
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, lanes: int, addresses: Iterable[int], unit: int) -> tuple[AddressPattern, int]:
        """Returns the pattern of an access, and its base: the first address rounded down to a
        multiple of `unit` bytes. `addresses` has one address for each lane of `lanes`, in their
        order; `lanes` is not empty."""
        addresses = tuple(addresses)
        base = addresses[0] - addresses[0] % unit
        return cls(lanes, tuple([address - base for address in addresses])), base

    @classmethod
    def by_lane(cls, lanes: int, offsets: Iterable[int]) -> AddressPattern:
        """Returns the pattern with the offsets of all 32 lanes, of which those of inactive lanes
        are left out."""
        return cls(lanes, tuple(compress(offsets, active_lanes(lanes))))

    def in_local(self, unit: int) -> tuple[AddressPattern, int]:
        """Returns, for offsets in the threads' local memory, the pattern and the base, a
        multiple of `unit` bytes, of the access in the layout that devices give local memory
        (`interleaved`)."""
        lanes = [lane for lane in range(self.lanes.bit_length()) if self.lanes >> lane & 1]
        return AddressPattern.of(self.lanes, map(interleaved, self.offsets, lanes), unit)

    def of_first_lane(self) -> AddressPattern:
        """Returns the pattern in which only the first active lane makes its access."""
        return AddressPattern(self.lanes & -self.lanes, self.offsets[:1])

    def addresses(self) -> tuple[Addresses, int]:
        """Returns an access of this pattern as cost rules accept it: the unsigned addresses of 32
        lanes, 0 for inactive ones; and by how much, a multiple of every unit, they are greater than
        the offsets, so that none is negative."""
        moved = -min((0, *self.offsets))
        # By whole units, which changes no cost.
        moved += -moved % LARGEST_UNIT
        addresses = np.zeros(WARP, np.uint64)
        addresses[active_lanes(self.lanes)] = np.array(self.offsets, np.int64) + moved
        return addresses, moved


def active_lanes(lanes: int) -> list[bool]:
    """Returns for each of 32 lanes whether its bit is set in a mask."""
    return [bool(lanes >> lane & 1) for lane in range(WARP)]


def interleaved(offset: int, lane: int, lanes: int = WARP) -> int:
    """Returns the position of a byte of a thread's local memory, `offset`, in the local memory of a
    warp of `lanes` lanes: one word of all lanes is contiguous, 128 bytes for 32 lanes (CUDA C++
    Programming Guide, "Local Memory")."""
    return (offset // 4 * lanes + lane) * 4 + offset % 4
