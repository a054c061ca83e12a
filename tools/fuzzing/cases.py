"""What the fuzzer runs and what comes of it: cases, targets, outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

HANG, DEATH = "hang", "process death"


@dataclass(frozen=True)
class Case:
    """One input of a target: a PTX text, or the bytes of a file, and options that JSON can hold.

    `runner` chooses among the checks of a target.
    """

    target: str
    content: str | bytes
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    runner: str = ""


@dataclass(frozen=True)
class Target:
    """One part of Warploom under test.

    `generate` makes the case of a seed, the same each time; `check` raises where Warploom does
    something wrong with it. `weight` is its share of the processor's time, `seconds` after how long
    a case counts as a hang, `most_bytes` the host memory that a case may take.
    """

    name: str
    generate: Callable[[int], Case]
    check: Callable[[Case], None]
    weight: float = 1.0
    seconds: float = 120.0
    most_bytes: int = 4 << 30


@dataclass(frozen=True)
class Outcome:
    """What a case did: `kind` is empty where all is well. Outcomes of one `signature` are taken for
    the same error. `sides`: those of conditions in the semantics that lanes took (`branches`)."""

    kind: str = ""
    signature: str = ""
    message: str = ""
    processor_seconds: float = 0.0
    sides: tuple[str, ...] = ()


@dataclass
class Finding:
    """An error that a seed of a target shows, the seeds that show the same one, and how to run
    it."""

    target: str
    seed: int
    outcome: Outcome
    seeds: list[int]
    file: str = ""

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return f"python tools/fuzz.py --target {self.target} --only {self.seed}"
