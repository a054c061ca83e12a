"""Caches the results of static analyses of a launch (whether its blocks conflict, for example), so
that a repeated launch is not analysed again: by program, grid, parameters and the allocations that
the analysis looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from warploom.analysis.linear.affine import LaunchInputs
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

    def allocation_of(address: int) -> range | None:
        """Returns the addresses of the allocation that contains `address`, None if none does."""
        allocation = memory.find(address)
        return (
            range(allocation.address, allocation.address + allocation.size) if allocation else None
        )

    answers = cast("dict[tuple[object, ...], _Proof]", program.cache.setdefault(analysis, {}))
    key = (launch.grid, launch.block, launch.parameters, launch.globals)
    proof = answers.get(key)
    if proof is None or any(
        allocation_of(looked_up) != allocation
        for looked_up, allocation in proof.allocations.items()
    ):
        lookups: dict[int, range | None] = {}

        # Records every lookup, so that the proof is dropped when one would have another result.
        def recorded_lookup(address: int) -> range | None:
            """Returns `allocation_of(address)` and stores it in `lookups`."""
            lookups[address] = allocation_of(address)
            return lookups[address]

        assumptions = LaunchInputs(
            launch.grid, launch.block, launch.parameters, launch.globals, recorded_lookup
        )
        proof = _Proof(analysis(program, assumptions), lookups)
        while len(answers) >= MOST_PROOFS:
            answers.pop(next(iter(answers)), None)
        answers[key] = proof
    return cast("T", proof.result)
