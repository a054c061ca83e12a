"""Registers that walk on by strides: `add.s64 next, at, stride`, once and again, in the body of a
loop, with strides that all lanes agree on and that are the same in every lap.

So are columns read that a compiler has unrolled. What is known of the place where the walk begins
is then known of all its places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import UNIFORM
from warploom.analysis.uses import writes
from warploom.codegen.cache_layout import MOST_STRIDES
from warploom.core.types import unsigned
from warploom.ptx.ir import Instruction, Operand, Register

Versions = Mapping[Register, int]
"""The instruction of a block that wrote a register last."""


@dataclass(frozen=True)
class Step:
    """Describes what a register holds: what another had when that was written by an instruction of
    the block (None: before it), and each of the strides so many times."""

    register: Register
    version: int | None
    strides: Counter[Register] = field(default_factory=Counter[Register])


class Walks:
    """The steps of a block's registers, instruction by instruction."""

    def __init__(self, reading: Reading, block: Block) -> None:
        self._reading, self._loops = reading, block.index in block.successors
        inside = reading.program.instructions[block.start : block.stop]
        self._written = frozenset(register for made in inside for register in writes(made))
        self._steps: dict[tuple[Register, int | None], Step] = {}

    def at(self, register: Register, versions: Versions) -> Step:
        """Return the step in a register now."""
        version = versions.get(register)
        return self._steps.get((register, version)) or Step(register, version)

    def note(self, index: int, made: Instruction, versions: Versions) -> None:
        """Note an instruction of the block, before what it writes is noted."""
        if not self._loops or made.operation.name != "add" or made.guard is not None:
            return
        target, *given = made.operands
        if not isinstance(target, Register) or target.type.bits != 64:
            return
        for start, stride in (given, reversed(given)):
            if not isinstance(start, Register) or not self._is_stride(stride):
                continue
            step = self.at(start, versions)
            strides = step.strides + Counter([stride])
            if len(strides) <= MOST_STRIDES:
                self._steps[target, index] = Step(step.register, step.version, strides)
                return

    def _is_stride(self, operand: Operand) -> TypeGuard[Register]:
        """Returns whether all lanes agree on it, in all laps."""
        if not isinstance(operand, Register) or operand in self._written:
            return False
        return self._reading.shape(operand, unsigned(64)) == UNIFORM
