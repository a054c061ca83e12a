"""What the common access costs: every lane on, and addresses in the pattern cheapest in its space.

Compiled code counts only how often it happened; its cost is the rule's own answer for one of them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warploom.analysis.accesses import FIELDS, AccessRow
from warploom.analysis.program import Program
from warploom.machine.tally import Counts
from warploom.ptx.ir import Space, Vector
from warploom.rules.banks import count_shared
from warploom.rules.coalescing import count_global, count_local
from warploom.rules.constant import count_constant

ALL_LANES = 0xFFFFFFFF

RULES = {
    Space.GLOBAL: count_global,
    Space.SHARED: count_shared,
    Space.LOCAL: count_local,
    Space.CONST: count_constant,
}


def common_cost(program: Program, row: AccessRow) -> Counts:
    """The counts of one common access of a row, in the order of FIELDS."""
    instruction = program.instructions[row.instruction]
    vectors = [o for o in instruction.operands if isinstance(o, Vector)]
    parts = len(vectors[0].elements) if vectors else 1
    return _cost(row.space, instruction.operation.modifiers.scalar().bytes * parts)


@lru_cache
def _cost(space: Space, size: int) -> Counts:
    stride = {Space.LOCAL: 4, Space.CONST: 0}.get(space, size)
    counts = np.zeros(len(FIELDS), np.int64)
    RULES[space](np.arange(32, dtype=np.uint64) * np.uint64(stride), ALL_LANES, size, counts)
    return counts
