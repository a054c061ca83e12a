"""Which kernels are too long for what takes more time than their length."""

from __future__ import annotations

from warploom.analysis.program import Program

LONG = 60_000
"""Basic blocks times registers beyond which a kernel is not optimised: that takes time as their
product or more (docs/benchmarks.md), five minutes at 220,000."""

LONG_INSTRUCTIONS, LONG_BLOCKS = 4000, 32
"""Beyond both it is the same, however few registers."""


def is_long(program: Program) -> bool:
    """Whether optimising a kernel would take longer than most runs of it."""
    instructions, blocks = len(program.instructions), len(program.blocks)
    if instructions > LONG_INSTRUCTIONS and blocks > LONG_BLOCKS:
        return True
    return blocks * len(program.registers) > LONG
