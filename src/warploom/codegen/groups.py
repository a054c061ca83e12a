"""Accesses of a basic block from one register, or from one that walks on (`codegen.walks`), at
addresses with shapes; found before its code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from warploom.analysis.program import Block
from warploom.analysis.shapes import RUNS, Reading
from warploom.analysis.strides import Shape as LaneShape
from warploom.analysis.uses import writes
from warploom.codegen.access import Shape
from warploom.codegen.access_table import AccessPlan, Addresses, Guard, Pattern, select
from warploom.codegen.cache_layout import MOST_STRIDES
from warploom.codegen.lanes import Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.walks import Step, Walks
from warploom.ptx.ir import Address, Instruction, Register, Symbol


@dataclass
class Group:
    """Accesses of one block, `shape` and `plan`, from what one register holds all the time, or
    strides away from it. `base` is the shape of their addresses; where these have none, it says how
    many runs a warp is. `known` says, once code has come
    to the first of them, whether all are like earlier ones (`codegen.access_cache`); `bases` and
    `firsts` then where its register leads for the first lane of each run."""

    shape: Shape
    plan: AccessPlan
    base: LaneShape
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Instructions and their offsets."""
    bases: Value = None
    firsts: list[Value] = field(default_factory=list[Value])
    safe: list[Value] = field(default_factory=list[Value])
    """Where each run begins, or one of which some lane is on, if all runs agree inside; where the
    group is known, reading there is safe."""
    begins: Value | None = None
    """The same as a vector."""
    known: Value | None = None
    counter: Value | None = None
    """The address of the count of such accesses."""
    place: tuple[Value, Value] | None = None
    """The number of the lanes' set, and of the count in its entry."""
    crossed: list[int] = field(default_factory=list[int])
    """Loads between its members, of those that are put off (`codegen.put_off`)."""
    laps: dict[int, Counter[Register]] = field(default_factory=dict[int, Counter[Register]])
    """How often an instruction's register is each stride away from where the walk begins."""
    strides: dict[Register, Value] = field(default_factory=dict[Register, Value])
    """Those by which some are apart, once code has come to the first of them."""
    alone: int | None = None
    """In slow code, which of the accesses this is: it is counted apart from the others."""
    unknown: Value = None
    """Where it is kept if the first access, this time, was not known: then none of the others is,
    so that the rules count each."""
    step: Value | None = None
    """By how much places without a shape follow from lane to lane, in each run, if they do."""

    def ahead(self, index: int) -> dict[Register, int]:
        """Returns how often an access lies each stride behind the first one."""
        own = self.laps.get(index, Counter()).copy()
        own.subtract(self.laps.get(self.members[0][0], Counter()))
        return {stride: laps for stride, laps in own.items() if laps}

    def without_values(self, alone: int) -> Group:
        """Return one of its accesses on its own, in code that is not left."""
        return Group(
            self.shape,
            self.plan.in_one_version(),
            self.base,
            members=self.members,
            laps=self.laps,
            alone=alone,
            unknown=self.unknown,
        )

    @property
    def is_laid_out(self) -> bool:
        """Return whether each lane is a run of its own: then `step` is by how much lanes follow all
        the same, or 0."""
        return self.plan.guard is Guard.LANES

    @property
    def walked(self) -> list[Register]:
        """Return the strides by which some of its accesses are apart."""
        return list(dict.fromkeys(s for index, _ in self.members for s in self.ahead(index)))

    @property
    def span(self) -> tuple[int, int]:
        """Return the first offset that a run reaches, and the first behind the last place."""
        offsets = [offset for _, offset in self.members]
        reach = 0 if self.plan.pattern is Pattern.COLUMNS else self.base.reach
        return min(offsets) + min(reach, 0), max(offsets) + self.shape.size + max(reach, 0)


def find_groups(
    memory: MemoryCode, reading: Reading, block: Block, *, walking: bool = False
) -> dict[int, Group]:
    """Return the groups of a block's accesses, by instruction; `walking`: with those that are
    strides apart."""
    walks = Walks(reading, block)
    found: dict[object, Group] = {}
    groups: dict[int, Group] = {}
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        made = memory.frame.program.instructions[index]
        placed = _placed(memory, reading, index, made)
        if placed is not None:
            address, group, alike = placed
            key: tuple[object, ...] = (address.base, *alike)
            if isinstance(address.base, Register):
                step = walks.at(address.base, versions)
                key = (step.register, step.version, *alike)
                if key in found and not _joins(found[key], step):
                    key = (*key, *step.strides)
                group.laps[index] = step.strides
            found_laps = group.laps
            group = found.setdefault(index if made.guard else key, group)
            group.laps |= found_laps
            group.members.append((index, address.offset))
            groups[index] = group
        if walking:
            walks.note(index, made, versions)
        for register in writes(made):
            versions[register] = index
    return groups


def group_alone(
    memory: MemoryCode, reading: Reading, index: int, made: Instruction
) -> Group | None:
    """Return an access as a group of its own; None where it can have none."""
    placed = _placed(memory, reading, index, made)
    if placed is None:
        return None
    address, group, _ = placed
    group.members.append((index, address.offset))
    return group


def _joins(group: Group, step: Step) -> bool:
    """Returns whether an access can join a group: one of few strides can."""
    return len(set(step.strides).union(*group.laps.values())) <= MOST_STRIDES


def _placed(
    memory: MemoryCode, reading: Reading, index: int, made: Instruction
) -> tuple[Address, Group, tuple[object, ...]] | None:
    """For an access that can have a group, its address, a group for it, and what those of one group
    have in common."""
    if made.operation.name not in ("ld", "ldu", "st") or "bulk" in made.operation.modifiers:
        return None
    op = "store" if made.operation.name == "st" else "load"
    address = made.operands[0 if op == "store" else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Register | Symbol):
        return None
    shape, lanes = memory.shape_of(op, index, made), reading.address(address)
    at = Addresses.of(shape, lanes, RUNS.get(reading.formation, 1))
    plan = select(shape, at, memory.facts)
    if plan.is_general:
        return None
    return address, Group(shape, plan, at.lanes), (shape, address.offset % shape.size)
