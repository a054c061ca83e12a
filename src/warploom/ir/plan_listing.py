"""Lists how each access of a kernel to memory is done in optimised code, where all living lanes go
together: by the plans that this code is emitted from (`ir.access_plans`)."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.abi.access_type import AccessType
from warploom.analysis.vector_shape import LANES
from warploom.core.types import B8
from warploom.ir.access_groups import AccessGroup, by_instruction
from warploom.ir.access_plans import ANYWHERE, AccessPlan, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.ir.warp_ir import WarpIR
from warploom.isa.spec import Unit
from warploom.program.accesses import accesses as accesses_of
from warploom.program.accesses import bytes_of, space_of
from warploom.ptx.ir import Instruction, Space

SEEN = (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL, Space.GENERIC)
PATTERNS = {
    Pattern.AGREED: "one address in {runs}",
    Pattern.CONSECUTIVE: "addresses {stride} bytes apart in {runs}",
    Pattern.STRIDED: "addresses {stride} bytes apart in {runs}",
    Pattern.STEP: "a step found at run time, in {runs}",
    Pattern.LAYOUT: "any addresses of lanes of a layout",
    Pattern.COLUMNS: "columns, by a step found at run time",
    Pattern.ANY: "any addresses",
}
"""How a pattern is written of one access."""


@dataclass(frozen=True, slots=True)
class PlannedAccess:
    """An access with its plan: the number of its instruction, and its group, if it has one."""

    instruction: int
    plan: AccessPlan
    group: AccessGroup | None = None

    def __str__(self) -> str:
        plan, group, others, pattern = self.plan, self.group, "", PATTERNS[self.plan.pattern]
        if group is not None:
            pattern = pattern.format(stride=group.base.stride, runs=_runs(group))
            shared = [str(i) for i, _ in group.members if i != self.instruction]
            others = f", asked once for {', '.join(shared)} too" if shared else ""
        chosen = plan.guard.value + others, plan.move.value, f"counted by {plan.cost.value}"
        return "; ".join([pattern, *chosen, f"else {plan.exit.value}"])


def planned_accesses(ir: WarpIR) -> list[PlannedAccess]:
    """Returns the accesses of a kernel to memory, in the order of its instructions."""
    program, accesses = ir.program, ir.accesses_of(ir.program)
    found: list[PlannedAccess] = []
    for block, facts in zip(program.blocks, ir.blocks, strict=True):
        groups = by_instruction(facts.accesses.groups)
        for index in range(block.start, block.stop):
            instruction, group = program.instructions[index], groups.get(index)
            if group is not None:
                found.append(PlannedAccess(index, group.plan, group))
            elif any(space in SEEN for space, _ in accesses_of(instruction)):
                found.append(PlannedAccess(index, _plan(accesses, index, instruction)))
    return found


def _plan(accesses: KernelAccesses, index: int, instruction: Instruction) -> AccessPlan:
    """Returns the plan of an access without a group."""
    space, op = accesses_of(instruction)[0]
    if (
        instruction.operation.name in ("ld", "ldu", "st")
        and "bulk" not in instruction.operation.modifiers
    ):
        access_type = accesses.shape_of(op, index, instruction)
    elif instruction.operation.spec.unit is Unit.ATOMIC:
        access_type = AccessType(
            op, space_of(instruction), instruction.operation.modifiers.scalar()
        )
    else:
        access_type = AccessType(op, space, B8, bytes_of(instruction))
    return select(access_type, ANYWHERE, accesses.facts)


def _runs(group: AccessGroup) -> str:
    lanes = LANES // group.base.width
    return "the warp" if group.base.width == 1 else f"each {lanes} lanes"
