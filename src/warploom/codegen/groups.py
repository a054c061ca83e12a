"""Accesses of a basic block from one register, or from one that walks on (`codegen.walks`), at
addresses with shapes; found before its code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.analysis.strides import Shape as LaneShape
from warploom.analysis.uses import writes
from warploom.codegen.access import Shape
from warploom.codegen.environment import MEMO_STRIDES
from warploom.codegen.lanes import Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.walks import Step, Walks
from warploom.ptx.ir import Address, Instruction, Register, Space


class Form(Enum):
    """How the lanes' places lie: AGREED, one for all or for each row; CONSECUTIVE, one behind the
    other; ROWS, one behind the other in each row; STEPPED, by a step that is known as code runs."""

    AGREED = 0
    CONSECUTIVE = 1
    ROWS = 2
    STEPPED = 3


@dataclass
class Group:
    """Accesses of one block, `shape` and form, from what one register holds all the time, or
    strides away from it. `known` says, once code has come to the first of them, whether all can go
    the short way; `firsts` then where its register leads for the first lane, or for that of each
    row."""

    shape: Shape
    form: Form
    base: LaneShape
    alignment: int
    """To how many bytes its places must be aligned."""
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Instructions and their offsets."""
    firsts: list[Value] = field(default_factory=list[Value])
    known: Value | None = None
    leader: int | None = None
    """In careful code, the first of the accesses with which this one was remembered."""
    crossed: list[int] = field(default_factory=list[int])
    """Loads between its members, of those that are put off (`codegen.put_off`)."""
    laps: dict[int, Counter[Register]] = field(default_factory=dict[int, Counter[Register]])
    """How often an instruction's register is each stride away from where the walk begins."""
    strides: dict[Register, Value] = field(default_factory=dict[Register, Value])
    """Those by which some are apart, once code has come to the first of them."""

    def ahead(self, index: int) -> dict[Register, int]:
        """How often an access lies each stride behind the first one."""
        own = self.laps.get(index, Counter()).copy()
        own.subtract(self.laps.get(self.members[0][0], Counter()))
        return {stride: laps for stride, laps in own.items() if laps}

    @property
    def walked(self) -> list[Register]:
        """The strides by which some of its accesses are apart."""
        return list(dict.fromkeys(s for index, _ in self.members for s in self.ahead(index)))

    @property
    def extent(self) -> int:
        """Bytes from the first place of one address on, or from each lane's."""
        lanes = {Form.CONSECUTIVE: LANES, Form.ROWS: LANES // 2}
        return self.shape.size * lanes.get(self.form, 1)

    @property
    def span(self) -> tuple[int, int]:
        """The first offset, and the first behind the last place."""
        offsets = [offset for _, offset in self.members]
        return min(offsets), max(offsets) + self.extent


def find_groups(
    memory: MemoryCode, reading: Reading, block: Block, *, walking: bool = False
) -> dict[int, Group]:
    """The groups of a block's accesses, by instruction; `walking`: with those that are strides
    apart."""
    walks = Walks(reading, block)
    found: dict[object, Group] = {}
    groups: dict[int, Group] = {}
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        made = memory.frame.program.instructions[index]
        placed = _placed(memory, reading, index, made)
        if placed is not None:
            address, group, alike = placed
            assert isinstance(address.base, Register)
            step = walks.at(address.base, versions)
            key = (step.register, step.version, *alike)
            if key in found and not _joins(found[key], step):
                key = (*key, *step.strides)
            group = found.setdefault(index if made.guard else key, group)
            group.laps[index] = step.strides
            group.members.append((index, address.offset))
            groups[index] = group
        if walking:
            walks.note(index, made, versions)
        for register in writes(made):
            versions[register] = index
    return groups


def _joins(group: Group, step: Step) -> bool:
    """Whether an access at a step can be in a group: not of too many strides."""
    return len(set(step.strides).union(*group.laps.values())) <= MEMO_STRIDES


def _placed(
    memory: MemoryCode, reading: Reading, index: int, made: Instruction
) -> tuple[Address, Group, tuple[object, ...]] | None:
    """For an access that can have a group, its address, a group for it, and what those of one group
    have in common."""
    if made.operation.name not in ("ld", "ldu", "st") or "bulk" in made.operation.modifiers:
        return None
    op = "store" if made.operation.name == "st" else "load"
    address = made.operands[0 if op == "store" else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape, base = memory.shape_of(op, index, made), reading.address(address)
    form = _form(memory, shape, base)
    if form is None:
        return None
    group = Group(shape, form, base, 0)
    group.alignment = group.extent
    if form is Form.CONSECUTIVE:
        group.alignment = memory.common.alignment(shape)
    return address, group, (shape, form, address.offset % group.alignment)


def _form(memory: MemoryCode, shape: Shape, base: LaneShape) -> Form | None:
    by_rows = memory.by_rows(shape)
    if not base.is_known or shape.space not in (Space.GLOBAL, Space.SHARED, Space.CONST):
        return None
    if base.stride == 0 and by_rows and shape.op == "load":
        return Form.AGREED
    if base.stride != shape.size or shape.space is Space.CONST:
        return None
    rows = base.width == 2 and by_rows and shape.parts == 1
    return Form.ROWS if rows else Form.CONSECUTIVE
