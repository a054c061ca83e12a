"""Remembers what is proven of a launch from its program and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from warploom.analysis.linear.affine import Given
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.program import Program

T = TypeVar("T")

MOST_PROOFS = 64
"""So many answers to a question are remembered."""


@dataclass(frozen=True)
class _Proof:
    """An answer, and which allocations it rests upon, by address."""

    result: Any
    allocations: Mapping[int, range | None]


def proven(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    analysis: Callable[[Program, Given], T],
) -> T:
    """Returns what `analysis` answers for a launch; the program keeps answers, each for as long as
    the allocations that were looked at stay where they were."""

    def allocation_of(address: int) -> range | None:
        found = memory.find(address)
        return range(found.address, found.address + found.size) if found else None

    answers = cast("dict[tuple[object, ...], _Proof]", program.kept.setdefault(analysis, {}))
    key = (launch.grid, launch.block, launch.parameters, launch.globals)
    proof = answers.get(key)
    if proof is None or any(allocation_of(a) != at for a, at in proof.allocations.items()):
        lookups: dict[int, range | None] = {}

        def recorded_lookup(address: int) -> range | None:
            lookups[address] = allocation_of(address)
            return lookups[address]

        given = Given(launch.grid, launch.block, launch.parameters, launch.globals, recorded_lookup)
        proof = _Proof(analysis(program, given), lookups)
        while len(answers) >= MOST_PROOFS:
            answers.pop(next(iter(answers)), None)
        answers[key] = proof
    return cast("T", proof.result)
