"""Computes on the host, by a device's rules, the cost (sectors, transactions, ...) of one access
with an address pattern.

Compiled code only counts how often an access pattern occurs; multiplied by the costs from here,
that gives the counters of a launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from warploom.cost.address_pattern import AddressPattern
from warploom.cost.device_rules import AccessRules
from warploom.cost.fields import CostRecord
from warploom.helpers.table import count_compiled
from warploom.isa.instruction import Space
from warploom.machine.tally import Counts
from warploom.program.accesses import FIELDS, AccessRecord, bytes_of, route_of
from warploom.program.program import Program

ALL_LANES = 0xFFFFFFFF

STRIDES = {Space.LOCAL: 4, Space.CONST: 0}
"""Bytes from lane to lane in the common access of a space, where that is not the bytes that each
lane accesses."""


@dataclass(frozen=True)
class RecordRule:
    """The cost rules of an access record: `names` of functions that `count_compiled` calls, each of
    which adds its counters, and the bytes that each lane accesses."""

    names: tuple[str, ...]
    size: int

    def cost(self, pattern: AddressPattern) -> Counts:
        """Returns the counts of one access, in the order of FIELDS: a cached array, not to be
        changed."""
        return _cost(self, pattern)


def record_rule(program: Program, record: AccessRecord, rules: AccessRules) -> RecordRule:
    """Returns the rule by which accesses of an access record are counted on a device: the bytes
    that a thread accesses, and the names of the cost functions. There is one for the record's state
    space, operation and cache route (`route_of`), and for stores also one that counts writes, where
    the device has one."""
    instruction = program.instructions[record.instruction]
    names = [rules.cost(record.space.value, record.op, route=route_of(instruction))]
    if record.op == "store" and (writes := rules.writes(record.space.value)):
        names.append(writes)
    return RecordRule(tuple(names), bytes_of(instruction))


def common_cost(program: Program, record: AccessRecord, rules: AccessRules) -> Counts:
    """Returns the counts of the common access of a record, in the order of FIELDS: all 32 lanes at
    consecutive elements, in constant memory all at one address, in local memory at consecutive
    words; zeros for textures and surfaces, which have no common access."""
    if record.space in (Space.TEXTURE, Space.SURFACE):
        return np.zeros(len(FIELDS), np.int64)
    rule = record_rule(program, record, rules)
    stride = STRIDES.get(record.space, rule.size)
    return rule.cost(AddressPattern(ALL_LANES, tuple([stride * lane for lane in range(32)])))


@lru_cache(maxsize=1 << 14)
def _cost(rule: RecordRule, pattern: AddressPattern) -> Counts:
    """Returns `RecordRule.cost`: the sum of the counts of the rule's cost functions; the results
    are cached, since kernels repeat few patterns."""
    counts = np.zeros(CostRecord.WORDS, np.int64)
    addresses, _ = pattern.addresses()
    for name in rule.names:
        count_compiled(name, addresses, pattern.lanes, rule.size, counts)
    return counts[: len(FIELDS)]
