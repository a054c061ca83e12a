"""Which kernels are too long for what takes more time than their length."""

from __future__ import annotations

from enum import Enum

from warploom.analysis.accesses import accesses
from warploom.analysis.program import Program

LONG = 60_000
"""Basic blocks times registers beyond which a kernel is not optimised: that takes time as their
product or more (docs/benchmarks.md), five minutes at 220,000."""

MANY_INSTRUCTIONS, MANY_PIECES = 4000, 128
"""Beyond both it is the same, however few registers; a piece ends with a basic block or with an
access, which may be a fault. Beyond the first alone, only the first passes do not take too long."""


class Effort(Enum):
    """What is done to a kernel's code: LLVM's standard pipeline, its first passes, next to none."""

    FULL = "full"
    LESS = "less"
    LEAST = "least"


def effort(program: Program) -> Effort:
    """The most that does not take longer than most runs of a kernel."""
    if len(program.blocks) * len(program.registers) > LONG:
        return Effort.LEAST
    if len(program.instructions) <= MANY_INSTRUCTIONS:
        return Effort.FULL
    return Effort.LEAST if _pieces(program) > MANY_PIECES else Effort.LESS


def is_long(program: Program) -> bool:
    """Whether next to nothing is done to a kernel's code."""
    return effort(program) is Effort.LEAST


def _pieces(program: Program) -> int:
    return len(program.blocks) + sum(bool(accesses(made)) for made in program.instructions)
