"""Describes the memory accesses of a kernel for the choice of plans (`ir.access_plans`): the access
type of an instruction, and the options of the kernel."""

from __future__ import annotations

from warploom.abi.access_type import STACK, AccessType
from warploom.abi.environment import CountLayout
from warploom.ir.access_plans import Facts
from warploom.ir.options import Pass
from warploom.ir.variant import KernelVariant
from warploom.isa.instruction import Instruction, Operand, Register, Vector
from warploom.program.accesses import route_of, space_of
from warploom.program.program import Program

MOST_INLINED = 128
"""The number of access records up to which accesses are inlined; the code of a kernel with more
would need minutes to compile."""


class KernelAccesses:
    """Holds a program with the `facts` by which plans are chosen in convergent code, and the
    `scattered` registers, whose lanes hold unrelated values."""

    def __init__(self, program: Program, facts: Facts, scattered: frozenset[Register]) -> None:
        """Stores the program, the facts and the scattered registers."""
        self.program, self.facts, self.scattered = program, facts, scattered

    def access_type_of(self, op: str, index: int, instruction: Instruction) -> AccessType:
        """Returns the access type of a load or a store (`op`), the instruction of number `index`:
        space, type, elements per lane, and route. The route is STACK for accesses that implement
        calls; else a load has that of its instruction (`route_of`), a store none."""
        data = instruction.operands[0 if op == "load" else 1]
        saved = STACK if index in self.program.private else ""
        route = saved or (route_of(instruction) if op == "load" else "")
        type = instruction.operation.modifiers.scalar()
        return AccessType(op, space_of(instruction), type, len(elements(data)), route)


def facts_of(layout: CountLayout, variant: KernelVariant) -> Facts:
    """Returns the options of a kernel's variant that the choice of plans depends on: whether
    accesses may be inlined (`_inlines`), the order of lanes is fixed, strides are looked for at run
    time, stores may be batched, and atomics on shared memory may be counted later. Stores may not
    be batched where a detector reads memory in order. The access rules of `layout` decide on the
    atomics."""
    sanitizing = variant.sanitizes
    return Facts(
        inlined=_inlines(layout, variant),
        fixed=not variant.shuffles,
        steps=variant.does(Pass.STEPS),
        batched=variant.does(Pass.STORE_BATCHING)
        and not (sanitizing is not None and sanitizing.in_order),
        deferred=layout.rules.defers_atomics,
    )


def _inlines(layout: CountLayout, variant: KernelVariant) -> bool:
    """Returns whether accesses can be inlined: none is recorded, observed or watched, may address
    another block of a cluster, or looks up a simulated cache; and there are at most MOST_INLINED
    (128) pairs of an access and a space that it may be to."""
    watches = variant.debugging is not None and variant.debugging.watches
    elsewhere = variant.clusters or layout.rules.caches
    records = {(record.instruction, record.space) for record in layout.records}
    return len(records) <= MOST_INLINED and not (variant.is_watched or watches or elsewhere)


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Returns the elements of a vector operand, or a tuple of the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)
