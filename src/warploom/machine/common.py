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

ALL_LANES = 0xFFFFFFFF

STARTS = (0, 32, 4)
"""Where common accesses to shared memory can start: on a line, on a sector, on a word."""


def common_cost(program: Program, row: AccessRow, rules: AccessRules, start: int = 0) -> Counts:
    """The counts of one common access of a row, in the order of FIELDS.

    `start` is the first address, one of STARTS.
    """
    if row.space in (Space.TEXTURE, Space.SURFACE):  # they have no common access
        return np.zeros(len(FIELDS), np.int64)
    instruction = program.instructions[row.instruction]
    size = bytes_of(instruction)
    names = [rules.cost(row.space.value, row.op, route=route_of(instruction))]
    if row.op == "store" and (writes := rules.writes(row.space.value)):
        names.append(writes)
    return _cost(tuple(names), row.space, size, max(start, size) if start == STARTS[-1] else start)


@lru_cache(maxsize=1024)
def _cost(names: tuple[str, ...], space: Space, size: int, start: int) -> Counts:
    stride = {Space.LOCAL: 4, Space.CONST: 0}.get(space, size)
    counts = np.zeros(RULE_WIDTH, np.int64)
    addresses = np.arange(32, dtype=np.uint64) * np.uint64(stride) + np.uint64(start)
    for name in names:
        RULES[name](addresses, ALL_LANES, size, counts)
    return counts[: len(FIELDS)]
