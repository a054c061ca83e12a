"""Chooses LLVM's optimization level for a kernel: lower where superlinear passes are too slow.

The environment variable WARPLOOM_OPT_LEVEL (0, 1 or 3, see `Effort`) lowers the level for all
kernels: they compile faster and run slower, with the same results and counters. If it is set,
kernels are optimized before their first launch; its value `baseline`, which switches optimized
code off, is handled by `machine.compiled.tiers`.
"""

from __future__ import annotations

import os
from enum import Enum

from warploom.core.errors import WarploomError
from warploom.program.accesses import accesses
from warploom.program.program import Program

VARIABLE, BASELINE = "WARPLOOM_OPT_LEVEL", "baseline"

BRANCHED, LONG = 10_000, 25_000
"""Products of basic blocks and registers above which a kernel is compiled at level 1, and at level
0. Optimizing needs time in proportion to the product or more: 20 s at 29,000, five minutes at
220,000."""

CALLS_WEIGH = 4
"""The factor of the product in a kernel with functions that are not inlined: a return has an edge
to every call site. 119 blocks and 68 registers needed 8.6 s, not optimized 2.7."""

MANY_INSTRUCTIONS, MANY_PIECES = 4000, 128
"""The numbers of instructions and of pieces above which a kernel is compiled at level 0, however
few registers it has; above the first alone, at level 1. A piece ends with a basic block or with an
access, where code may leave with a fault."""


class Effort(Enum):
    """Names the LLVM passes that a kernel is compiled with, by level.

    3 is LLVM's standard pipeline; 1 is SROA and instruction combining; 0 only merges basic blocks.
    Baseline code has no passes (-1): merging its short blocks would make code generation slower,
    whose time grows faster than the length of a block.
    """

    FULL = 3
    LESS = 1
    LEAST = 0
    NONE = -1


LEVELS = {str(level.value): level for level in (Effort.FULL, Effort.LESS, Effort.LEAST)}
"""The levels that WARPLOOM_OPT_LEVEL may name."""


def chosen_effort(program: Program) -> Effort:
    """Returns the level for a kernel by its size (`effort`), or the lower one that
    WARPLOOM_OPT_LEVEL names (0, 1, 3; `baseline` and no value lower none).

    Raises WarploomError if the variable names no level."""
    level = os.environ.get(VARIABLE) or str(Effort.FULL.value)
    levels = LEVELS | {BASELINE: Effort.FULL}
    if level not in levels:
        raise WarploomError(
            f"{VARIABLE}={level} is not an optimization level; set it to {BASELINE}, 0, 1 or 3"
        )
    return min(levels[level], effort(program), key=lambda candidate: candidate.value)


def effort(program: Program) -> Effort:
    """Returns the highest level at which optimizing a kernel needs less time than typical runs. Its
    size is basic blocks times registers, four times that with calls that are not inlined. LEAST for
    a size over LONG (25,000), or more than MANY_INSTRUCTIONS (4000) with more than MANY_PIECES
    (128) pieces (`_pieces`); else LESS for a size over BRANCHED (10,000), or more than
    MANY_INSTRUCTIONS; else FULL."""
    size = len(program.blocks) * len(program.registers)
    size *= CALLS_WEIGH if program.depth is not None else 1
    has_many = len(program.instructions) > MANY_INSTRUCTIONS
    if size > LONG or (has_many and _pieces(program) > MANY_PIECES):
        return Effort.LEAST
    return Effort.LESS if has_many or size > BRANCHED else Effort.FULL


def is_long(program: Program) -> bool:
    """Returns whether a kernel's size makes `effort` choose Effort.LEAST; emission then prefers
    code that compiles fast, and registers get no shapes."""
    return effort(program) is Effort.LEAST


def _pieces(program: Program) -> int:
    """Returns the size of a program's code in pieces: its basic blocks plus its instructions that
    access memory."""
    return len(program.blocks) + sum(
        bool(accesses(instruction)) for instruction in program.instructions
    )
