"""Memoises the costs of accesses by pattern: an access whose pattern was seen before adds one to
the pattern's repeat count, instead of being counted by the rules.

A pattern is the active mask and the lanes' addresses relative to an aligned line of 128 bytes (256
for the bank mode of `AccessRules.unit`). The rules' costs depend on the pattern alone. So compiled
code stores, for each access instruction, a few patterns with their costs and a repeat count; only
a new pattern is counted by the rules. `settle_pattern` adds repeats * costs later. The sums are the
same as counting each access alone.

    load at 4096 + 4 * lane, then at 8192 + 4 * lane   ->   first: rules; second: REPEATS += 1

The lookup is emitted by `lower.access.access_costs`; this module has the table's layout and the
functions that fill and empty it. Irregular accesses, whose patterns never repeat, gain nothing:
after TRIAL_PATTERNS misses, most new patterns are not stored.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import FIELDS, CostRecord
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable

SLOTS = 8
"""Patterns per access instruction; the code that looks them up chooses the slot of each."""

REPEATS, MASK, STEP, OFFSETS = range(4)
COSTS = OFFSETS + 32
PATTERN_WIDTH = COSTS + len(FIELDS)
"""Words of a pattern: repeat count; active mask; STEP: the stride from lane to lane, ANY_STEP if
only one lane is active, NO_STEP if strides differ or are negative; addresses relative to the last
multiple of the unit at or below the lowest active lane's; costs."""

ANY_STEP, NO_STEP = -1, -2

NEW_PATTERNS = CostRecord.WORDS
PATTERNS_AT = NEW_PATTERNS + 1
PATTERNS_END = PATTERNS_AT + SLOTS * PATTERN_WIDTH
"""Words after an access record in compiled code. NEW_PATTERNS: new patterns since the last eviction
of a pattern that had repeated; then the patterns."""

TRIAL_PATTERNS, SAMPLE_PERIOD = 16, 64
"""The number of new patterns that are all stored, and the period at which later ones are: storing
takes time, and patterns of irregular accesses do not repeat."""

_COSTS = len(FIELDS)


@jitable
def settle_pattern(offsets: Addresses, mask: int, slot: int, record: Ints) -> None:
    """Adds the costs of a pattern's repeats to the counters, before its slot `slot` is used for
    another, and sets its repeats to 0. Stores the negated counters as the slot's costs:
    `keep_pattern` adds the counters again after the rules have counted the new pattern, which
    leaves the difference, its costs. `offsets` and `mask` are not used."""
    at = PATTERNS_AT + slot * PATTERN_WIDTH
    repeats = record[at + REPEATS]
    record[at + REPEATS] = 0
    for field in range(_COSTS):
        record[field] += repeats * record[at + COSTS + field]
        record[at + COSTS + field] = -record[field]


@jitable
def keep_pattern(offsets: Addresses, mask: int, slot: int, record: Ints) -> None:
    """Stores in slot `slot` the pattern that the rules have just counted: active mask, stride,
    offsets, and its costs (the counters minus those that `settle_pattern` has stored)."""
    at = PATTERNS_AT + slot * PATTERN_WIDTH
    record[at + MASK] = mask
    record[at + STEP] = step_of(offsets, mask)
    for lane in range(32):
        record[at + OFFSETS + lane] = np.int64(offsets[lane])
    # `settle_pattern` left the negated counters of before the access: the sum is its costs.
    for field in range(_COSTS):
        record[at + COSTS + field] += record[field]


def step_of(offsets: Addresses, mask: int) -> int:
    """Returns the stride from lane to lane of the active lanes' offsets, inactive lanes between
    them counted; ANY_STEP if one lane is active, NO_STEP if strides differ or are negative.
    Compiled code uses vector instructions instead (`helpers.rising`)."""
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
