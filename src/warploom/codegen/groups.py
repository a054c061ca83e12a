"""Accesses of a basic block from one register, at addresses with shapes; found before its code."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.analysis.strides import Shape as LaneShape
from warploom.analysis.uses import writes
from warploom.codegen.access import Shape
from warploom.codegen.lanes import Value
from warploom.codegen.memory import MemoryCode
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
    """Accesses of one block, `shape` and form, from what one register holds all the time. `known`
    says, once code has come to the first of them, whether all can go the short way; `firsts` then
    where the register leads for the first lane, or for that of each row."""

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


def find_groups(memory: MemoryCode, reading: Reading, block: Block) -> dict[int, Group]:
    """The groups of a block's accesses, by instruction."""
    found: dict[object, Group] = {}
    groups: dict[int, Group] = {}
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        made = memory.frame.program.instructions[index]
        placed = _placed(memory, reading, index, made, versions)
        if placed is not None:
            key, group, offset = placed
            group = found.setdefault(index if made.guard else key, group)
            group.members.append((index, offset))
            groups[index] = group
        for register in writes(made):
            versions[register] = index
    return groups


def _placed(
    memory: MemoryCode,
    reading: Reading,
    index: int,
    made: Instruction,
    versions: dict[Register, int],
) -> tuple[object, Group, int] | None:
    """For an access that can have a group, what those of one group have in common, a group for it
    and its offset."""
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
    place = address.offset % group.alignment
    return (address.base, versions.get(address.base), shape, form, place), group, address.offset


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
