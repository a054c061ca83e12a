"""Counting an access like an earlier one by adding one: what compiled code does beside the rules.

A rule's costs follow from the mask and from where the lanes' addresses lie to each other and in a
line of 128 bytes (a row of 256, where shared memory has such: `AccessRules.unit`). So a row keeps
some patterns, what each cost, and how often it came again; only a new one has to be counted. It is
the same sum in another order.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import FIELDS, RECORD_WIDTH
from warploom.simt.lane_counts import Addresses, Row, first_lane, jitable

SLOTS = 8
"""Patterns that a row keeps; which one takes which place is for the code that looks them up."""

REPEATS, MASK, STEP, OFFSETS = range(4)
COSTS = OFFSETS + 32
PATTERN_WIDTH = COSTS + len(FIELDS)
"""A pattern: how often it came again, its mask, its addresses from the last multiple of the unit at
or below its first lane's, and its costs. STEP: by how much they rise from lane to lane; ANY_STEP
where there is but one, NO_STEP where it differs."""

ANY_STEP, NO_STEP = -1, -2

NEW_PATTERNS = RECORD_WIDTH
PATTERNS_AT = NEW_PATTERNS + 1
PATTERNS_END = PATTERNS_AT + SLOTS * PATTERN_WIDTH
"""What follows a record in a row of compiled code: how many new patterns have come since one that
came again had to make room, and the patterns."""

TRIAL_PATTERNS, SAMPLE_PERIOD = 16, 64
"""So many patterns are kept on trial, and then one in so many: keeping them costs time, and where
lanes go anywhere none comes again."""

_COSTS = len(FIELDS)


@jitable
def settle_pattern(offsets: Addresses, mask: int, slot: int, row: Row) -> None:
    """Add the repeats of a pattern; its costs then hold what is counted so far, negated."""
    at = PATTERNS_AT + slot * PATTERN_WIDTH
    repeats = row[at + REPEATS]
    row[at + REPEATS] = 0
    for field in range(_COSTS):
        row[field] += repeats * row[at + COSTS + field]
        row[at + COSTS + field] = -row[field]


@jitable
def keep_pattern(offsets: Addresses, mask: int, slot: int, row: Row) -> None:
    """Keep the pattern that has just been counted, and what it cost."""
    at = PATTERNS_AT + slot * PATTERN_WIDTH
    row[at + MASK] = mask
    row[at + STEP] = step_of(offsets, mask)
    for lane in range(32):
        row[at + OFFSETS + lane] = np.int64(offsets[lane])
    for field in range(_COSTS):
        row[at + COSTS + field] += row[field]


def step_of(offsets: Addresses, mask: int) -> int:
    """Returns by how much the places of the lanes rise from lane to lane. Compiled code has vector
    instructions for it (`helpers.rising`)."""
    lowest = first_lane(mask)
    step = ANY_STEP
    for lane in range(lowest + 1, 32):
        if (mask >> lane) & 1:
            offset = int(np.int64(offsets[lane])) - int(np.int64(offsets[lowest]))
            if step == ANY_STEP:
                step = offset // (lane - lowest)
            if step < 0 or step * (lane - lowest) != offset:
                return NO_STEP
    return step
