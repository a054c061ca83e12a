"""Describes the accesses of a kernel to memory as the choice of their plans reads them
(`ir.access_plans`)."""

from __future__ import annotations

from warploom.abi.access_type import STACK, AccessType
from warploom.abi.environment import CountLayout
from warploom.ir.access_plans import Facts
from warploom.ir.options import Pass
from warploom.ir.variant import KernelVariant
from warploom.program.accesses import route_of, space_of
from warploom.program.program import Program
from warploom.ptx.ir import Instruction, Operand, Register, Vector

MOST_INLINED = 128
"""Of a kernel with more accesses than that none is inlined: its code would take minutes to make."""


class KernelAccesses:
    """Says what the accesses of a program move. `facts` are those on which the choice of their
    plans depends, in code for lanes that are together; `scattered` registers have values that
    depend on data."""

    def __init__(self, program: Program, facts: Facts, scattered: frozenset[Register]) -> None:
        self.program, self.facts, self.scattered = program, facts, scattered

    def shape_of(self, op: str, index: int, instruction: Instruction) -> AccessType:
        """Returns what a load or a store moves."""
        data = instruction.operands[0 if op == "load" else 1]
        kept = STACK if index in self.program.private else ""
        route = kept or (route_of(instruction) if op == "load" else "")
        type = instruction.operation.modifiers.scalar()
        return AccessType(op, space_of(instruction), type, len(elements(data)), route)


def facts_of(layout: CountLayout, variant: KernelVariant) -> Facts:
    """Returns what the choice of plans depends on in a variant of a kernel."""
    wanted = variant.sanitizes
    return Facts(
        inlined=_inlines(layout, variant),
        fixed=not variant.shuffles,
        steps=variant.does(Pass.STEPS),
        batched=variant.does(Pass.STORE_BATCHING) and not (wanted is not None and wanted.in_order),
        deferred=layout.rules.lists_words,
    )


def _inlines(layout: CountLayout, variant: KernelVariant) -> bool:
    """Returns whether accesses can be inlined: not where each is noted or told to an observer, may
    lead to other blocks, or is looked up in caches; nor where there are too many."""
    watches = variant.debugging is not None and variant.debugging.watches
    elsewhere = variant.clusters or layout.rules.caches
    rows = {(row.instruction, row.space) for row in layout.rows}
    return len(rows) <= MOST_INLINED and not (variant.is_watched or watches or elsewhere)


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)
