"""Computes what single accesses cost by a device's rules; compiled code only counts them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warploom.analysis.accesses import FIELDS, AccessRow, bytes_of, route_of
from warploom.analysis.program import Program
from warploom.codegen.helpers import count_compiled
from warploom.machine.tally import Counts
from warploom.ptx.ir import Space
from warploom.rules.choice import AccessRules
from warploom.rules.fields import RECORD_WIDTH

ALL_LANES = 0xFFFFFFFF

STRIDES = {Space.LOCAL: 4, Space.CONST: 0}
"""Bytes from lane to lane in common accesses, where not those that a lane accesses."""


def common_cost(program: Program, row: AccessRow, rules: AccessRules) -> Counts:
    """Return the counts of one common access of a row, in the order of FIELDS."""
    if row.space in (Space.TEXTURE, Space.SURFACE):  # they have no common access
        return np.zeros(len(FIELDS), np.int64)
    size = bytes_of(program.instructions[row.instruction])
    stride = STRIDES.get(row.space, size)
    addresses = tuple(stride * lane for lane in range(32))
    return _cost(_rules_of(program, row, rules), size, ALL_LANES, addresses)


def access_cost(
    program: Program, row: AccessRow, rules: AccessRules, mask: int, addresses: tuple[int, ...]
) -> Counts:
    """Returns the counts of one access of a row by the lanes of a mask, in the order of FIELDS."""
    size = bytes_of(program.instructions[row.instruction])
    return _cost(_rules_of(program, row, rules), size, mask, addresses)


def _rules_of(program: Program, row: AccessRow, rules: AccessRules) -> tuple[str, ...]:
    """Return the rules by which accesses of a row are counted."""
    route = route_of(program.instructions[row.instruction])
    names = [rules.cost(row.space.value, row.op, route=route)]
    if row.op == "store" and (writes := rules.writes(row.space.value)):
        names.append(writes)
    return tuple(names)


@lru_cache(maxsize=1 << 14)
def _cost(names: tuple[str, ...], size: int, mask: int, addresses: tuple[int, ...]) -> Counts:
    counts = np.zeros(RECORD_WIDTH, np.int64)
    for name in names:
        count_compiled(name, np.array(addresses, np.uint64), mask, size, counts)
    return counts[: len(FIELDS)]
