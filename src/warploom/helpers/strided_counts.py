"""Counts accesses whose places advance by a stride, for compiled code.

Costs of an access depend on its place within a unit of memory (`abi.range_cache`), which comes
again after a number of accesses that divides the unit.
"""

from __future__ import annotations

from typing import Any


def count_strided(counts: Any, place: int, step: int, within: int, shift: int, times: int) -> int:
    """Adds `times` accesses to the `counts` by place, in elements of 1 << `shift` bytes. The first
    is `place` bytes into its unit, each of the others `step` bytes behind the one before; `within`
    are the bits of an address that decide."""
    period, at = 1, (place + step) & within
    while at != place and period < times:
        period += 1
        at = (at + step) & within
    whole, more = times // period, times % period
    at = place
    for number in range(min(period, times)):
        counts[at >> shift] += whole + (1 if number < more else 0)
        at = (at + step) & within
    return 0
