"""Advice about control flow: the issue slots that divergence leaves empty, and shuffles that name
lanes without a thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from warploom.isa.kinds import OpKind
from warploom.program.accesses import accesses
from warploom.program.dominance import post_dominators
from warploom.program.program import Program
from warploom.report.advice.case import Advice, Case, costs_of
from warploom.report.advice.loops import has_independent_iterations
from warploom.report.advice.origins import origins
from warploom.report.advice.reductions import is_interleaved_reduction
from warploom.report.work import slots_of

LEAST_LOST = 0.08
"""The share of all slots from which on divergence is reported: the last steps of a reduction and
the borders of a grid lose less."""

SHORT_SIDE = 8
"""The instructions of a side of a branch up to which computing both sides costs about as much as
branching."""

SMALL_SIDE = 0.1
"""A side with a smaller share of the instructions of both counts as empty."""

FEW_THREADS = 1.5
"""The threads of a block, on average, up to which a side of a branch is the work of one thread."""


@dataclass(frozen=True, slots=True)
class Region:
    """The basic blocks between a branch and the point where the lanes reconverge, and those of them
    that only the first and only the second successor leads to."""

    blocks: frozenset[int]
    sides: tuple[frozenset[int], frozenset[int]]
    is_loop: bool


def divergence(case: Case) -> Iterator[Advice]:
    """Yields advice for the branches of a line whose lanes go both ways, by the issue slots that
    are lost between a branch and the point where the lanes reconverge."""
    all_counts = case.counters.by_instruction()
    diverged = [i for i, counts in enumerate(all_counts) if counts.divergent_branches]
    regions = _regions(case.program, diverged)
    lost_work = _lost_work(case, regions)
    lines: dict[str, list[tuple[int, int]]] = {}
    for index, work in lost_work.items():
        lines.setdefault(case.program.line(index), []).append((index, int(work["issued"])))
    for line, branches in lines.items():
        lost = sum(lost for _, lost in branches)
        saved = defaultdict[str, float](float)
        for index, _ in branches:
            for field, slots in lost_work[index].items():
                saved[field] += slots
        most = max(branches, key=lambda branch: branch[1])[0]
        if most not in regions:
            continue
        if all(_is_of_one_thread(case, i, regions[i]) for i, _ in branches if i in regions):
            yield _of_one_thread(case, line, regions[most], lost, saved)
            continue
        times = sum(all_counts[index].divergent_branches for index, _ in branches)
        executed = sum(all_counts[index].branches for index, _ in branches)
        yield Advice(
            "divergence within warps",
            line,
            f"in {times:,} of the {executed:,} times that a warp executed this branch, its lanes "
            f"diverged; inactive lanes wasted {lost:,} issue slots before the warp reconverged",
            _remedy(case, most, {i: regions[i] for i, _ in branches if i in regions}),
            lost,
            LEAST_LOST,
            saves=saved,
        )


def _of_one_thread(
    case: Case, line: str, region: Region, lost: int, saved: Mapping[str, float]
) -> Advice:
    """Returns the advice for a part of a kernel that one lane of a warp executes alone, in which so
    many slots, and so much work of the units, have no lane."""
    counts = case.counters.by_instruction()
    indices = list(_instructions(case.program, region.blocks))
    executed = sum(counts[index].warp_instructions for index in indices)
    kinds = [f"shared_{op}_wavefronts" for op in ("load", "store")]
    wavefronts = sum(counts[index].get(kind, 0) for index in indices for kind in kinds)
    share = 100 * executed / max(1, case.counters.warp_instructions)
    return Advice(
        "work of one thread",
        line,
        f"one thread of each block executes {executed:,} of the instructions ({share:.0f} %), "
        f"while the other {case.threads_per_block - 1} threads are idle",
        "Let all threads share this work. For a reduction such as a sum, halve the number of "
        "values in each step: first with shuffles within each warp (__shfl_down_sync), then in "
        "shared memory across the warps' results. Let one thread write the final result.",
        lost,
        LEAST_LOST,
        saves={**saved, "wavefronts": wavefronts * (1 - 1 / case.spec.warp_size)},
    )


def _remedy(case: Case, branch: int, regions: Mapping[int, Region]) -> str:
    """Returns what gains for sides of this length, by what the condition depends on: for the branch
    of a line at which most is lost, among the `regions` of all, of which a `switch` has several."""
    region = regions[branch]
    guard, warp = case.program.instructions[branch].guard, case.spec.warp_size
    found = origins(case.program, [guard.register]) if guard is not None else None
    loads = frozenset[int]() if found is None else found.loads
    by_data = bool(loads)
    if region.is_loop:
        return (
            "Lanes leave this loop after different numbers of iterations, and a warp runs until "
            "its last lane leaves. "
            + (
                "First sort a list of the elements' indices by number of iterations, then load "
                f"and store through this list, so that {warp} consecutive threads run similar "
                f"numbers of iterations{_sharing(case, region, loads)}."
                if by_data
                else "Assign elements with similar numbers of iterations to the lanes of a warp, "
                "or let each lane begin its next element as soon as it finishes the current one."
            )
        )
    controlled = {i: list(_instructions(case.program, one.blocks)) for i, one in regions.items()}
    if not by_data and is_interleaved_reduction(case, controlled):
        return (
            "Assign the work to consecutive threads, so that the other warps are entirely idle: "
            "if (t < s), where s starts at half the block size and is halved in each step. This "
            "sequential addressing also has no bank conflicts. Or use shuffles "
            "(__shfl_down_sync), which need no barriers within a warp."
        )
    lengths = [_length(case, branch, side) for side in region.sides]
    all_sides = [side for one in regions.values() for side in one.sides]
    longest = max(_length(case, branch, side) for side in all_sides)
    if longest <= SHORT_SIDE and not any(_writes_memory(case, side) for side in all_sides):
        return (
            "Both sides are short: compute both values in all lanes and select one (x = c ? a : b)."
        )
    is_one_sided = len(regions) == 1 and min(lengths) < SMALL_SIDE * sum(lengths)
    if by_data and is_one_sided:
        return (
            "Only some elements need the long side: first collect their indices in a list (stream "
            "compaction), then use one thread per entry of the list, so that all lanes have work."
        )
    if by_data:
        return (
            f"Reorder the elements so that {warp} consecutive threads take the same side: first "
            "partition the indices by the condition, then load and store through these indices."
        )
    return (
        "Let whole warps take one side: compute the element's index from threadIdx.x so that "
        f"{warp} consecutive threads get elements for which the condition has the same value. Use "
        "that index in the condition, the loads and the stores. (If you change only the condition, "
        "some elements get the wrong side's results.)"
    )


def _sharing(case: Case, region: Region, deciding: Set[int]) -> str:
    """Returns the alternative to let lanes share the iterations of an element, where these do not
    need each other's results, and their number (decided by some loads) is known before the loop."""
    indices = set(_instructions(case.program, region.blocks))
    if deciding & indices or not has_independent_iterations(case.program, region.blocks):
        return ""
    return ", or divide the iterations for one element among the lanes of a warp"


def _writes_memory(case: Case, side: frozenset[int]) -> bool:
    """Returns whether a side has a store or an atomic, which cannot be computed in all lanes."""
    instructions = case.program.instructions
    indices = _instructions(case.program, side)
    return any(op != "load" for index in indices for _, op in accesses(instructions[index]))


def _length(case: Case, branch: int, side: frozenset[int]) -> float:
    """Returns the instructions of a side that a warp executes each time it executes the branch."""
    counts = case.counters.by_instruction()
    executed = sum(counts[i].warp_instructions for i in _instructions(case.program, side))
    return executed / max(1, counts[branch].warp_instructions)


def _is_of_one_thread(case: Case, branch: int, region: Region) -> bool:
    """Returns whether one thread of a block takes the longer side of a branch, each time that the
    block executes it."""
    counts, blocks = case.counters.by_instruction(), case.program.blocks
    longer = max(region.sides, key=lambda side: _length(case, branch, side))
    if not longer or region.is_loop:
        return False
    warps = -(-case.threads_per_block // case.spec.warp_size)
    times = counts[branch].warp_instructions / warps
    entered = max(counts[blocks[block].start].thread_instructions for block in _first(case, longer))
    return entered <= FEW_THREADS * times


def _first(case: Case, side: frozenset[int]) -> list[int]:
    """Returns the basic blocks of a side to which control comes from outside of it."""
    entries = [
        block
        for block in side
        if any(block in one.successors and one.index not in side for one in case.program.blocks)
    ]
    return entries or list(side)


def _instructions(program: Program, blocks: Iterable[int]) -> Iterator[int]:
    for block in blocks:
        yield from range(program.blocks[block].start, program.blocks[block].stop)


def _lost_work(case: Case, regions: Mapping[int, Region]) -> dict[int, dict[str, float]]:
    """Returns for each branch the work without a lane in the instructions that it controls, by the
    fields of `Work`: issue slots and those of units. An instruction counts for the innermost
    branch."""
    counts = case.counters.by_instruction()
    innermost = sorted(regions.items(), key=lambda item: len(item[1].blocks))
    full = counts[0].average_active_lanes or case.spec.warp_size
    costs = costs_of(case)
    lost = {branch: defaultdict[str, float](float) for branch in regions}
    for block in case.program.blocks:
        branch = next((i for i, region in innermost if block.index in region.blocks), None)
        if branch is None:
            continue
        for index in range(block.start, block.stop):
            each = counts[index]
            empty = max(0.0, each.warp_instructions - each.thread_instructions / full)
            for field, slots in slots_of(case.program.instructions[index], costs).items():
                lost[branch][field] += empty * slots
    return {**lost}


def _regions(program: Program, branches: list[int]) -> dict[int, Region]:
    """Returns for each branch the region up to its reconvergence point, the immediate
    post-dominator."""
    graph = [block.successors for block in program.blocks]
    after = post_dominators(graph)
    owner = {block.stop - 1: block for block in program.blocks}
    regions: dict[int, Region] = {}
    for index in branches:
        if index not in owner:
            continue
        block = owner[index]
        end = after[block.index]
        sides = [_until(program, successor, end) for successor in block.successors[:2]]
        first, second = (sides + [frozenset[int]()] * 2)[:2]
        regions[index] = Region(
            first | second, (first - second, second - first), block.index in first | second
        )
    return regions


def _until(program: Program, start: int, end: int) -> frozenset[int]:
    """Returns the basic blocks on paths from `start` that do not pass `end`."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        block = waiting.pop()
        if block not in (end, program.exit) and block not in found:
            found.add(block)
            waiting += program.blocks[block].successors
    return frozenset(found)


def exited_members(case: Case) -> Iterator[Advice]:
    """Yields advice for shuffles whose member mask names lanes that have returned: legal, but these
    hold no value (CUDA C++ Programming Guide, "Warp Shuffle Functions")."""
    for index, counts in enumerate(case.counters.by_instruction()):
        named = counts.exited_members
        if named and case.program.instructions[index].operation.kind is OpKind.SHUFFLE:
            yield Advice(
                "shuffle with lanes that exited",
                case.program.line(index),
                f"in {named:,} of the {counts.warp_instructions:,} times that a warp executed "
                "this shuffle, the mask included lanes that had exited",
                "A value read from such a lane is undefined. Keep all lanes active until after "
                "the shuffle (guard only the work, and use a neutral value in lanes without "
                "work), or compute the mask with __ballot_sync(0xffffffff, i < n).",
            )
