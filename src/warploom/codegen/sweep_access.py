"""Loads and stores of all warps of a block at once (`codegen.sweep`): looked at from the first and
the last of them, then done warp by warp.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.shapes import Reading
from warploom.analysis.sweeps import Sweep
from warploom.codegen.environment import KINDS_AT, MEMO_BITS, MEMO_KIND, MEMO_PASSES
from warploom.codegen.formations import BlockWide
from warploom.codegen.groups import Form, Group, find_groups
from warploom.codegen.lanes import I1, I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.remembered import Remembered
from warploom.codegen.row_access import RowAccess, Rows
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Register, Space

WORD = 4
"""Bytes from which on consecutive accesses of all warps begin alike: 32 lanes reach a line."""


class SweepAccess:
    """Emits the accesses of one sweep. `reading` says what is known of operands in warps, `block`
    what in whole blocks. `goes_on` are those of which the first warp says where all reach."""

    def __init__(
        self,
        memory: MemoryCode,
        reading: Reading,
        block: Reading,
        layout: BlockWide,
        sweep: Sweep,
    ) -> None:
        self.memory, self.reading, self._block, self.layout = memory, reading, block, layout
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._remembered = Remembered(memory)
        self._groups: dict[int, Group] = {}
        for index in (*sweep.blocks, *sweep.own):
            self._groups |= find_groups(memory, reading, self.frame.program.blocks[index])
        self._offsets = {i: offset for g in self._groups.values() for i, offset in g.members}
        self._steps: dict[int, Value] = {}
        """How far each warp reaches behind the one before it, by the first of a group."""
        self.goes_on = frozenset(i for i, group in self._groups.items() if _goes_on(group))

    @property
    def reaches_memory(self) -> bool:
        """Whether some are to global memory."""
        return any(group.shape.space is Space.GLOBAL for group in self._groups.values())

    # ---- for all warps --------------------------------------------------------------------------

    def look(self, index: int, made: Instruction, warps: Value) -> Value:
        """Whether so many warps, the first ones, can go the short way. The first one's registers
        say where."""
        b, group = self.b, self._groups[index]
        if group.firsts:
            return I1(1)
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        base = self.memory.operands.read(address.base, unsigned(64), width=group.base.width)
        group.firsts = [self.lanes.lane(base, row) for row in range(group.base.width)]
        if self._block.address(address).width == 1:  # all rows of the block begin there
            group.firsts = group.firsts[:1] * group.base.width
            base = self.lanes.splat(group.firsts[0], 1)
        step = self.layout.step(base, group.base.stride)
        self._steps[group.members[0][0]] = step = I64(0) if step is None else step
        holds = self._remembered.holds_as_far(group, b.mul(b.sub(warps, I64(1)), step))
        if group.form is not Form.CONSECUTIVE:
            bits = self._remembered.word(self._memo(group), MEMO_BITS)
            holds = b.and_(holds, b.icmp_unsigned("==", b.and_(step, bits), I64(0)))
        return b.or_(holds, b.icmp_unsigned("==", warps, I64(0)))

    def count(self, index: int, warps: Value) -> None:
        """So many warps have gone the short way."""
        group = self._groups[index]
        leader, last = group.members[0][0], group.members[-1][0]
        if group.form is Form.CONSECUTIVE:
            first = self.b.add(group.firsts[0], I64(self._offsets[index]))
            self.memory.common.count(index, group.shape.space, first, warps)
        elif leader == last:
            memo = self._memo(group)
            kind = self.b.add(self._remembered.word(memo, MEMO_KIND), I64(KINDS_AT))
            self.lanes.add_to(self.lanes.slot(memo, kind), warps)
        elif index == last:
            self.lanes.add_to(self.lanes.slot(self._memo(group), MEMO_PASSES), warps)

    def _memo(self, group: Group) -> Value:
        return self.memory.places.row(group.members[0][0], group.shape.space)

    # ---- for each -------------------------------------------------------------------------------

    def load(self, index: int) -> list[Value]:
        """What the running warp loads, part by part: in 1 lane or in 2 where lanes or rows
        agree."""
        group, firsts = self._groups[index], self._places(index)
        if group.form is Form.CONSECUTIVE:
            return self.memory.common.load(group.shape, firsts[0])
        rows = RowAccess(self.lanes, group.shape)
        base = self.memory.base_of(group.shape)
        if group.form is Form.ROWS:
            return rows.load(Rows(firsts[0], firsts[-1], ir.Constant(I1, 1)), base)
        pointers = rows.pointers(Rows(firsts[0], firsts[-1], ir.Constant(I1, 0)), base)
        return [rows.each(pointers[: len(firsts)], part) for part in range(group.shape.parts)]

    def store(self, index: int, made: Instruction) -> None:
        """The store of the running warp."""
        group, firsts = self._groups[index], self._places(index)
        value = self.memory.operands.bits(made.operands[1], group.shape.type)
        if group.form is Form.CONSECUTIVE:
            self.memory.common.store(group.shape, firsts[0], [value])
        else:
            rows = Rows(firsts[0], firsts[-1], ir.Constant(I1, 1))
            RowAccess(self.lanes, group.shape).store(rows, self.memory.base_of(group.shape), value)

    def _places(self, index: int) -> list[Value]:
        """Where the running warp's first lane, or that of each row, reaches."""
        b, group = self.b, self._groups[index]
        ahead = b.mul(self.frame.warp, self._steps[group.members[0][0]])
        ahead = b.add(ahead, I64(self._offsets[index]))
        return [b.add(first, ahead) for first in group.firsts]


def _goes_on(group: Group) -> bool:
    """Whether what is known of one warp's access is so of those that reach on by the same step."""
    if group.form is Form.CONSECUTIVE:
        return group.shape.size >= WORD and group.shape.parts == 1
    return group.form in (Form.ROWS, Form.AGREED)
