"""Which memory accesses a program can make: the rows in which both machines count them.

An access row is one instruction reaching one state space in one way. A generic instruction has a
row for each space that its addresses may fall into.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.program import Program
from warploom.ptx.ir import Instruction, Space
from warploom.rules.fields import FIELDS

__all__ = ["FIELDS", "AccessRow", "access_rows", "space_of"]

OPS = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
"""What each memory instruction does to memory."""

GENERIC_SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
"""Where a generic address can lead."""


@dataclass(frozen=True, slots=True)
class AccessRow:
    """Instruction `instruction` of the program, reaching `space` to `op`: load, store, atomic."""

    instruction: int
    space: Space
    op: str


def space_of(instruction: Instruction) -> Space:
    """The state space that a memory instruction names; GENERIC where it names none."""
    text = instruction.operation.modifiers["space"]
    return Space(text.partition("::")[0]) if text else Space.GENERIC


def access_rows(program: Program) -> tuple[AccessRow, ...]:
    """Every access row of a program, in instruction order; parameters are not counted."""
    rows: list[AccessRow] = []
    for index, instruction in enumerate(program.instructions):
        op = OPS.get(instruction.operation.name)
        if op is None or (space := space_of(instruction)) is Space.PARAM:
            continue
        spaces = GENERIC_SPACES if space is Space.GENERIC else (space,)
        rows.extend(AccessRow(index, s, op) for s in spaces)
    return tuple(rows)
