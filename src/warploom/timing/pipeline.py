"""Measures, from a finished replay, how well asynchronous copies are hidden: how long warps wait at
mbarriers and for what (copies or other threads), and how busy the Tensor Memory Accelerator is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.timing import layout as w
from warploom.timing.record.record import Record
from warploom.timing.records import TimedAccess, TimedOperation
from warploom.timing.work.operations import MachineWork

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pipeline:
    """Holds the cycles in which warps wait at mbarriers for bytes that a copy brings (`for_copies`)
    and for other threads (`for_threads`), and the share of an SM's cycles in which its Tensor
    Memory Accelerator works, from 0 to 1."""

    for_copies: int
    for_threads: int
    tma_use: float


def pipeline_of(
    record: Record, work: MachineWork, states: Words, tma_use: float
) -> Pipeline | None:
    """Returns the cycles that warps wait at mbarriers for copies and for threads, by `states`, the
    cycles of warps by operation and state: those on the short scoreboard of operations that need
    the result of a wait for an mbarrier. A wait is for copies if a copy arrives at any phase that
    it waits for. `tma_use` is that of `Pipeline`. None for launches that signal no mbarrier and
    copy nothing with the Tensor Memory Accelerator."""
    if not record.phases and not record.copies:
        return None
    waiting = _instructions(record.accesses[record.accesses[:, TimedAccess.arrivals] > 0])
    copying = _waits_for_copies(record)
    # A wait for an mbarrier is an operation with a result: the cycles are charged to the operations
    # that need it.
    cycles = {
        index: sum(
            int(states[row, w.SHORT_SCOREBOARD]) for row in _dependent_operations(work, index)
        )
        for index in waiting
    }
    # A phase that a copy and threads complete counts as a wait for the copy.
    for_copies = sum(count for index, count in cycles.items() if index in copying)
    return Pipeline(for_copies, sum(cycles.values()) - for_copies, tma_use)


def _instructions(accesses: Words) -> set[int]:
    """Returns the distinct numbers of the instructions that made the given accesses, rows of
    `Record.accesses`."""
    return set(np.unique(accesses[:, TimedAccess.instruction]).tolist())


def _waits_for_copies(record: Record) -> set[int]:
    """Returns the instructions that wait for a phase of an mbarrier at which, in this launch, a
    copy arrives when it ends, threads perhaps as well. Phases are compared by their number in a
    block, so that a copy in another block counts."""
    accesses = record.accesses
    by_copy = record.bulk[accesses[:, TimedAccess.instruction]] & (
        accesses[:, TimedAccess.phase_id] > 0
    )
    signalled_phases = np.unique(accesses[by_copy, TimedAccess.phase_id])
    waits = accesses[accesses[:, TimedAccess.arrivals] > 0]
    return _instructions(waits[np.isin(waits[:, TimedAccess.phase_id], signalled_phases)])


def _dependent_operations(work: MachineWork, instruction: int) -> list[int]:
    """Returns the rows of the operations, except that of instruction `instruction` itself, that
    need a register which the instruction (its first operation; it must have one) writes: anywhere
    in the code, also before it or after another instruction that writes the register."""
    [row] = np.flatnonzero(work.operations[:, TimedOperation.instruction] == instruction)[:1]
    written = _registers_of(work, row, TimedOperation.writes_at, TimedOperation.writes)
    return [
        other
        for other in range(len(work.operations))
        if other != row
        and written & _registers_of(work, other, TimedOperation.needs_at, TimedOperation.needs)
    ]


def _registers_of(work: MachineWork, row: int, first_word: int, count_word: int) -> set[int]:
    """Returns the registers that the operation in row `row` needs or writes: `first_word` and
    `count_word` are the fields (`needs_at` and `needs`, or `writes_at` and `writes`) of their first
    index in `work.registers`, and their number."""
    first = int(work.operations[row, first_word])
    return set(work.registers[first : first + int(work.operations[row, count_word])].tolist())
