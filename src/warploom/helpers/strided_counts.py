"""Counts the accesses of a batch of loop iterations whose address advances by a constant stride: a
helper that compiled batches (`lower.loops.strided_loops`) call.

The cost of an access depends on its address modulo a unit (`abi.range_cache`), and these residues
repeat: with unit 128 and stride 48, after 8 accesses. So a batch adds to each of the repeating
counters once.
"""

from __future__ import annotations

from typing import Any


def count_strided(
    counts: Any, position: int, step: int, within: int, shift: int, times: int
) -> int:
    """Adds `times` accesses to the counters of an entry. Returns 0.

    `within` is the mask of the low address bits that decide costs; `position` are these bits of the
    first access, each further one is `step` bytes after the one before; a counter is for
    1 << `shift` bytes of them.
    """
    period, at = 1, (position + step) & within
    # The number of accesses after which the address within the unit repeats.
    while at != position and period < times:
        period += 1
        at = (at + step) & within
    whole, more = times // period, times % period
    at = position
    # Each position of the period gets `whole` accesses, the first `more` of them one more.
    for number in range(min(period, times)):
        counts[at >> shift] += whole + (1 if number < more else 0)
        at = (at + step) & within
    return 0
