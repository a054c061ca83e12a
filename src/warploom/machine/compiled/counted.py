"""Makes the tally of a launch from the counts of compiled code.

The words of several launches of one kernel are added up before anything is made of them: to keep
the counts of a launch costs little, to make a tally does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warploom.abi.environment import ROW_WIDTH, CountLayout
from warploom.compilation.jit import CompiledKernel
from warploom.cost.atomics import WORD_BYTES
from warploom.cost.fields import EXAMPLE_COST, FIELDS, RECORD_WIDTH
from warploom.cost.pattern_table import (
    COSTS,
    PATTERN_WIDTH,
    PATTERNS_AT,
    PATTERNS_END,
    REPEATS,
    SLOTS,
)
from warploom.helpers.table import count_compiled
from warploom.machine.compiled.cache_costs import add_repeats
from warploom.machine.compiled.launch_template import Bytes, Words
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.compiled.workers import merge_tallies
from warploom.machine.tally import Tally
from warploom.simt.lane_counts import ALL_LANES

_NO_ADDRESSES = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of each worker of a launch, as they stand in memory: those of instructions, and
    from word `rows_at` on the access rows. Calling it makes the tally."""

    kernel: CompiledKernel
    launched_warps: int
    rows_at: int
    parts: tuple[Bytes, ...]
    serial_reason: str = ""

    @classmethod
    def of(cls, works: Sequence[WorkerLaunch], serial_reason: str = "") -> Counted:
        """Returns what is left of the works of a launch."""
        first = works[0]
        return cls(
            first.launch_template.kernel,
            first.launch_template.launched_warps,
            (first.launch_template.rows_at - first.launch_template.counts_at) // 8,
            tuple(work.buffers.counts() for work in works),
            serial_reason,
        )

    def __call__(self) -> Tally:
        made = _tally([self])
        return replace(made, workers=len(self.parts), serial_reason=self.serial_reason)


def combined_tally(counted: Sequence[Callable[[], Tally]]) -> Tally:
    """Return one tally of several launches of a program: counts are sums. What stands in it for a
    launch alone (`launched_warps`) is that of the first."""
    groups: dict[CompiledKernel, list[Counted]] = {}
    tallies: list[Tally] = []
    for one in counted:
        if isinstance(one, Counted):
            groups.setdefault(one.kernel, []).append(one)
        else:
            tallies.append(one())
    return merge_tallies([*tallies, *map(_tally, groups.values())])


def _tally(counted: Sequence[Counted]) -> Tally:
    """Return the tally of launches of one compiled kernel."""
    layout, at = counted[0].kernel.layout, counted[0].rows_at
    words = np.stack([part.view(np.int64) for one in counted for part in one.parts])
    tally = Tally.empty(layout.program, counted[0].launched_warps, layout.rows)
    _add_counts(tally, layout, words[:, :at].sum(axis=0))
    count = len(layout.rows)
    if count:
        rows = words[:, at : at + count * ROW_WIDTH].reshape(-1, count, ROW_WIDTH)
        for number in layout.deferring_rows:
            for row in rows[:, number]:
                count_compiled("count_deferred_access", _NO_ADDRESSES, ALL_LANES, WORD_BYTES, row)
        _add_rows(tally, layout, rows)
        for part in words:
            add_repeats(tally, layout, part[at + count * ROW_WIDTH :])
    return tally


def _add_counts(tally: Tally, layout: CountLayout, counts: Words) -> None:
    """Add the counts of each instruction."""
    program = layout.program
    for block in program.blocks:
        inside = slice(block.start, block.stop)
        tally.warps[inside], tally.threads[inside] = counts[2 * block.index : 2 * block.index + 2]
    hidden = [*program.hidden]
    tally.warps[hidden] = tally.threads[hidden] = 0
    tally.threads_on[:] = tally.threads
    for instruction, at in layout.guarded.items():
        if instruction not in program.hidden:
            tally.threads_on[instruction] = counts[at]
    for instruction, at in layout.branches.items():
        tally.divergent[instruction], tally.reconvergences[instruction] = counts[at : at + 2]
    for instruction, at in layout.members.items():
        tally.exited_members[instruction] = counts[at]
    for instruction, at in layout.routines.items():
        tally.routine_calls[instruction] = counts[at]


def _add_rows(tally: Tally, layout: CountLayout, rows: Words) -> None:
    """Add the costs of accesses: `rows` of each part, shape (parts, rows, ROW_WIDTH)."""
    # The costliest access is the first of its cost, as if one worker had seen them all.
    parts = rows[:, :, EXAMPLE_COST].argmax(axis=0)
    tally.records[...] = rows[parts, np.arange(len(parts)), :RECORD_WIDTH]
    patterns = rows[:, :, PATTERNS_AT:PATTERNS_END].reshape(*rows.shape[:2], SLOTS, PATTERN_WIDTH)
    repeated = patterns[..., REPEATS, None] * patterns[..., COSTS:]
    tally.accesses[...] = rows[:, :, : len(FIELDS)].sum(axis=0) + repeated.sum(axis=(0, 2))
