"""What lanes touch that are not far from each other, in any order: how many stretches of memory,
how those lie to each other, and how lanes meet on them.

Compiled code does it in two passes over the lanes (`codegen.marks`).
"""

from __future__ import annotations

from collections import Counter

from warploom.rules.distinct import Addresses, Row

ROWS = 32
"""Rows of 32 stretches over which lanes may lie, and still be near."""

Near = tuple[int, int, int, int, int, int]


def count_near(addresses: Addresses, mask: int, shift: int, row: Row) -> Near:
    """Of the stretches of 2^shift bytes that the lanes touch: how many there are; how many groups
    of 4, of 8 and of 32 neighbours have one; the most in any of 32 columns; and the most lanes on
    one. Zeros where the lanes are not near.

    A row of counts has room behind it that compiled code uses meanwhile.
    """
    lanes = Counter(int(addresses[lane]) >> shift for lane in range(32) if (mask >> lane) & 1)
    if max(lanes) // 32 - min(lanes) // 32 >= ROWS:
        return 0, 0, 0, 0, 0, 0
    fours, eights, lines = (len({one // size for one in lanes}) for size in (4, 8, 32))
    columns = Counter(one % 32 for one in lanes)
    return len(lanes), fours, eights, lines, max(columns.values()), max(lanes.values())
