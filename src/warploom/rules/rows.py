"""Accesses by rows: each half of a warp reads one place, or consecutive places from an aligned one
on, or writes those.

What such an access costs follows from how its two rows lie to each other: the same, in one sector,
in one line, apart, or apart at the same place of their lines, which in shared memory is in the same
banks. Compiled code counts how often each kind came; the rule itself says what one costs. No rule
tells more kinds apart, as long as it looks at no more of an address than its place in a line
(`AccessRules.unit`).
"""

from __future__ import annotations

import numpy as np

from warploom.rules.distinct import Addresses, jitable

EQUAL, SECTOR, LINE, APART, BANK = range(5)
CONSECUTIVE = 5
"""Added where the lanes of a half read consecutive places."""

KINDS = 10

SECTOR_BYTES, LINE_BYTES = 32, 128
HALF = 16


def representative(kind: int, size: int) -> Addresses:
    """The addresses of an access of that kind, `size` bytes a lane, the first row at 0."""
    consecutive, relation = divmod(kind, CONSECUTIVE)
    row = HALF * size if consecutive else size
    second = {
        EQUAL: 0,
        SECTOR: row,
        LINE: max(row, SECTOR_BYTES),
        APART: LINE_BYTES + LINE_BYTES // 2,
        BANK: 2 * LINE_BYTES,
    }[relation]
    inside = np.arange(HALF, dtype=np.uint64) * np.uint64(size * consecutive)
    return np.concatenate([inside, inside + np.uint64(second)])


@jitable
def kind_of(first: int, second: int, consecutive: int) -> int:
    """The kind of an access whose rows begin at these addresses."""
    between = first ^ second
    if between == 0:
        relation = EQUAL
    elif between < SECTOR_BYTES:
        relation = SECTOR
    elif between < LINE_BYTES:
        relation = LINE
    elif (second - first) % LINE_BYTES == 0:
        relation = BANK
    else:
        relation = APART
    return relation + CONSECUTIVE * consecutive
