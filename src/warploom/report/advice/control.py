"""Advice about control flow: the issue slots that divergence leaves empty, and shuffles that name
lanes without a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warploom.isa.kinds import OpKind
from warploom.program.dominance import post_dominators
from warploom.program.program import Program
from warploom.report.advice.case import Advice, Case

LEAST_LOST = 0.08
"""The share of all slots from which on divergence is reported: the last steps of a reduction and
the borders of a grid lose less."""


def divergence(case: Case) -> Iterator[Advice]:
    """Yields advice for the branches of a line whose lanes go both ways, by the issue slots that
    are lost between a branch and the point where the lanes reconverge."""
    all_counts = case.counters.by_instruction()
    diverged = [i for i, counts in enumerate(all_counts) if counts.divergent_branches]
    lines: dict[str, list[tuple[int, int]]] = {}
    for index, lost in _lost_slots(case, diverged).items():
        lines.setdefault(case.program.line(index), []).append((index, lost))
    for line, branches in lines.items():
        times = sum(all_counts[index].divergent_branches for index, _ in branches)
        executed = sum(all_counts[index].branches for index, _ in branches)
        lost = sum(lost for _, lost in branches)
        yield Advice(
            "divergence within warps",
            line,
            f"in {times:,} of the {executed:,} times that a warp executed this branch, its lanes "
            f"diverged; inactive lanes wasted {lost:,} issue slots before the warp reconverged",
            "Make the condition the same for all lanes of a warp: assign the elements to threads "
            f"so that {case.spec.warp_size} consecutive threads take one side (reorder the data or "
            "the indexes), or, if both sides are short, compute both and select.",
            lost,
            LEAST_LOST,
        )


def _lost_slots(case: Case, branches: list[int]) -> dict[int, int]:
    """Returns for each branch the issue slots without a lane in the instructions that it controls:
    each counts for the innermost branch."""
    counts = case.counters.by_instruction()
    regions = sorted(_regions(case.program, branches).items(), key=lambda item: len(item[1]))
    full = counts[0].average_active_lanes or case.spec.warp_size
    lost = dict.fromkeys(branches, 0.0)
    for block in case.program.blocks:
        branch = next((index for index, region in regions if block.index in region), None)
        if branch is None:
            continue
        for each in counts[block.start : block.stop]:
            lost[branch] += max(0.0, each.warp_instructions - each.thread_instructions / full)
    return {branch: int(slots) for branch, slots in lost.items()}


def _regions(program: Program, branches: list[int]) -> Mapping[int, set[int]]:
    """Returns for each branch the basic blocks on paths to its reconvergence point, the immediate
    post-dominator."""
    graph = [block.successors for block in program.blocks]
    after = post_dominators(graph)
    owner = {block.stop - 1: block for block in program.blocks}
    regions: dict[int, set[int]] = {}
    for index in branches:
        if index not in owner:
            continue
        end = after[owner[index].index]
        region: set[int] = set()
        waiting = list(owner[index].successors)
        while waiting:
            block = waiting.pop()
            if block != end and block != program.exit and block not in region:
                region.add(block)
                waiting += graph[block]
        regions[index] = region
    return regions


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
                "this shuffle, its mask included lanes that had exited",
                "A value read from such a lane is undefined. Keep all lanes active until after "
                "the shuffle (guard only the work, and give lanes without work a neutral value), "
                "or compute the mask with __ballot_sync(0xffffffff, i < n).",
            )
