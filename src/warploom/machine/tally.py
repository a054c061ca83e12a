"""Holds the raw counts of one launch, by instruction and by memory access, from which counters are
derived."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from warploom.cost.fields import CostRecord
from warploom.program.accesses import FIELDS, AccessRecord, access_records
from warploom.program.program import Program

Counts = npt.NDArray[np.int64]


COLUMNS = (
    *("warps", "threads", "threads_on", "divergent", "reconvergences", "exited_members"),
    "routine_calls",
)
"""The fields of a tally that have a count for each instruction."""


@dataclass(frozen=True)
class Tally:
    """Counts of a launch by instruction of the program (arrays of shape (instructions,)) and by
    access record.

    - `warps`: times a warp issued the instruction; `threads`: lanes active at that, summed;
      `threads_on`: lanes active and with a true guard, summed.
    - `divergent`: times this branch diverged; `reconvergences`: times that the lanes which this
      branch split reconverged.
    - `exited_members`: times that a warp issued it and the member mask of some lane named a lane
      which had exited.
    - `routine_calls`: times that a warp issued it and some lane had a result for which machine code
      calls a routine (`isa.routines`).
    - `records`, shape (rows, words of a `CostRecord`): the costs of memory accesses, as the cost
      rules write them, then the costliest access; `accesses` are the costs alone, in order of
      FIELDS. `access_records` names the (instruction, space, operation) of each row.
    - `launched_warps`: the number of warps of the launch. `workers`: the number of threads that ran
      its blocks; `serial_reason` states why that was one though more were available. `tier`: the
      code that the launch ended in (`CompiledKernel.tier`), empty for the reference machine.
    """

    program: Program
    access_records: tuple[AccessRecord, ...]
    warps: Counts
    threads: Counts
    threads_on: Counts
    divergent: Counts
    reconvergences: Counts
    exited_members: Counts
    routine_calls: Counts
    records: Counts
    launched_warps: int = field(default=0)
    workers: int = 1
    serial_reason: str = ""
    tier: str = ""

    @property
    def accesses(self) -> Counts:
        """Returns a view of the counters alone, shape (rows, FIELDS)."""
        return self.records[:, : len(FIELDS)]

    @property
    def atomic_passes(self) -> Counts:
        """Returns, by instruction, the passes of atomics: one for each lane at an address."""
        passes = np.zeros(len(self.program.instructions), np.int64)
        for record, costs in zip(self.access_records, self.accesses, strict=True):
            if record.op == "atomic":
                passes[record.instruction] += costs[FIELDS.index("passes")]
        return passes

    def copied(self) -> Tally:
        """Returns a tally with counts of its own."""
        arrays = {name: getattr(self, name).copy() for name in (*COLUMNS, "records")}
        return replace(self, **arrays)

    @classmethod
    def empty(
        cls, program: Program, launched_warps: int, records: tuple[AccessRecord, ...] | None = None
    ) -> Tally:
        """Returns a tally of zeros; `records` are the program's access records if the caller has
        computed them."""
        records = access_records(program) if records is None else records
        n = len(program.instructions)

        def column() -> Counts:
            """Returns a zero for each instruction of the program."""
            return np.zeros(n, np.int64)

        return cls(
            program,
            records,
            warps=column(),
            threads=column(),
            threads_on=column(),
            divergent=column(),
            reconvergences=column(),
            exited_members=column(),
            routine_calls=column(),
            records=np.zeros((len(records), CostRecord.WORDS), np.int64),
            launched_warps=launched_warps,
        )
