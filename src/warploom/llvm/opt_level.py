"""Chooses how much LLVM optimises a kernel: less where superlinear passes would take too long.

The environment variable WARPLOOM_OPT_LEVEL (0, 1 or 3, see `Effort`) lowers it for all kernels:
they compile faster and run slower; results and counters are the same at every level. With a level,
kernels are optimised before their first launch; `baseline` is for `machine.compiled.tiers`.
"""

from __future__ import annotations

import os
from enum import Enum

from warploom.core.errors import WarploomError
from warploom.program.accesses import accesses
from warploom.program.program import Program

VARIABLE, BASELINE = "WARPLOOM_OPT_LEVEL", "baseline"

BRANCHED, LONG = 10_000, 25_000
"""Basic blocks times registers beyond which a kernel is optimised less, and not at all: that takes
time as their product or more: 20 s at 29,000, five minutes at 220,000."""

CALLS_WEIGH = 4
"""By this the product counts more in a kernel with functions that are not inlined, for each return
can lead to every place behind a call: 119 blocks and 68 registers took 8.6 s, not optimised 2.7."""

MANY_INSTRUCTIONS, MANY_PIECES = 4000, 128
"""Beyond both it is the same, however few registers; a piece ends with a basic block or with an
access, which may be a fault. Beyond the first alone, only the first passes do not take too long."""


class Effort(Enum):
    """The passes that LLVM runs over a kernel, by level: 3 is its standard pipeline, 1 promotes
    memory to values and combines instructions, 0 only merges basic blocks. Baseline code has none
    (-1): its blocks are short, for code generation takes time that grows faster than they do."""

    FULL = 3
    LESS = 1
    LEAST = 0
    NONE = -1


LEVELS = {str(one.value): one for one in (Effort.FULL, Effort.LESS, Effort.LEAST)}
"""The efforts that WARPLOOM_OPT_LEVEL may name."""


def chosen_effort(program: Program) -> Effort:
    """Returns the effort for a kernel: by its size, but no more than WARPLOOM_OPT_LEVEL allows.

    Raises WarploomError where the variable names no level.
    """
    level = os.environ.get(VARIABLE) or str(Effort.FULL.value)
    levels = LEVELS | {BASELINE: Effort.FULL}
    if level not in levels:
        raise WarploomError(
            f"{VARIABLE}={level} is no level of optimisation; set it to {BASELINE}, 0, 1 or 3"
        )
    return min(levels[level], effort(program), key=lambda one: one.value)


def effort(program: Program) -> Effort:
    """Returns the most that does not take longer than most runs of a kernel."""
    size = len(program.blocks) * len(program.registers)
    size *= CALLS_WEIGH if program.depth is not None else 1
    many = len(program.instructions) > MANY_INSTRUCTIONS
    if size > LONG or (many and _pieces(program) > MANY_PIECES):
        return Effort.LEAST
    return Effort.LESS if many or size > BRANCHED else Effort.FULL


def is_long(program: Program) -> bool:
    """Returns whether a kernel is so large that its code is emitted for fast compilation."""
    return effort(program) is Effort.LEAST


def _pieces(program: Program) -> int:
    return len(program.blocks) + sum(bool(accesses(made)) for made in program.instructions)
