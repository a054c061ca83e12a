"""Finds accesses of a launch that the tools need not see: their findings are known beforehand.

A launch that never stores to an allocation has no race there, and its loads find what was written
before. Where a pointer comes from is followed through the program (`analysis.footprints`); a store
that leaves the allocation of its pointer for one that is taken to be only read is a finding of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from warploom.analysis.accesses import accesses, is_bulk_copy
from warploom.analysis.footprints import Given, global_reaches
from warploom.analysis.intervals import loads_between_barriers
from warploom.analysis.program import Program
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.proofs import proven
from warploom.ptx.ir import Instruction, Space
from warploom.rules.happens_before import words
from warploom.sanitize.sites import Sites

GLOBAL_LOAD, CONSTANT_LOAD = ((Space.GLOBAL, "load"),), ((Space.CONST, "load"),)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """The accesses of a launch that the tools need not see: `always`; `aligned`, while all threads
    of a block meet at the same barriers; `written`, where all that they reach in shared memory has
    been written; those of both, where both hold. `only_read`: the allocations, by their addresses,
    that no store of the launch is to reach."""

    always: frozenset[int] = frozenset()
    aligned: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    only_read: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Origins:
    """The allocations that each load of global memory may reach, by instruction, where they are
    known, and those that anything may write to; None where that is not known."""

    loads: Mapping[int, frozenset[int]]
    stored: frozenset[int] | None


def unchecked_loads(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    tools: set[str],
    unwritten: Iterable[int],
    sites: Sites,
) -> Unchecked:
    """Returns the accesses that some tools need not see; `unwritten` are the addresses of
    allocations that have bytes which nobody wrote."""
    if not tools & {"race", "init"}:
        return Unchecked()
    weak = {index for index, flags in enumerate(sites.flags) if not flags & ~words.COPIES}
    aligned, written = _in_shared(program, launch, tools, sites, weak)
    origins = proven(program, launch, memory, _global_origins)
    excluded = frozenset(unwritten) if "init" in tools else frozenset[int]()
    if "race" in tools:
        if origins.stored is None:
            return Unchecked(aligned=aligned, written=written)
        excluded |= origins.stored
    found = {
        index: at for index, at in origins.loads.items() if index in weak and not at & excluded
    }
    only_read = frozenset[int]().union(*found.values()) if "race" in tools else frozenset[int]()
    return Unchecked(frozenset(found), aligned, written, only_read)


def _in_shared(
    program: Program, launch: Launch, tools: set[str], sites: Sites, weak: set[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the accesses to shared memory that need not be seen while barriers are aligned, and
    those where what they reach is written."""
    none = frozenset[int]()
    if launch.cluster_blocks > 1:
        return none, none
    if "race" in tools:
        aligned = _kept(program, loads_between_barriers) & weak
        return aligned, aligned if "init" in tools else none
    if "sync" in tools and any(flags & words.MBARRIER for flags in sites.flags):
        return none, none
    apart = {
        index for index, flags in enumerate(sites.flags) if flags & (words.ASYNC | words.MBARRIER)
    }
    return none, _kept(program, _in_shared_alone) - apart


def _in_shared_alone(program: Program) -> frozenset[int]:
    """Return the instructions that access shared memory and no other."""
    return frozenset(
        index
        for index, made in enumerate(program.instructions)
        if {space for space, _ in accesses(made)} == {Space.SHARED}
    )


def _kept(program: Program, find: Callable[[Program], frozenset[int]]) -> frozenset[int]:
    """Return the instructions that `find` gives for a program, which keeps them."""
    if find not in program.kept:
        program.kept[find] = find(program)
    return cast("frozenset[int]", program.kept[find])


def _global_origins(program: Program, given: Given) -> _Origins:
    """Returns where the accesses of a launch to global memory may lead."""
    loads, stored = dict[int, frozenset[int]](), frozenset[int]()
    followed = not any(map(_leads_anywhere, program.instructions))
    for reach in global_reaches(program, given) if followed else ():
        origins = reach.where.origins
        if reach.op != "load":
            followed = followed and origins is not None
            stored |= origins or frozenset()
        elif origins and accesses(program.instructions[reach.instruction]) == GLOBAL_LOAD:
            loads[reach.instruction] = origins
    loads |= {
        index: frozenset[int]()
        for index, made in enumerate(program.instructions)
        if accesses(made) == CONSTANT_LOAD
    }
    return _Origins(loads, stored if followed else None)


def _leads_anywhere(made: Instruction) -> bool:
    """Returns whether an instruction reaches memory that is not followed."""
    operation = made.operation
    if operation.name in ("sust", "sured"):
        return True
    return operation.name == "call" or is_bulk_copy(operation) or is_tensor_operation(operation)
