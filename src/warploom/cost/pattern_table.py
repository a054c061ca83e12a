"""Memoises the costs of accesses by pattern: an access whose pattern was seen before adds one to
the pattern's repeat count, instead of being counted by the rules.

A pattern is the active mask and the lanes' addresses relative to an aligned line of 128 bytes (256
for the bank mode of `AccessRules.unit`). The rules' costs depend on the pattern alone. So compiled
code stores, for each access instruction, a few patterns with their costs and a repeat count; only
a new pattern is counted by the rules. `settle_pattern` adds repeats * costs later. The sums are the
same as counting each access alone.

    load at 4096 + 4 * lane, then at 8192 + 4 * lane   ->   first: rules; second: repeats += 1

The lookup is emitted by `lower.access.access_costs`; this module has the table's layout and the
functions that fill and empty it. Irregular accesses, whose patterns never repeat, gain nothing:
after TRIAL_PATTERNS misses, most new patterns are not stored.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from warploom.cost.fields import FIELDS, CostRecord
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable
from warploom.simt.records import WordRecord, Words

SLOTS = 8
"""Patterns per access instruction; the code that looks them up chooses the slot of each."""

ANY_STEP, NO_STEP = -1, -2
"""The `step` of a pattern in which only one lane is active, or strides differ or are negative."""


class StoredPattern(WordRecord):
    """A pattern, its costs, and how often it was repeated."""

    repeats: int
    mask: int  # of active lanes
    step: int  # the stride from lane to lane
    # Addresses relative to the last multiple of the unit at or below the lowest active lane's.
    offsets: Annotated[Words, 32]
    costs: Annotated[Words, len(FIELDS)]


class CostTable(WordRecord):
    """The record of an access in compiled code, with the table of its patterns."""

    record: CostRecord
    new_patterns: int  # since the last eviction of a pattern that had repeated
    patterns: Annotated[Words, SLOTS * StoredPattern.WORDS]


TRIAL_PATTERNS, SAMPLE_PERIOD = 16, 64
"""The number of new patterns that are all stored, and the period at which later ones are: storing
costs time, and patterns of irregular accesses do not repeat."""

_COSTS = len(FIELDS)


@jitable
def settle_pattern(offsets: Addresses, mask: int, slot: int, record: Ints) -> None:
    """Adds the costs of a pattern's repeats to the counters, before its slot `slot` is used for
    another, and sets its repeats to 0. Stores the negated counters as the slot's costs:
    `store_pattern` adds the counters again after the rules have counted the new pattern, which
    leaves the difference, its costs. `offsets` and `mask` are not needed (`device_rules.Rule`)."""
    pattern = StoredPattern(record, CostTable.patterns, slot)
    repeats = pattern.repeats
    pattern.repeats = 0
    # Needs no copy of the counters: -before here and +after in `store_pattern` leave the
    # difference.
    for field in range(_COSTS):
        record[field] += repeats * pattern.costs[field]
        pattern.costs[field] = -record[field]


@jitable
def store_pattern(offsets: Addresses, mask: int, slot: int, record: Ints) -> None:
    """Stores in slot `slot` the pattern that the rules have just counted: active mask, stride,
    offsets, and its costs (the counters minus those that `settle_pattern` has stored)."""
    pattern = StoredPattern(record, CostTable.patterns, slot)
    pattern.mask = mask
    pattern.step = step_of(offsets, mask)
    for lane in range(32):
        pattern.offsets[lane] = np.int64(offsets[lane])
    # `settle_pattern` left the negated counters of before the access: the sum is its costs.
    for field in range(_COSTS):
        pattern.costs[field] += record[field]


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
