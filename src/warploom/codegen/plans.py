"""Lists how each access of a kernel to memory is done in optimised code, where all living lanes go
together: what is known of its addresses, what guards it, and how its data move."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.analysis.accesses import accesses
from warploom.analysis.strides import LANES
from warploom.analysis.strides import Shape as LaneShape
from warploom.codegen.environment import CountLayout
from warploom.codegen.groups import Form, Group
from warploom.codegen.variant import KernelVariant
from warploom.codegen.warp import WarpFunction
from warploom.ptx.ir import Space

ATOMIC = "atomic"
SEEN = (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL, Space.GENERIC)


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """Says how an access is done. `pattern`: what is known of the lanes' addresses; `guard`: what
    has to hold, and with which other instructions that is asked once; `move`: how the data move
    then; `otherwise`: where code goes if it does not hold."""

    instruction: int
    pattern: str
    guard: str
    move: str
    otherwise: str

    def __str__(self) -> str:
        return f"{self.pattern}; {self.guard}; {self.move}; else {self.otherwise}"


def access_plans(layout: CountLayout, variant: KernelVariant) -> list[AccessPlan]:
    """Return the plans of a kernel's accesses to memory, in the order of its instructions."""
    warp = WarpFunction(ir.Module(layout.program.name), layout.program, layout, variant)
    found: list[AccessPlan] = []
    for block, groups, hurries in warp.access_groups():
        for index in range(block.start, block.stop):
            reached = accesses(layout.program.instructions[index])
            if any(space in SEEN for space, _ in reached):
                op = reached[0][1]
                found.append(_plan(index, op, groups.get(index), hurries=hurries))
    return found


def _plan(index: int, op: str, group: Group | None, *, hurries: bool) -> AccessPlan:
    if group is None:
        move = "lane by lane" if op == ATOMIC else "a vector where lanes follow, else a gather"
        return AccessPlan(index, "any addresses", "bounds of all lanes", move, "a fault")
    leaves = hurries and group.form is not Form.ANY
    otherwise = "the slow version of the block" if leaves else "as at any addresses"
    return AccessPlan(index, _pattern(group), _guard(index, group), _move(op, group), otherwise)


def _pattern(group: Group) -> str:
    base = group.base
    if group.form is Form.ANY:
        return f"a step found at run time, in {_rows(base)}"
    if group.form is Form.STEPPED:
        return "columns, by a step found at run time"
    if base.stride == 0:
        return f"one address in {_rows(base)}"
    return f"addresses {base.stride} bytes apart in {_rows(base)}"


def _rows(base: LaneShape) -> str:
    lanes = LANES // base.width
    return "the warp" if base.width == 1 else f"each {lanes} lanes"


def _guard(index: int, group: Group) -> str:
    others = [str(other) for other, _ in group.members if other != index]
    shared = f", asked once for {', '.join(others)} too" if others else ""
    return f"known by the access cache{shared}"


def _move(op: str, group: Group) -> str:
    if group.form is Form.STEPPED:
        return "kept, then stored row by row"
    if group.form is Form.ANY:
        return "vectors where the step is the element's size, else a gather or a scatter"
    if group.base.stride == 0:
        return "a scalar for each run of lanes"
    if group.base.stride == group.shape.size:
        return "a vector for each run of lanes"
    return "a gather" if op == "load" else "a scatter"
