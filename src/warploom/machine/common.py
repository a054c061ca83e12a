"""What the common access costs: every lane on, and addresses in the pattern cheapest in its space.

Compiled code counts only how often it happened; its cost is the rule's own answer for one of them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warploom.analysis.accesses import FIELDS, AccessRow, bytes_of, route_of
from warploom.analysis.program import Program
from warploom.machine.tally import Counts
from warploom.ptx.ir import Space
from warploom.rules.choice import RULES, AccessRules
from warploom.rules.fields import RULE_WIDTH
from warploom.rules.rows import representative

ALL_LANES = 0xFFFFFFFF

STARTS = (0, 32, 4)
"""Where common accesses to shared memory can start: on a line, on a sector, on a word."""

STRIDES = {Space.LOCAL: 4, Space.CONST: 0}
"""Bytes from lane to lane in common accesses, where not those that a lane accesses."""


def common_cost(program: Program, row: AccessRow, rules: AccessRules, start: int = 0) -> Counts:
    """The counts of one common access of a row, in the order of FIELDS.

    `start` is the first address, one of STARTS.
    """
    if row.space in (Space.TEXTURE, Space.SURFACE):  # they have no common access
        return np.zeros(len(FIELDS), np.int64)
    size = bytes_of(program.instructions[row.instruction])
    first = max(start, size) if start == STARTS[-1] else start
    stride = STRIDES.get(row.space, size)
    return _strided_cost(_rules_of(program, row, rules), size, first, stride)


def kind_cost(program: Program, row: AccessRow, rules: AccessRules, kind: int) -> Counts:
    """The counts of one access by rows of a kind (`rules.rows`), in the order of FIELDS."""
    size = bytes_of(program.instructions[row.instruction])
    addresses = representative(kind, size)
    return _cost(_rules_of(program, row, rules), size, tuple(addresses.tolist()))


def _rules_of(program: Program, row: AccessRow, rules: AccessRules) -> tuple[str, ...]:
    """The rules by which accesses of a row are counted."""
    route = route_of(program.instructions[row.instruction])
    names = [rules.cost(row.space.value, row.op, route=route)]
    if row.op == "store" and (writes := rules.writes(row.space.value)):
        names.append(writes)
    return tuple(names)


@lru_cache(maxsize=1024)
def _strided_cost(names: tuple[str, ...], size: int, first: int, stride: int) -> Counts:
    return _cost(names, size, tuple(first + stride * lane for lane in range(32)))


@lru_cache(maxsize=1024)
def _cost(names: tuple[str, ...], size: int, addresses: tuple[int, ...]) -> Counts:
    counts = np.zeros(RULE_WIDTH, np.int64)
    for name in names:
        RULES[name](np.array(addresses, np.uint64), ALL_LANES, size, counts)
    return counts[: len(FIELDS)]
