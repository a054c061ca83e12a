"""How many writes memory makes of a warp's store, where several lanes name one address.

From compute capability 2.0 on, one lane writes to each address (CUDA C Programming Guide 4.2, F.4.2
and F.4.3). On 1.x, one lane of each half-warp writes to shared memory (F.3.3); what becomes of a
store to global memory the guide does not say, and every lane counts as a write. Which lane's value
lasts is undefined everywhere: `lasting` chooses.
"""

from __future__ import annotations

from warploom.rules.distinct import (
    Addresses,
    Row,
    count_distinct,
    count_lanes,
    jitable,
)
from warploom.rules.fields import WRITES


@jitable
def write_by_address(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """One write for each address."""
    row[WRITES] += count_distinct(addresses, mask, 0)


@jitable
def write_by_halves(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """One write for each address in each half-warp."""
    row[WRITES] += count_distinct(addresses, mask & 0xFFFF, 0)
    row[WRITES] += count_distinct(addresses, mask & 0xFFFF0000, 0)


@jitable
def write_by_lane(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """One write for each lane."""
    row[WRITES] += count_lanes(mask)
