"""Remembers what is proven of a launch from its program and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from warploom.analysis.linear.affine import LaunchInputs
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.program import Program

T = TypeVar("T")

KEPT = 64
"""So many answers to a question are remembered."""


@dataclass(frozen=True)
class _Answer:
    """An answer, and which allocations it rests upon, by address."""

    answer: Any
    allocations: Mapping[int, range | None]


def proven(
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    question: Callable[[Program, LaunchInputs], T],
) -> T:
    """Returns what `question` answers for a launch; the program keeps answers, each for as long as
    the allocations that were looked at stay where they were."""

    def allocation_of(address: int) -> range | None:
        found = memory.find(address)
        return range(found.address, found.address + found.size) if found else None

    answers = cast("dict[tuple[object, ...], _Answer]", program.cache.setdefault(question, {}))
    key = (launch.grid, launch.block, launch.parameters, launch.globals)
    known = answers.get(key)
    if known is None or any(allocation_of(a) != at for a, at in known.allocations.items()):
        asked: dict[int, range | None] = {}

        def noted(address: int) -> range | None:
            asked[address] = allocation_of(address)
            return asked[address]

        given = LaunchInputs(launch.grid, launch.block, launch.parameters, launch.globals, noted)
        known = _Answer(question(program, given), asked)
        while len(answers) >= KEPT:
            answers.pop(next(iter(answers)), None)
        answers[key] = known
    return cast("T", known.answer)
