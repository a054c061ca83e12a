"""Caches the results of static analyses of a launch (whether its blocks conflict, for example), so
that a repeated launch is not analysed again: by program, grid, parameters and the allocations that
the analysis looked up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from warploom.analysis.linear.register_values import LaunchInputs
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.program import Program

T = TypeVar("T")

MOST_PROOFS = 64
"""The number of results that are cached per analysis and program."""


@dataclass(frozen=True)
class _Proof:
    """The result of an analysis, and the allocations that it depends on, by the address that was
    looked up."""

    result: Any
    allocations: Mapping[int, range | None]


SECONDS_AN_INSTRUCTION = 5e-5
"""The expected time of a first analysis for each instruction of its program: 0.02 to 0.4 ms for
whether the blocks of the 99 kernels of benchmarks/families conflict, most below 0.1."""


def expected_seconds(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    analysis: Callable[[Program, LaunchInputs], object],
) -> float:
    """Returns the expected seconds of `cached_proof`: 0 if the result is cached, else those that
    the last such analysis of the program has used, or SECONDS_AN_INSTRUCTION each before it."""
    if _proof_of(program, launch, memory, analysis) is not None:
        return 0.0
    expected = SECONDS_AN_INSTRUCTION * len(program.instructions)
    return cast(float, program.cache.get(("seconds", analysis), expected))


def cached_proof(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    analysis: Callable[[Program, LaunchInputs], T],
) -> T:
    """Returns the result of `analysis` for a launch, from the program's cache if the analysis has
    run for the same grid, block, parameters and module globals, and every address that it looked up
    is still in the same allocation. At most MOST_PROOFS results are stored for an analysis; the
    oldest is evicted."""

    proof = _proof_of(program, launch, memory, analysis)
    if proof is not None:
        return cast("T", proof.result)
    lookups: dict[int, range | None] = {}

    # Records every lookup, so that the proof is dropped when one would have another result.
    def recorded_lookup(address: int) -> range | None:
        """Returns the allocation that contains an address and stores it in `lookups`."""
        lookups[address] = _allocation_of(memory, address)
        return lookups[address]

    assumptions = LaunchInputs(
        launch.grid, launch.block, launch.parameters, launch.globals, recorded_lookup
    )
    began = time.perf_counter()
    proof = _Proof(analysis(program, assumptions), lookups)
    program.cache["seconds", analysis] = time.perf_counter() - began
    proofs = _proofs(program, analysis)
    while len(proofs) >= MOST_PROOFS:
        proofs.pop(next(iter(proofs)), None)
    proofs[_key(launch)] = proof
    return cast("T", proof.result)


def _proof_of(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    analysis: Callable[[Program, LaunchInputs], object],
) -> _Proof | None:
    """Returns the cached proof for a launch; None if there is none, or if an address that it looked
    up is in another allocation now."""
    proof = _proofs(program, analysis).get(_key(launch))
    if proof is None or any(
        _allocation_of(memory, address) != allocation
        for address, allocation in proof.allocations.items()
    ):
        return None
    return proof


def _proofs(
    program: Program, analysis: Callable[[Program, LaunchInputs], object]
) -> dict[tuple[object, ...], _Proof]:
    """Returns the cached proofs of an analysis of a program."""
    return cast("dict[tuple[object, ...], _Proof]", program.cache.setdefault(analysis, {}))


def _key(launch: Launch) -> tuple[object, ...]:
    """Returns what a proof depends on beside allocations: the grid, the block, parameters and
    globals."""
    return launch.grid, launch.block, launch.parameters, launch.globals


def _allocation_of(memory: DeviceMemory, address: int) -> range | None:
    """Returns the addresses of the allocation that contains `address`, None if none does."""
    allocation = memory.find(address)
    return range(allocation.address, allocation.address + allocation.size) if allocation else None
