"""Builds the tally of a launch from the counts of compiled code.

The counts of several launches of one kernel are added up before they are interpreted: storing the
raw counts of a launch is cheap, building a tally is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from warploom.abi.environment import CountLayout
from warploom.compilation.jit import CompiledKernel
from warploom.cost.atomics import WORD_BYTES
from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.fields import FIELDS, CostRecord
from warploom.cost.pattern_table import SLOTS, CostTable, StoredPattern
from warploom.helpers.table import count_compiled
from warploom.machine.compiled.cache_costs import CacheCosts
from warploom.machine.compiled.launch_template import Bytes, LaunchTemplate, Words
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.compiled.workers import merge_tallies
from warploom.machine.tally import Tally
from warploom.simt.lane_counts import ALL_LANES

_NO_ADDRESSES = np.zeros(0, np.uint64)

_CACHE_COSTS: WeakKeyDictionary[CompiledKernel, CacheCosts] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Counted:
    """The raw counts of each part of a launch, in the order of their blocks: those of instructions,
    and from word `records_at` on the access records. Calling the object builds the tally.
    `workers`: how many threads ran the launch; `serial_reason`: why that was one, empty if it could
    be several."""

    kernel: CompiledKernel
    launched_warps: int
    records_at: int
    parts: tuple[Bytes, ...]
    workers: int = 1
    serial_reason: str = ""

    @classmethod
    def of(cls, work: WorkerLaunch) -> Counted:
        """Returns a copy of the counts that a launch of one part leaves in its buffers."""
        return cls.of_parts(work.launch_template, [work.buffers.counted.copy()], 1, "")

    @classmethod
    def of_parts(
        cls,
        launch_template: LaunchTemplate,
        parts: Sequence[Bytes],
        workers: int,
        serial_reason: str,
    ) -> Counted:
        """Returns the counts of a launch from those of its parts, in the order of their blocks, of
        which `launch_template` is that of the first."""
        return cls(
            launch_template.kernel,
            launch_template.launched_warps,
            (launch_template.records_at - launch_template.counts_at) // 8,
            tuple(parts),
            workers,
            serial_reason,
        )

    def __call__(self) -> Tally:
        """Returns the tally of the launch, computed anew at each call, with the number of workers,
        the reason why there was only one, and the tier of the code."""
        tally = _tally([self])
        return replace(
            tally,
            workers=self.workers,
            serial_reason=self.serial_reason,
            tier=self.kernel.tier,
        )


def in_sequence(head: Counted, rest: Counted) -> Callable[[], Tally]:
    """Returns a function that builds the tally of a launch whose first blocks one worker has run,
    and the others the workers of `rest`, perhaps in other code."""

    def tally() -> Tally:
        """Returns the sums of both, with the workers, the reason and the tier of `rest`."""
        return replace(
            combined_tally([head, rest]),
            workers=rest.workers,
            serial_reason=rest.serial_reason,
            tier=rest.kernel.tier,
        )

    return tally


def combined_tally(counted: Sequence[Callable[[], Tally]]) -> Tally:
    """Returns one tally of several launches of a program: counts are summed, fields of one launch
    (`launched_warps`) are those of the first tally merged. Each element of `counted` is a
    `Counted`, whose raw counts are added up per kernel first, or another function that returns a
    tally; tallies of the latter are merged first."""
    groups: dict[CompiledKernel, list[Counted]] = {}
    tallies: list[Tally] = []
    for part in counted:
        if isinstance(part, Counted):
            groups.setdefault(part.kernel, []).append(part)
        else:
            tallies.append(part())
    if tallies:  # which others may read: the first one is overwritten
        tallies[0] = tallies[0].copied()
    return merge_tallies([*tallies, *map(_tally, groups.values())])


def _tally(counted: Sequence[Counted]) -> Tally:
    """Returns one tally of launches of one compiled kernel: the sums of their counts of
    instructions, the costs in their access records, and the costs of the accesses that pattern
    tables, range caches and lists of deferred atomics counted."""
    layout, records_at = counted[0].kernel.layout, counted[0].records_at
    parts = [part.view(np.int64) for launch in counted for part in launch.parts]
    count = len(layout.records)
    caches_at = records_at + layout.caches_at
    # A row for each part of each launch: range caches, which follow, differ in length.
    words = np.stack([part[:caches_at] for part in parts])
    tally = Tally.empty(layout.program, counted[0].launched_warps, layout.records)
    _set_counts(tally, layout, words[:, :records_at].sum(axis=0))
    if count:
        records = words[:, records_at:].reshape(-1, count, AccessCounts.WORDS)
        # Atomics that were still batched when the launch ended are counted now.
        for number in layout.deferring_records:
            for record in records[:, number]:
                count_compiled(
                    "count_deferred_access", _NO_ADDRESSES, ALL_LANES, WORD_BYTES, record
                )
        _set_records(tally, layout, records)
        _cache_costs(counted[0].kernel).add(tally, [part[caches_at:] for part in parts])
    return tally


def _cache_costs(kernel: CompiledKernel) -> CacheCosts:
    """Returns the costs of accesses that the range caches of a kernel count, one object for all
    its launches."""
    costs = _CACHE_COSTS.get(kernel)
    if costs is None:
        costs = _CACHE_COSTS[kernel] = CacheCosts(kernel.layout)
    return costs


def _set_counts(tally: Tally, layout: CountLayout, counts: Words) -> None:
    """Overwrites the counts of instructions in a tally (`CountLayout` has the indices in `counts`).
    `warps` and `threads` are the two counts of their basic blocks, 0 for hidden instructions.
    `threads_on` is the count of a guarded instruction, else equal to `threads`. Divergence and
    reconvergence of branches, exited members, and calls of routines have counts of their own."""
    program = layout.program
    for block in program.blocks:
        in_block = slice(block.start, block.stop)
        tally.warps[in_block], tally.threads[in_block] = counts[
            2 * block.index : 2 * block.index + 2
        ]
    # Compiled code counts per basic block; instructions of inlined calling sequences are not the
    # user's.
    hidden = [*program.hidden]
    tally.warps[hidden] = tally.threads[hidden] = 0
    # Only guarded instructions have a count of their own.
    tally.threads_on[:] = tally.threads
    for instruction, count_at in layout.guarded.items():
        if instruction not in program.hidden:
            tally.threads_on[instruction] = counts[count_at]
    for instruction, count_at in layout.branches.items():
        tally.divergent[instruction], tally.reconvergences[instruction] = counts[
            count_at : count_at + 2
        ]
    for instruction, count_at in layout.members.items():
        tally.exited_members[instruction] = counts[count_at]
    for instruction, count_at in layout.routines.items():
        tally.routine_calls[instruction] = counts[count_at]


def _set_records(tally: Tally, layout: CountLayout, records: Words) -> None:
    """Overwrites the access records of a tally: the sums of their costs over the parts (of each
    launch) plus those of the hits of their pattern tables, and as example the
    costliest access, of equal ones the first part's; `records` has shape (parts, access records,
    AccessCounts.WORDS)."""
    # The costliest access is the first of its cost, as if one worker had seen them all.
    parts = records[:, :, CostRecord.example_cost].argmax(axis=0)
    tally.records[...] = records[parts, np.arange(len(parts)), : CostRecord.WORDS]
    # The pattern table has counted hits only; a hit costs what the pattern's first access did.
    patterns = records[:, :, CostTable.patterns : CostTable.WORDS]
    patterns = patterns.reshape(*records.shape[:2], SLOTS, StoredPattern.WORDS)
    repeated = patterns[..., StoredPattern.repeats, None] * patterns[..., StoredPattern.costs :]
    tally.accesses[...] = records[:, :, : len(FIELDS)].sum(axis=0) + repeated.sum(axis=(0, 2))
