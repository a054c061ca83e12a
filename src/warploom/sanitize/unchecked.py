"""Finds accesses of a launch that need no check, because static analysis proves that they have no
finding.

A launch that never stores to an allocation has no race there, and its loads read what was written
before. Neither has an access with whose bytes no other thread's access overlaps
(`analysis.linear.independent`). The allocation of a pointer is traced through the program
(`analysis.linear.affine`). A checked store that leaves the allocation of its pointer for one that
is proven unwritten is a finding of its own.

    y[i] = a * x[i] + y[i], i = blockIdx.x * blockDim.x + threadIdx.x:
      the loads of x are exempt (no store goes there), and both accesses of y (each thread its own)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import cast

from warploom.analysis.linear.affine import GLOBAL_SPACES, LinearAnalysis
from warploom.analysis.linear.independent import IndependentAccesses, independent_accesses
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.detector import layout as words
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import Effect, OpKind
from warploom.machine.compiled.proofs import cached_proof
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.sanitize.sites import Sites, sites_of

GLOBAL_LOAD, GLOBAL_STORE = ((Space.GLOBAL, "load"),), ((Space.GLOBAL, "store"),)
CONSTANT_LOAD = ((Space.CONST, "load"),)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Holds the accesses of a launch that need no check: `always`; `aligned`, while all threads of
    a block execute the same barriers; `written`, if all that they access in shared memory has been
    written; those of both, if both hold. `closed`: the addresses of allocations to which no checked
    store may go."""

    always: frozenset[int] = frozenset()
    aligned: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    closed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _PointerTargets:
    """Holds the result of tracing pointers in a launch: the allocations that each load and store of
    global memory may access, by instruction, if they are known, and those that may be written, None
    if not known; and which accesses are independent of other threads'."""

    loads: Mapping[int, frozenset[int]]
    stores: Mapping[int, frozenset[int]]
    stored: frozenset[int] | None
    independent: IndependentAccesses


def unchecked_accesses(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    tools: set[str],
    unwritten: Iterable[int],
    sites: Sites,
) -> Unchecked:
    """Returns the accesses that some tools need not check; `unwritten` are the addresses of
    allocations that have bytes which were not written."""
    if not tools & {"race", "init"}:
        return Unchecked()
    pointer_targets = cached_proof(program, launch, memory, _trace_pointers)
    aligned, written = _in_shared(program, launch, tools, sites, pointer_targets.independent)
    excluded = frozenset(unwritten) if "init" in tools else frozenset[int]()
    unseen_global, closed = _in_global(
        pointer_targets, excluded, weak_accesses(sites), races="race" in tools
    )
    return Unchecked(unseen_global, aligned, written, closed)


def _in_global(
    pointer_targets: _PointerTargets, excluded: frozenset[int], weak: Set[int], *, races: bool
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the accesses to global memory that need no check, none to the `excluded` allocations,
    and the allocations that are closed for their sake; `races`: the tool "race" is on."""
    loads = {index: at for index, at in pointer_targets.loads.items() if index in weak}
    if not races:
        return frozenset(i for i, at in loads.items() if not at & excluded), frozenset()
    if pointer_targets.stored is None:
        return frozenset(), frozenset()
    only_read = {i: at for i, at in loads.items() if not at & (excluded | pointer_targets.stored)}
    targets = {**loads, **pointer_targets.stores}
    alone = {i: targets[i] for i in pointer_targets.independent.in_global & targets.keys()}
    alone = {index: at for index, at in alone.items() if not at & excluded}
    closed = frozenset[int]().union(*only_read.values())
    accessed = frozenset[int]().union(*alone.values())
    return frozenset(only_read | alone), closed | (accessed & pointer_targets.independent.closed)


def weak_accesses(sites: Sites) -> Set[int]:
    """Returns the instructions that order nothing, and whose accesses, if any, are made by the
    threads themselves."""
    return {index for index, flags in enumerate(sites.flags) if not flags & ~words.COPIES}


def _in_shared(
    program: Program,
    launch: Launch,
    tools: set[str],
    sites: Sites,
    independent: IndependentAccesses,
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the accesses to shared memory that need no check while barriers are aligned, and
    those that need none if what they access is written."""
    none = frozenset[int]()
    if launch.cluster_blocks > 1:
        return none, none
    if "race" in tools:
        aligned = independent.in_shared
        return aligned, aligned if "init" in tools else none
    if "sync" in tools and any(flags & words.MBARRIER for flags in sites.flags):
        return none, none
    excluded_indices = {
        index for index, flags in enumerate(sites.flags) if flags & (words.ASYNC | words.MBARRIER)
    }
    return none, _memoise(program, _in_shared_alone) - excluded_indices


def _in_shared_alone(program: Program) -> frozenset[int]:
    """Returns the instructions that access shared memory and no other."""
    return frozenset(
        index
        for index, instruction in enumerate(program.instructions)
        if {space for space, _ in accesses(instruction)} == {Space.SHARED}
    )


def _memoise(program: Program, find: Callable[[Program], frozenset[int]]) -> frozenset[int]:
    """Returns the instructions that `find` returns for a program, which memoises them."""
    if find not in program.cache:
        program.cache[find] = find(program)
    return cast("frozenset[int]", program.cache[find])


def _trace_pointers(program: Program, launch_facts: LaunchInputs) -> _PointerTargets:
    """Traces the allocations that the accesses of a launch may go to."""
    loads, stores, stored = dict[int, frozenset[int]](), dict[int, frozenset[int]](), _NOWHERE
    traceable = not any(map(_accesses_unknown_memory, program.instructions))
    flow = LinearAnalysis(program, launch_facts)
    for access in flow.memory_accesses(GLOBAL_SPACES) if traceable else ():
        allocations, instruction = (
            access.address.allocations,
            program.instructions[access.instruction],
        )
        if access.op != "load":
            traceable = traceable and allocations is not None
            stored |= allocations or _NOWHERE
        if allocations and accesses(instruction) == GLOBAL_LOAD:
            loads[access.instruction] = allocations
        elif allocations and accesses(instruction) == GLOBAL_STORE:
            stores[access.instruction] = allocations
    loads |= {
        index: _NOWHERE
        for index, instruction in enumerate(program.instructions)
        if accesses(instruction) == CONSTANT_LOAD
    }
    independent = independent_accesses(flow, weak_accesses(sites_of(program)))
    return _PointerTargets(loads, stores, stored if traceable else None, independent)


_NOWHERE = frozenset[int]()


def _accesses_unknown_memory(instruction: Instruction) -> bool:
    """Returns whether an instruction accesses memory by an address that is not traced."""
    operation = instruction.operation
    untraced = (OpKind.CALL, OpKind.BULK_COPY, OpKind.SURFACE_STORE, OpKind.SURFACE_REDUCTION)
    return operation.kind in untraced or operation.has(Effect.USES_TMA)
