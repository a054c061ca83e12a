"""Loads and stores at addresses that have a shape: no lane has to be compared with another.

One address or two say everything: of the first lane, or of that of each row. Where all lanes
execute, the access is a scalar load for all or for each row, or a vector of consecutive places; it
is counted as one is that is only found to be so at run time (`codegen.common_access`,
`codegen.row_access`). Accesses of a basic block from the same register are looked at together,
once: whether they are aligned, inside of the allocation that was reached last, and of kinds that
are known. Any other goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import Shape as LaneShape
from warploom.codegen.access import Shape, count_change
from warploom.codegen.environment import KINDS_AT, MEMO_KIND, MEMO_PASSES
from warploom.codegen.groups import Form, Group, find_groups
from warploom.codegen.lanes import I1, I32, I64, Value, undefined
from warploom.codegen.masked_access import MaskedAccess
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.put_off import PutOff
from warploom.codegen.remembered import RARELY, Remembered
from warploom.codegen.row_access import RowAccess, Rows
from warploom.codegen.stepped import find_stepped
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space

HURRIED = 4
"""Accesses of a block from which on it has two versions."""


class ShapedAccess:
    """Emits the accesses of the convergent copy whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.operands, self.common = memory.operands, memory.common
        self._remembered, self._puts = Remembered(memory), PutOff(memory)
        self._groups: dict[int, Group] = {}
        self._careful: dict[int, ir.Block] = {}
        self._passing: dict[int, Group] = {}
        """The accesses so far that their groups will count together, at the last of each."""
        self.hurries = False
        """Whether code is made that leaves for the careful one wherever the short way ends."""
        self._fetches_ahead = False
        """Whether the block's loads at consecutive places ask for what lies ahead, as they would
        come to wait behind stores that each wait for a line."""
        self.masked: MaskedAccess | None = None
        """What makes the accesses of a block that some lanes run while the others wait."""
        self._all_on = False
        """Whether it is known there that all lanes are on where no guard says otherwise."""

    # ---- groups ---------------------------------------------------------------------------------

    def begin(self, block: Block) -> None:
        """Find the groups of a block, before its code. Where there are several accesses, the code
        hurries: it goes the short way without a look back, and leaves at the first access that
        cannot for a second, careful version of the block (`careful`)."""
        self._groups.clear()
        self.masked = None
        if self.frame.convergent and not self.memory.never_inlined:
            self._groups = find_groups(self.memory, self.reading, block)
        stepped = find_stepped(self.memory, self.reading, block, self._groups)
        self._groups |= stepped
        self._careful.clear()
        self._passing.clear()
        self._puts.forget()
        self._all_on = False
        self._fetches_ahead = bool(stepped)
        self.hurries = self._fetches_ahead or len(self._groups) >= HURRIED

    def begin_masked(self) -> None:
        """Begin a block that some lanes run while the others wait."""
        self._groups.clear()
        self.hurries = False
        self.masked = MaskedAccess(self.memory, self.reading)

    def careful(self, block: Block) -> dict[int, ir.Block]:
        """Begin the careful version of a block, if there is to be one: the blocks in which code
        comes to it, by instruction."""
        self.hurries = self._all_on = False
        self._passing.clear()
        self._puts.forget()
        together = {i: g for i, g in self._groups.items() if g.form is not Form.STEPPED}
        self._groups.clear()
        for index, group in together.items():
            own = [member for member in group.members if member[0] == index]
            leader = group.members[0][0]
            self._groups[index] = replace(group, members=own, firsts=[], known=None, leader=leader)
        return dict(self._careful)

    # ---- what is asked of a group ---------------------------------------------------------------

    def _known(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Whether the accesses of a group can go the short way; where code hurries, it goes on only
        if they can."""
        if group.known is None:
            group.firsts = self._firsts(group, made)
            if group.leader is not None:
                group.known = self._remembered.looked_at(group, on, group.leader)
            elif self.hurries:
                group.known = self._or_learn(index, group, made, on)
            else:
                group.known = self._remembered.or_learn(group, on)
            self._all_on = self._all_on or (self.hurries and made.guard is None)
        return group.known

    def _or_learn(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Leave unless the short way can be gone. What is learned there is for the next time: a way
        back would cost registers on the short one."""
        holds = self._remembered.holds(group, self._unsure(made, on))
        apart = self._puts.apart(group)

        def learn() -> None:
            with self.b.if_then(self._remembered.matches(group, on)):
                self._remembered.learn(group)

        self._or_leave(index, holds if apart is None else self.b.and_(holds, apart), learn)
        return ir.Constant(I1, 1)

    def _unsure(self, made: Instruction, on: Value) -> Value | None:
        """The lanes that execute an instruction; None where they are known to be all."""
        return None if self._all_on and made.guard is None else on

    def _or_leave(self, index: int, holds: Value, learn: Callable[[], None]) -> None:
        """Leave at an instruction for the careful version, unless a condition holds."""
        b, onward, unknown = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(holds, onward, unknown).set_weights(RARELY)
        self._careful[index] = b.append_basic_block(f"careful{index}")
        b.position_at_end(unknown)
        self.leave()
        learn()
        b.branch(self._careful[index])
        b.position_at_end(onward)

    def _firsts(self, group: Group, made: Instruction) -> list[Value]:
        """Where the base leads for the first lane, or that of each row."""
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        base = self.operands.read(address.base, unsigned(64), width=group.base.width)
        return [self.lanes.lane(base, row) for row in range(group.base.width)]

    # ---- loads ----------------------------------------------------------------------------------

    def load_agreed(self, index: int, made: Instruction, on: Value) -> list[Value]:
        """A load in which all lanes, or all of a row, read one place: what it gives, part by part,
        in 1 lane or in 2."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        if space_of(made) is Space.PARAM:
            given = made.operands[1], type, parts, on
            return self.memory.load_parameter(index, *given, width=1)
        found = None if self.masked is None else self.masked.load_agreed(index, made, on)
        if found is not None:
            return found
        shape = self.memory.shape_of("load", index, made)
        width = self.reading.address(made.operands[1]).width

        def load_any() -> list[Value]:
            addresses = self.lanes.fan(self.operands.address(made.operands[1], width), 0)
            found = self.memory.load_any(index, shape, addresses, on)
            bits = self.lanes.bits(on)
            return [self.frame.by_shape(value, bits, LaneShape(width)) for value in found]

        def load_rows(loads: RowAccess, rows: Rows) -> list[Value]:
            pointers = loads.pointers(rows, self.memory.base_of(shape))[:width]
            return [self._each(loads, pointers, part) for part in range(parts)]

        return self._load(index, made, on, shape, load_any, load_rows)

    def _each(self, loads: RowAccess, pointers: list[Value], part: int) -> Value:
        value: Value = undefined(ir.VectorType(loads.shape.element, len(pointers)))
        for row, pointer in enumerate(pointers):
            value = self.b.insert_element(value, loads.one(pointer, part), I32(row))
        return value

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """A load whose lanes read consecutive places, in each row at least: what it gives, part by
        part. None where it is none."""
        if self.masked is not None:
            return self.masked.load(index, made, on)
        if index not in self._groups:
            return None
        shape, width = self._groups[index].shape, self._groups[index].base.width

        def load_any() -> list[Value]:
            firsts = self.operands.address(made.operands[1], width)
            addresses = self.lanes.fan(firsts, shape.size)
            return self.memory.load_any(index, shape, addresses, on)

        def load_rows(loads: RowAccess, rows: Rows) -> list[Value]:
            return loads.load(rows, self.memory.base_of(shape))

        return self._load(index, made, on, shape, load_any, load_rows)

    def _load(
        self,
        index: int,
        made: Instruction,
        on: Value,
        shape: Shape,
        load_any: Callable[[], list[Value]],
        load_rows: Callable[[RowAccess, Rows], list[Value]],
    ) -> list[Value]:
        """A load the short way if its group can go it, else in any way."""
        group = self._groups.get(index)
        if group is None:
            return load_any()
        b = self.b
        known = self._known(index, group, made, on)
        if self.hurries:
            return self._load_short(index, group, made, load_rows)
        short, other, done = (b.append_basic_block(n) for n in ("short", "other", "loaded"))
        b.cbranch(known, short, other).set_weights([99, 1])
        b.position_at_end(short)
        found = self._load_short(index, group, made, load_rows)
        after_short = b.block
        b.branch(done)
        b.position_at_end(other)
        others = load_any()
        after_other = b.block
        b.branch(done)
        b.position_at_end(done)
        return [
            self._either((one, after_short), (two, after_other))
            for one, two in zip(found, others, strict=True)
        ]

    def _load_short(
        self,
        index: int,
        group: Group,
        made: Instruction,
        load_rows: Callable[[RowAccess, Rows], list[Value]],
    ) -> list[Value]:
        shape, firsts = group.shape, self._places(group, made.operands[1])
        if group.form is Form.CONSECUTIVE:
            self.common.count(index, shape.space, firsts[0])
            if self._fetches_ahead and shape.space is Space.GLOBAL:
                self.common.fetch_ahead(shape, firsts[0])
            return self.common.load(shape, firsts[0])
        self._count(index, group)
        consecutive = ir.Constant(I1, int(group.form is Form.ROWS))
        rows = Rows(firsts[0], firsts[-1], consecutive)
        return load_rows(RowAccess(self.lanes, shape), rows)

    def _places(self, group: Group, address: Operand) -> list[Value]:
        """Where the first lane, or that of each row, reaches in an access of a group. Inside of its
        space no sum begins again at 0."""
        assert isinstance(address, Address)
        return [self.b.add(first, I64(address.offset)) for first in group.firsts]

    def _count(self, index: int, group: Group) -> None:
        """One more access by rows of its kind; where code hurries, a group's are counted as one."""
        leader, last = group.members[0][0], group.members[-1][0]
        if not self.hurries or leader == last:
            self._count_kind(index, group.shape)
        elif index != last:
            self._passing[index] = group
        else:
            self._passing = {i: other for i, other in self._passing.items() if other is not group}
            row = self.memory.places.row(leader, group.shape.space)
            self.lanes.add_to(self.lanes.slot(row, MEMO_PASSES), I64(1))

    def leave(self) -> None:
        """Code leaves the block where some of a group's loads have passed: they count alone. Stores
        that have been put off are done."""
        self._puts.do()
        for index, group in self._passing.items():
            self._count_kind(index, group.shape)

    def _count_kind(self, index: int, shape: Shape) -> None:
        row = self.memory.places.row(index, shape.space)
        at = self.b.add(self._remembered.word(row, MEMO_KIND), I64(KINDS_AT))
        self.lanes.add_to(self.lanes.slot(row, at), I64(1))

    def _either(self, *ways: tuple[Value, ir.Block]) -> Value:
        result = self.b.phi(ways[0][0].type)
        for value, block in ways:
            result.add_incoming(value, block)
        return result

    # ---- stores ---------------------------------------------------------------------------------

    def store(self, index: int, made: Instruction, on: Value) -> None:
        """A store, at whatever addresses."""
        if self.masked is not None and self.masked.store(index, made, on):
            return
        group = self._groups.get(index)
        if group is None:
            self.memory.store(index, made, on)
            return
        shape = group.shape
        type = made.operation.modifiers.scalar()
        values = [self.operands.bits(s, type) for s in elements(made.operands[1])]
        if group.form is Form.STEPPED:
            self._put_off(index, group, made, on)
            self._puts.keep(values[0])
            return
        known = self._known(index, group, made, on)
        if self.hurries:
            self._store_short(index, group, made, values)
            return
        with self.b.if_else(known, likely=True) as (short, other):
            with short:
                self._store_short(index, group, made, values)
            with other:
                firsts = self.operands.address(made.operands[0], group.base.width)
                addresses = self.lanes.fan(firsts, shape.size)
                self.memory.store_any(index, shape, addresses, values, on)

    def _store_short(
        self, index: int, group: Group, made: Instruction, values: list[Value]
    ) -> None:
        shape, firsts = group.shape, self._places(group, made.operands[0])
        if group.form is Form.CONSECUTIVE:
            self.common.count(index, shape.space, firsts[0])
            self.common.store(shape, firsts[0], values)
        else:
            self._count(index, group)
            rows = Rows(firsts[0], firsts[-1], ir.Constant(I1, 1))
            RowAccess(self.lanes, shape).store(rows, self.memory.base_of(shape), values[0])
        count_change(self.lanes, self.frame.environment, I64(1))

    def _put_off(self, index: int, group: Group, made: Instruction, on: Value) -> None:
        """Leave at the first store of a group unless all can be put off to the last."""
        if index != group.members[0][0]:
            return
        b, address = self.b, made.operands[0]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        holds = self._puts.look(group, self.operands.read(address.base, unsigned(64)))
        unsure = self._unsure(made, on)
        if unsure is not None:
            holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(unsure), I32(-1)))
        # Loads that come later look themselves.
        for crossed in {id(g): g for g in map(self._groups.__getitem__, group.crossed)}.values():
            apart = self._puts.apart(crossed) if crossed.known is not None else None
            holds = holds if apart is None else b.and_(holds, apart)
        self._or_leave(index, holds, lambda: None)
        self._all_on = True
