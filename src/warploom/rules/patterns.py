"""Counting an access like the last one by adding one: what compiled code does beside the rules.

A rule's costs follow from the mask and from where the lanes' addresses lie to each other and in a
line of 128 bytes (a row of 256, where shared memory has such: `AccessRules.unit`). So a row keeps
the last pattern, what it cost, and how often it came again; only a new one has to be counted. It is
the same sum in another order.
"""

from __future__ import annotations

import numpy as np

from warploom.rules.distinct import Addresses, Row, jitable
from warploom.rules.fields import FIELDS, RULE_WIDTH

REPEATS = RULE_WIDTH
LAST_MASK = REPEATS + 1
LAST_OFFSETS = LAST_MASK + 1
LAST_COSTS = LAST_OFFSETS + 32
ROW_END = LAST_COSTS + len(FIELDS)
"""What follows a record in a row of compiled code: how often the last pattern came again, its mask,
its addresses from the last multiple of the unit at or below its first lane's, and its costs."""

_COSTS = len(FIELDS)


@jitable
def settle_pattern(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add the repeats of the last pattern; its costs then hold what is counted so far, negated."""
    repeats = row[REPEATS]
    row[REPEATS] = 0
    for field in range(_COSTS):
        row[field] += repeats * row[LAST_COSTS + field]
        row[LAST_COSTS + field] = -row[field]


@jitable
def keep_pattern(addresses: Addresses, mask: int, base: int, row: Row) -> None:
    """Keep the pattern that has just been counted, and what it cost."""
    row[LAST_MASK] = mask
    for lane in range(32):
        row[LAST_OFFSETS + lane] = np.int64(addresses[lane]) - base
    for field in range(_COSTS):
        row[LAST_COSTS + field] += row[field]
