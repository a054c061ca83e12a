"""The raw counts of one launch, instruction by instruction: what a machine hands to observers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.analysis.accesses import FIELDS, AccessRow, access_rows
from warploom.analysis.program import Program

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tally:
    """Counts by instruction of the program (arrays of shape (instructions,)) and by access row.

    - `warps`: times a warp issued it; `threads`: lanes active then, summed; `threads_on`: lanes
      active and with a true guard, summed.
    - `divergent`: times this branch sent active lanes both ways; `reconvergences`: times that the
      lanes which this branch parted met again.
    - `accesses`, shape (rows, len(FIELDS)): what memory accesses cost; `rows` names the rows.
    - `launched_warps`: how many warps the launch had.
    """

    program: Program
    rows: tuple[AccessRow, ...]
    warps: Counts
    threads: Counts
    threads_on: Counts
    divergent: Counts
    reconvergences: Counts
    accesses: Counts
    launched_warps: int = field(default=0)

    @classmethod
    def empty(cls, program: Program, launched_warps: int) -> Tally:
        """All counts zero."""
        rows = access_rows(program)
        n = len(program.instructions)

        def column() -> Counts:
            return np.zeros(n, np.int64)

        accesses = np.zeros((len(rows), len(FIELDS)), np.int64)
        return cls(
            program,
            rows,
            warps=column(),
            threads=column(),
            threads_on=column(),
            divergent=column(),
            reconvergences=column(),
            accesses=accesses,
            launched_warps=launched_warps,
        )
