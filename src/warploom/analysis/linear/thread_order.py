"""Decides before a launch whether the order of the threads of a block is not observable where they
run loops: no thread accesses memory that another one writes between the same barriers, nor depends
on the order of threads otherwise.

    for (i = thread; i < n; i += threads) c[i] = a[i] + b[i];    independent
    for (i = thread; i < n; i += threads) c[i / 2] = a[i];       not: two threads write one element

Code may then interleave the warps of a block (`lower.loops.interleaved_batches`). An access is
assumed to stay in the allocation that its pointer refers to, as for the independence of blocks
(`footprints`). Not handled: loads at addresses from memory, and loops that count down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from warploom.analysis.linear.address_ranges import AddressRanges
from warploom.analysis.linear.affine import GLOBAL_SPACES, LinearAnalysis, MemoryAccess
from warploom.analysis.linear.footprints import (
    by_written_allocation,
    commuting_atomics,
    have_own_bytes,
    order_dependence,
)
from warploom.analysis.linear.independent import independent_in_shared
from warploom.analysis.linear.intervals import barrier_intervals, is_barrier_of_all_threads
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors


def are_threads_independent(program: Program, launch: LaunchInputs) -> bool:
    """Returns whether the order of the threads of a block is not observable in the barrier
    intervals (code between two barriers) that have a loop; False at once if there is none, for only
    loops are interleaved. Atomics may access one address if they leave the same in any order."""
    intervals = list(_intervals_with_loops(program))
    commuting = commuting_atomics(program)
    if not intervals or any(
        order_dependence(program.instructions[index])
        for interval in intervals
        for index in interval - commuting.keys()
    ):
        return False
    analysis = LinearAnalysis(program, launch)
    memory_accesses = list(analysis.memory_accesses(GLOBAL_SPACES))
    ranges = AddressRanges(analysis)
    return all(
        _have_own_bytes(
            [a for a in memory_accesses if a.instruction in interval], ranges, commuting
        )
        for interval in intervals
    ) and _are_independent_in_shared(analysis, intervals)


def _have_own_bytes(
    memory_accesses: Sequence[MemoryAccess], ranges: AddressRanges, commuting: Mapping[int, str]
) -> bool:
    """Returns whether no two threads touch the same byte by any of these accesses to global memory,
    one of them by a write, but for atomics that do the same (`commuting`)."""
    writes = any(access.op != "load" for access in memory_accesses)
    if writes and any(access.address.allocations is None for access in memory_accesses):
        return False
    threads = *ranges.blocks, *ranges.threads
    return all(
        have_own_bytes(in_allocation, ranges, threads, commuting)
        for in_allocation in by_written_allocation(memory_accesses)
    )


def _intervals_with_loops(program: Program) -> Iterator[Set[int]]:
    """Yields the barrier intervals (sets of instructions) that contain a loop without a barrier."""
    headers = {
        program.blocks[header].start
        for header, inside in natural_loops(program, predecessors(program)).items()
        if not any(map(is_barrier_of_all_threads, _instructions_of(program, inside)))
    }
    return (interval for interval in barrier_intervals(program) if headers & interval)


def _instructions_of(program: Program, blocks: Iterable[int]) -> Iterator[Instruction]:
    """Yields the instructions of basic blocks."""
    for block in map(program.blocks.__getitem__, blocks):
        yield from program.instructions[block.start : block.stop]


def _are_independent_in_shared(analysis: LinearAnalysis, intervals: Iterable[Set[int]]) -> bool:
    """Returns whether no two threads of a block touch the same byte of shared memory in one of
    these barrier intervals, one of them by a write."""
    instructions = analysis.program.instructions
    by_thread = {
        index
        for index, instruction in enumerate(instructions)
        if instruction.operation.kind in (OpKind.LOAD, OpKind.STORE)
    }
    shared = {
        index
        for interval in intervals
        for index in interval
        if any(space is Space.SHARED for space, _ in accesses(instructions[index]))
    } & analysis.reachable
    return not shared or shared <= independent_in_shared(analysis, by_thread, intervals)
