"""Computes reaching definitions: whether a register can have been written before an instruction.

Compilers say that a variable is in a register for the whole of a function, though some instruction
only writes it later: before that, it holds nothing of the variable.
"""

from __future__ import annotations

from warploom.core.lazy import cached_property
from warploom.program.program import Program
from warploom.program.uses import writes


class ReachingDefinitions:
    """Answers which writes of registers may precede an instruction of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def may_be_written(self, register: str, instruction: int) -> bool:
        """Returns whether some path to an instruction writes a register before it."""
        here = next(b for b in self._program.blocks if b.start <= instruction < b.stop)
        for index in self._writes.get(register, ()):
            if here.start <= index < instruction or index in self._of_blocks(here.index):
                return True
        return False

    @cached_property
    def _writes(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, made in enumerate(self._program.instructions):
            for register in writes(made):
                found.setdefault(register.name, []).append(index)
        return found

    def _of_blocks(self, block: int) -> set[int]:
        """Returns the instructions of the basic blocks that lead to one."""
        if block not in self._before:
            before, pending = set[int](), [block]
            while pending:
                new = self._origins.get(pending.pop(), set()) - before
                before |= new
                pending += new
            blocks = self._program.blocks
            every = (range(blocks[b].start, blocks[b].stop) for b in before)
            self._before[block] = {index for each in every for index in each}
        return self._before[block]

    @cached_property
    def _before(self) -> dict[int, set[int]]:
        return {}

    @cached_property
    def _origins(self) -> dict[int, set[int]]:
        origins: dict[int, set[int]] = {}
        for block in self._program.blocks:
            for successor in block.successors:
                origins.setdefault(successor, set()).add(block.index)
        return origins
