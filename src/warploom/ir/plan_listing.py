"""Lists the plan of each memory access of a kernel in the convergent copy of optimized code
(`ir.access_plans`), for `warploom ptx --plan`."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.abi.access_type import AccessType
from warploom.core.types import B8
from warploom.ir.access_groups import AccessGroup, by_instruction
from warploom.ir.access_plans import AccessPlan, Pattern, general
from warploom.ir.warp_ir import WarpIR
from warploom.isa.instruction import Space
from warploom.program.accesses import accesses as accesses_of
from warploom.program.accesses import bytes_of, spaces_of

PLANNED_SPACES = (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL, Space.GENERIC)
PATTERNS = {
    Pattern.AGREED: "one address in {runs}",
    Pattern.CONSECUTIVE: "addresses {stride} bytes apart in {runs}",
    Pattern.STRIDED: "addresses {stride} bytes apart in {runs}",
    Pattern.STEP: "a stride measured at run time, in {runs}",
    Pattern.LAYOUT: "varying addresses, with each lane as a run of its own",
    Pattern.COLUMNS: "several stores by each lane, with a stride measured at run time",
    Pattern.ANY: "any addresses",
}
"""The texts of patterns; {runs} and {stride} are filled in for an access."""


@dataclass(frozen=True, slots=True)
class PlannedAccess:
    """Holds the number of an access's instruction, its plan, and its group, if it is in one."""

    instruction: int
    plan: AccessPlan
    group: AccessGroup | None = None

    def __str__(self) -> str:
        """Returns the plan as a phrase: pattern of addresses, guard, with the numbers of the
        group's other accesses that it is evaluated for, move, cost by which the access is counted,
        and the exit if the guard fails."""
        plan, group, also_checked, pattern = self.plan, self.group, "", PATTERNS[self.plan.pattern]
        if group is not None:
            pattern = pattern.format(stride=group.base.stride, runs=_runs(group))
            other_members = [str(i) for i, _ in group.members if i != self.instruction]
            also_checked = (
                f", guarded together with {', '.join(other_members)}" if other_members else ""
            )
        parts = plan.guard.value + also_checked, plan.move.value, f"counted by {plan.cost.value}"
        return "; ".join([pattern, *parts, f"else {plan.exit.value}"])


def planned_accesses(ir: WarpIR) -> list[PlannedAccess]:
    """Returns the memory accesses of a kernel with their plans, in the order of instructions, for
    `warploom ptx --plan`: those in a group with the group's; others with each different plan for
    any addresses in the spaces that they may access. An access without a plan in the IR (copies,
    matrices) has that of an out-of-line access to its bytes, whatever their type. Of an instruction
    with several accesses the first in PLANNED_SPACES counts; accesses to other spaces are left
    out."""
    planned: list[PlannedAccess] = []
    groups = by_instruction(group for block in ir.blocks for group in block.accesses.groups)
    for index, instruction in enumerate(ir.program.instructions):
        if index in groups:
            planned.append(PlannedAccess(index, groups[index].plan, groups[index]))
            continue
        for space, op in accesses_of(instruction):
            if space in PLANNED_SPACES:
                plans = (
                    ir.plans.get((index, possible_space)) for possible_space in spaces_of(space)
                )
                access_plans = [plan for plan in plans if plan is not None]
                access_plans = access_plans or [
                    general(AccessType(op, space, B8, bytes_of(instruction)))
                ]
                planned += [PlannedAccess(index, plan) for plan in dict.fromkeys(access_plans)]
                break
    return planned


def _runs(group: AccessGroup) -> str:
    """Returns the words for the runs of a group: `the warp`, or `each run of N lanes`."""
    base = group.base
    return "the warp" if base.runs == 1 else f"each run of {base.length} lanes"
