"""Emits the choice of a slot for the pattern of an access (`cost.pattern_table`)."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.cost.device_rules import AccessRules
from warploom.cost.pattern_table import PATTERN_WIDTH, PATTERNS_AT, SLOTS
from warploom.llvm.lanes import I64, Lanes, Value

SPREAD = 0xAFE82A8F35A08CFB
"""A factor that spreads masks over the slots; found by trying random ones, as one with which the
accesses of each family of `tests/lower/test_pattern_places.py` come to different slots."""


@dataclass(frozen=True, slots=True)
class PatternPlace:
    """The slot of a pattern in its row, the word that it begins at, and the address that its
    offsets are counted from."""

    slot: Value
    at: Value
    base: Value


def pattern_place(lanes: Lanes, rules: AccessRules, bits: Value, first: Value) -> PatternPlace:
    """Emits the place for the pattern of lanes of which the lowest reaches to `first`.

    Any place will do, as long as patterns that come by turns have different ones: those that begin
    at different multiples of 4, 16 or 32 bytes in a unit, up to as many as there are slots.
    """
    b = lanes.b
    # What one lane alone costs does not depend on where it is.
    alone = b.icmp_unsigned("==", b.and_(bits, b.sub(bits, I64(1))), I64(0))
    base = b.select(alone, first, b.and_(first, I64(-rules.unit)))
    begin = b.sub(first, base)
    mixed = b.lshr(b.mul(bits, I64(SPREAD)), I64(61))
    words, sectors = b.lshr(begin, I64(2)), b.lshr(begin, I64(5))
    slot = b.and_(b.xor(mixed, b.xor(words, sectors)), I64(SLOTS - 1))
    return PatternPlace(slot, b.add(b.mul(slot, I64(PATTERN_WIDTH)), I64(PATTERNS_AT)), base)
