"""Emits the choice of a slot in the table that memoises costs by the pattern of an access
(`cost.pattern_table`): a hash of its active mask and of its first address."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.cost.device_rules import AccessRules
from warploom.cost.pattern_table import SLOTS, CostTable, StoredPattern
from warploom.llvm.lanes import I64, Lanes, Value

SPREAD = 0xAFE82A8F35A08CFB
"""An odd factor that spreads masks over the slots. It was found by trying random ones: with it the
accesses of each family in `tests/lower/test_pattern_slots.py` get different slots."""


@dataclass(frozen=True, slots=True)
class PatternSlot:
    """Holds the slot of a pattern in its record (`slot`), the record's word at which that begins
    (`at`), and the address from which its offsets count (`base`)."""

    slot: Value
    at: Value
    base: Value


def pattern_slot(
    lanes: Lanes, rules: AccessRules, bits: Value, first_address: Value
) -> PatternSlot:
    """Emits the slot, of the 8 in an access record's pattern table, for the pattern of an access,
    its offset in the record, and the base that its lanes' offsets count from: `first_address`
    rounded down to the device's unit (128 or 256 bytes), or `first_address` itself if one lane is
    active. `first_address` is the address of the lowest active lane, `bits` the mask (i64).

    Any slot is right: it is chosen by mask and begin. Accesses of one instruction that alternate
    should have different ones: these are accesses that begin at different multiples of 4, 16 or 32
    bytes in a unit, up to the number of slots."""
    b = lanes.b
    # The cost of a single lane does not depend on its address, so all such accesses share a pattern
    # with offset 0.
    single_lane = b.icmp_unsigned("==", b.and_(bits, b.sub(bits, I64(1))), I64(0))
    base = b.select(single_lane, first_address, b.and_(first_address, I64(-rules.unit)))
    begin = b.sub(first_address, base)
    # The upper 3 bits of the product number the 8 slots.
    hashed = b.lshr(b.mul(bits, I64(SPREAD)), I64(61))
    words, sectors = b.lshr(begin, I64(2)), b.lshr(begin, I64(5))
    slot = b.and_(b.xor(hashed, b.xor(words, sectors)), I64(SLOTS - 1))
    at = b.add(b.mul(slot, I64(StoredPattern.WORDS)), I64(CostTable.patterns))
    return PatternSlot(slot, at, base)
