"""Which kernels are too long for what takes more time than their length."""

from __future__ import annotations

from enum import Enum

from warploom.analysis.accesses import accesses
from warploom.analysis.program import Program

BRANCHED, LONG = 10_000, 25_000
"""Basic blocks times registers beyond which a kernel is optimised less, and not at all: that takes
time as their product or more: 20 s at 29,000, five minutes at 220,000."""

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
    size = len(program.blocks) * len(program.registers)
    many = len(program.instructions) > MANY_INSTRUCTIONS
    if size > LONG or (many and _pieces(program) > MANY_PIECES):
        return Effort.LEAST
    return Effort.LESS if many or size > BRANCHED else Effort.FULL


def is_long(program: Program) -> bool:
    """Whether next to nothing is done to a kernel's code."""
    return effort(program) is Effort.LEAST


def _pieces(program: Program) -> int:
    return len(program.blocks) + sum(bool(accesses(made)) for made in program.instructions)
