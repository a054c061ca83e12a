"""Defines the input and the result of a rule of advice."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.devices.occupancy import Occupancy
from warploom.devices.spec import DeviceSpec
from warploom.observe.counters import Counters
from warploom.observe.examples import Example
from warploom.program.program import Program


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: the device, the shape, the kernel, what was counted."""

    spec: DeviceSpec
    blocks: int
    threads_per_block: int
    program: Program
    counters: Counters
    occupancy: Occupancy
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding of a rule: at which line (None for the launch), the numbers, and what to do."""

    rule: str
    line: str | None
    evidence: str
    text: str
