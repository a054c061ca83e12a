"""Finds accesses of a launch that the tools need not see: their findings are known beforehand.

A launch that never stores to an allocation has no race there, and its loads find what was written
before. Neither has an access that no other thread's can meet (`analysis.linear.independent`). Where
a pointer comes from is followed through the program (`analysis.linear.affine`); a store that is
seen, and leaves the allocation of its pointer for one of which that is taken, is a finding of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import cast

from warploom.analysis.linear.affine import GLOBAL_SPACES, LaunchInputs, LinearAnalysis
from warploom.analysis.linear.independent import IndependentAccesses, independent_accesses
from warploom.detector import layout as words
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.machine.compiled.proofs import proven
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.accesses import accesses, is_bulk_copy
from warploom.program.program import Program
from warploom.ptx.ir import Instruction, Space
from warploom.sanitize.sites import Sites, sites_of

GLOBAL_LOAD, GLOBAL_STORE = ((Space.GLOBAL, "load"),), ((Space.GLOBAL, "store"),)
CONSTANT_LOAD = ((Space.CONST, "load"),)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """The accesses of a launch that the tools need not see: `always`; `aligned`, while all threads
    of a block meet at the same barriers; `written`, where all that they reach in shared memory has
    been written; those of both, where both hold. `closed`: the allocations, by their addresses,
    that no store that is seen is to reach."""

    always: frozenset[int] = frozenset()
    aligned: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    closed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Followed:
    """Holds what following pointers shows of a launch: the allocations that each load and store of
    global memory may reach, by instruction, where they are known, and those that anything may write
    to, None where that is not known; and which accesses no other thread's can meet."""

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
    """Returns the accesses that some tools need not see; `unwritten` are the addresses of
    allocations that have bytes which nobody wrote."""
    if not tools & {"race", "init"}:
        return Unchecked()
    followed = proven(program, launch, memory, _follow)
    aligned, written = _in_shared(program, launch, tools, sites, followed.independent)
    excluded = frozenset(unwritten) if "init" in tools else frozenset[int]()
    found, closed = _in_global(followed, excluded, weak_accesses(sites), races="race" in tools)
    return Unchecked(found, aligned, written, closed)


def _in_global(
    followed: _Followed, excluded: frozenset[int], weak: Set[int], *, races: bool
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the accesses to global memory that need not be seen, none to the `excluded`
    allocations, and those that are closed for them; `races`: they are looked for."""
    loads = {index: at for index, at in followed.loads.items() if index in weak}
    if not races:
        return frozenset(i for i, at in loads.items() if not at & excluded), frozenset()
    if followed.stored is None:
        return frozenset(), frozenset()
    only_read = {i: at for i, at in loads.items() if not at & (excluded | followed.stored)}
    leads = {**loads, **followed.stores}
    alone = {i: leads[i] for i in followed.independent.in_global & leads.keys()}
    alone = {index: at for index, at in alone.items() if not at & excluded}
    closed = frozenset[int]().union(*only_read.values())
    reached = frozenset[int]().union(*alone.values())
    return frozenset(only_read | alone), closed | (reached & followed.independent.closed)


def weak_accesses(sites: Sites) -> Set[int]:
    """Return the instructions that order nothing, if they access memory, and whose threads do it
    themselves."""
    return {index for index, flags in enumerate(sites.flags) if not flags & ~words.COPIES}


def _in_shared(
    program: Program,
    launch: Launch,
    tools: set[str],
    sites: Sites,
    independent: IndependentAccesses,
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the accesses to shared memory that need not be seen while barriers are aligned, and
    those where what they reach is written."""
    none = frozenset[int]()
    if launch.cluster_blocks > 1:
        return none, none
    if "race" in tools:
        aligned = independent.in_shared
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
    if find not in program.cache:
        program.cache[find] = find(program)
    return cast("frozenset[int]", program.cache[find])


def _follow(program: Program, given: LaunchInputs) -> _Followed:
    """Follow where the accesses of a launch lead."""
    loads, stores, stored = dict[int, frozenset[int]](), dict[int, frozenset[int]](), _NOWHERE
    followed = not any(map(_leads_anywhere, program.instructions))
    flow = LinearAnalysis(program, given)
    for access in flow.memory_accesses(GLOBAL_SPACES) if followed else ():
        origins, made = access.address.origins, program.instructions[access.instruction]
        if access.op != "load":
            followed = followed and origins is not None
            stored |= origins or _NOWHERE
        if origins and accesses(made) == GLOBAL_LOAD:
            loads[access.instruction] = origins
        elif origins and accesses(made) == GLOBAL_STORE:
            stores[access.instruction] = origins
    loads |= {
        index: _NOWHERE
        for index, made in enumerate(program.instructions)
        if accesses(made) == CONSTANT_LOAD
    }
    independent = independent_accesses(flow, weak_accesses(sites_of(program)))
    return _Followed(loads, stores, stored if followed else None, independent)


_NOWHERE = frozenset[int]()


def _leads_anywhere(made: Instruction) -> bool:
    """Returns whether an instruction reaches memory that is not followed."""
    operation = made.operation
    if operation.name in ("sust", "sured"):
        return True
    return operation.name == "call" or is_bulk_copy(operation) or is_tensor_operation(operation)
