"""Loads and stores at addresses that have a shape: no lane has to be compared with another.

One address or two say everything: of the first lane, or of that of each row. Where all lanes
execute, the access is a scalar load for all or for each row, or a vector of consecutive places; it
is counted as one is that is only found to be so at run time (`codegen.common_access`,
`codegen.row_loads`). Accesses of a basic block from the same register are looked at together, once:
whether they are aligned, inside of the allocation that was reached last, and of kinds that are
known. Any other goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.analysis.strides import Shape as LaneShape
from warploom.analysis.uses import writes
from warploom.codegen.access import Shape, count_change
from warploom.codegen.environment import (
    KINDS_AT,
    MEMO_BASE,
    MEMO_BITS,
    MEMO_KIND,
    MEMO_LOW,
    MEMO_ROOM,
    MEMO_STEP,
)
from warploom.codegen.helpers import call
from warploom.codegen.lanes import I1, I32, I64, Value, undefined
from warploom.codegen.masked_access import MaskedAccess
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.row_loads import RowLoads, Rows
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space
from warploom.rules.rows import LINE_BYTES

RARELY = (1 << 20, 1)
"""The weights of a way that is hardly ever left: what is live there stays in registers."""

HURRIED = 4
"""Accesses of a block from which on it has two versions."""


class Form(Enum):
    """How the lanes' places lie: AGREED, one for all or for each row; CONSECUTIVE, one behind the
    other; ROWS, one behind the other in each row."""

    AGREED = 0
    CONSECUTIVE = 1
    ROWS = 2


@dataclass
class Group:
    """Accesses of one block, `shape` and form, from what one register holds all the time. `known`
    says, once code has come to the first of them, whether all can go the short way; `firsts` then
    where the register leads for the first lane, or for that of each row."""

    shape: Shape
    form: Form
    base: LaneShape
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Instructions and their offsets."""
    firsts: list[Value] = field(default_factory=list[Value])
    known: Value | None = None
    leader: int | None = None
    """In careful code, the first of the accesses with which this one was remembered."""

    @property
    def extent(self) -> int:
        """Bytes from the first place of one address on."""
        lanes = {Form.AGREED: 1, Form.CONSECUTIVE: LANES, Form.ROWS: LANES // 2}
        return self.shape.size * lanes[self.form]

    @property
    def span(self) -> tuple[int, int]:
        """The first offset, and the first behind the last place."""
        offsets = [offset for _, offset in self.members]
        return min(offsets), max(offsets) + self.extent


class ShapedAccess:
    """Emits the accesses of the convergent copy whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.operands, self.common = memory.operands, memory.common
        self._groups: dict[int, Group] = {}
        self._careful: dict[int, ir.Block] = {}
        self.hurries = False
        """Whether code is made that leaves for the careful one wherever the short way ends."""
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
            self._find(block)
        self._careful.clear()
        self._all_on = False
        self.hurries = len(self._groups) >= HURRIED

    def begin_masked(self) -> None:
        """Begin a block that some lanes run while the others wait."""
        self._groups.clear()
        self.hurries = False
        self.masked = MaskedAccess(self.memory, self.reading)

    def careful(self, block: Block) -> dict[int, ir.Block]:
        """Begin the careful version of a block, if there is to be one: the blocks in which code
        comes to it, by instruction."""
        self.hurries = self._all_on = False
        for index, group in self._groups.items():
            own = [member for member in group.members if member[0] == index]
            leader = group.members[0][0]
            self._groups[index] = Group(group.shape, group.form, group.base, own, leader=leader)
        return dict(self._careful)

    def _find(self, block: Block) -> None:
        found: dict[object, Group] = {}
        versions: dict[Register, int] = {}
        for index in range(block.start, block.stop):
            made = self.frame.program.instructions[index]
            self._place(index, made, found, versions)
            for register in writes(made):
                versions[register] = index

    def _place(
        self,
        index: int,
        made: Instruction,
        found: dict[object, Group],
        versions: dict[Register, int],
    ) -> None:
        """Put an instruction into its group, if it is an access that can have one."""
        if made.operation.name not in ("ld", "ldu", "st") or "bulk" in made.operation.modifiers:
            return
        op = "store" if made.operation.name == "st" else "load"
        address = made.operands[0 if op == "store" else 1]
        if not isinstance(address, Address) or not isinstance(address.base, Register):
            return
        shape, base = self.memory.shape_of(op, index, made), self.reading.address(address)
        form = self._form(shape, base)
        if form is None:
            return
        group = Group(shape, form, base)
        place = address.offset % self._alignment(group)
        key: object = (address.base, versions.get(address.base), shape, form, place)
        group = found.setdefault(index if made.guard else key, group)
        group.members.append((index, address.offset))
        self._groups[index] = group

    def _form(self, shape: Shape, base: LaneShape) -> Form | None:
        by_rows = shape.op == "load" and self.memory.by_rows(shape)
        if not base.is_known or shape.space not in (Space.GLOBAL, Space.SHARED, Space.CONST):
            return None
        if base.stride == 0 and by_rows:
            return Form.AGREED
        if base.stride != shape.size or shape.space is Space.CONST:
            return None
        rows = base.width == 2 and by_rows and shape.parts == 1
        return Form.ROWS if rows else Form.CONSECUTIVE

    def _alignment(self, group: Group) -> int:
        if group.form is Form.CONSECUTIVE:
            return self.common.alignment(group.shape)
        return group.extent

    # ---- what is asked of a group ---------------------------------------------------------------

    def _known(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Whether the accesses of a group can go the short way; where code hurries, it goes on only
        if they can."""
        if group.known is None:
            group.firsts = self._firsts(group, made)
            if group.leader is not None:
                group.known = self._looked_at(group, on, group.leader)
            elif self.hurries:
                group.known = self._or_leave(index, group, made, on)
            else:
                group.known = self._or_learn(group, made, on)
            self._all_on = self._all_on or (self.hurries and made.guard is None)
        return group.known

    def _or_leave(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Leave at an instruction for the careful version, unless the short way can be gone. What
        is learned there is for the next time: a way back would cost registers on the short one."""
        b, onward, unknown = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(self._remembered(group, made, on), onward, unknown).set_weights(RARELY)
        self._careful[index] = b.append_basic_block(f"careful{index}")
        b.position_at_end(unknown)
        with b.if_then(self._matches(group, on)):
            self._learn(group)
        b.branch(self._careful[index])
        b.position_at_end(onward)
        return ir.Constant(I1, 1)

    def _firsts(self, group: Group, made: Instruction) -> list[Value]:
        """Where the base leads for the first lane, or that of each row."""
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        base = self.operands.read(address.base, unsigned(64), width=group.base.width)
        return [self.lanes.lane(base, row) for row in range(group.base.width)]

    def _memo(self, group: Group) -> Value:
        return self.memory.places.row(group.members[0][0], group.shape.space)

    def _remembered(self, group: Group, made: Instruction, on: Value) -> Value:
        """Whether the access is like one that went the short way before, as far as that matters."""
        b, memo, firsts = self.b, self._memo(group), group.firsts
        inside = b.sub(firsts[0], self._word(memo, MEMO_LOW))
        conditions = [b.icmp_unsigned("<", inside, self._word(memo, MEMO_ROOM))]
        if not (self._all_on and made.guard is None):
            conditions.append(self._everyone(on))
        if group.form is Form.CONSECUTIVE:
            conditions += self._consecutive(group)
        else:
            bits, base = self._word(memo, MEMO_BITS), self._word(memo, MEMO_BASE)
            conditions.append(b.icmp_unsigned("==", b.and_(firsts[0], bits), base))
            step = b.sub(firsts[-1], firsts[0])
            if len(firsts) == 2:
                conditions.append(b.icmp_unsigned("==", step, self._word(memo, MEMO_STEP)))
        return reduce(b.and_, conditions)

    def _everyone(self, on: Value) -> Value:
        return self.b.icmp_unsigned("==", self.lanes.bits(on), I32(-1))

    def _consecutive(self, group: Group) -> list[Value]:
        """That places are aligned, and those of the second row behind those of the first."""
        b, firsts = self.b, group.firsts
        place = b.and_(b.add(firsts[0], I64(group.members[0][1])), I64(self._alignment(group) - 1))
        found = [b.icmp_unsigned("==", place, I64(0))]
        if len(firsts) == 2:
            follows = b.icmp_unsigned("==", b.sub(firsts[1], firsts[0]), I64(group.extent // 2))
            found.append(follows)
        return found

    def _or_learn(self, group: Group, made: Instruction, on: Value) -> Value:
        """Whether an access can go the short way, where it is not like the last: it is then
        looked at, and remembered."""
        b, names = self.b, ("unknown", "learn", "learned")
        remembered = self._remembered(group, made, on)
        before, (unknown, learn, done) = b.block, (b.append_basic_block(n) for n in names)
        b.cbranch(remembered, done, unknown).set_weights(RARELY)
        b.position_at_end(unknown)
        matches = self._matches(group, on)
        looked = b.block
        b.cbranch(matches, learn, done)
        b.position_at_end(learn)
        learned = self._learn(group)
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I1)
        for value, block in ((I1(1), before), (I1(0), looked), (learned, behind)):
            result.add_incoming(value, block)
        return result

    def _looked_at(self, group: Group, on: Value, leader: int) -> Value:
        """The same in careful code, where each access is on its own and nothing is remembered. If
        it learns another kind than before, what its leader remembers holds no more."""
        matches = self._matches(group, on)
        if group.form is Form.CONSECUTIVE:
            return matches
        b, (learn, done) = self.b, (self.b.append_basic_block() for _ in range(2))
        before = b.block
        b.cbranch(matches, learn, done)
        b.position_at_end(learn)
        row = self._memo(group)
        kind = self._word(row, MEMO_KIND)
        known = b.icmp_unsigned("!=", self._learn_kinds(group), I64(0))
        with b.if_then(b.icmp_unsigned("!=", kind, self._word(row, MEMO_KIND))):
            room = self.lanes.slot(self.memory.places.row(leader, group.shape.space), MEMO_ROOM)
            b.store(I64(0), room)
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I1)
        result.add_incoming(I1(0), before)
        result.add_incoming(known, behind)
        return result

    def _matches(self, group: Group, on: Value) -> Value:
        """Whether all lanes are on, and all places aligned and inside what is known live."""
        b, firsts, (index, offset) = self.b, group.firsts, group.members[0]
        conditions = [self._everyone(on)]
        if group.form is Form.CONSECUTIVE:
            conditions += self._consecutive(group)
        else:
            some = reduce(b.or_, (b.add(f, I64(offset)) for f in firsts))
            crooked = b.and_(some, I64(self._alignment(group) - 1))
            conditions.append(b.icmp_unsigned("==", crooked, I64(0)))
        start, stop = group.span
        for first in firsts[:1] if group.form is Form.CONSECUTIVE else firsts:
            place = b.add(first, I64(start))
            conditions.append(self.common.inside(index, group.shape.space, place, stop - start))
        return reduce(b.and_, conditions)

    def _learn(self, group: Group) -> Value:
        """Remember an access that matches, and learn the kinds of a group's loads by rows; whether
        all were known."""
        b, memo, firsts = self.b, self._memo(group), group.firsts
        known = I64(1)
        step, back = I64(0), I64(0)
        if group.form is not Form.CONSECUTIVE:
            known = self._learn_kinds(group)
            step = b.sub(firsts[-1], firsts[0])
            back = b.select(b.icmp_signed("<", step, I64(0)), step, I64(0))
        start, stop = group.span
        low, high = self.common.bounds(group.members[0][0], group.shape.space)
        lowest = b.sub(low, b.add(I64(start), back))
        highest = b.sub(high, b.add(I64(stop), b.sub(step, back)))
        # Beyond a line, and where they agree, it does not matter where in a line rows begin.
        near = b.icmp_unsigned("<", b.add(step, I64(LINE_BYTES)), I64(2 * LINE_BYTES))
        matters = b.and_(near, b.icmp_unsigned("!=", step, I64(0)))
        bits = b.select(matters, I64(LINE_BYTES - 1), I64(self._alignment(group) - 1))
        words = {
            MEMO_STEP: step,
            MEMO_BITS: bits,
            MEMO_BASE: b.and_(firsts[0], bits),
            MEMO_LOW: lowest,
            MEMO_ROOM: b.add(b.sub(highest, lowest), I64(1)),
        }
        for word, value in words.items():
            b.store(value, self.lanes.slot(memo, word))
        return b.icmp_unsigned("!=", known, I64(0))

    def _learn_kinds(self, group: Group) -> Value:
        """Learn the kinds of a group's loads; 1 where all were known."""
        b, known = self.b, I64(1)
        for index, offset in group.members:
            row = self.memory.places.row(index, group.shape.space)
            places = [b.add(f, I64(offset)) for f in (group.firsts[0], group.firsts[-1])]
            consecutive = I64(int(group.form is Form.ROWS))
            known = b.and_(known, call(self.lanes, "learn_row", *places, consecutive, row))
        return known

    def _word(self, row: Value, word: int) -> Value:
        return self.b.load(self.lanes.slot(row, word), typ=I64)

    # ---- loads ----------------------------------------------------------------------------------

    def load_agreed(self, index: int, made: Instruction, on: Value) -> list[Value]:
        """A load in which all lanes, or all of a row, read one place: what it gives, part by part,
        in 1 lane or in 2."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        if space_of(made) is Space.PARAM:
            given = made.operands[1], type, parts, on
            return self.memory.load_parameter(index, *given, width=1)
        shape = self.memory.shape_of("load", index, made)
        width = self.reading.address(made.operands[1]).width

        def load_any() -> list[Value]:
            addresses = self.lanes.fan(self.operands.address(made.operands[1], width), 0)
            found = self.memory.load_any(index, shape, addresses, on)
            bits = self.lanes.bits(on)
            return [self.frame.by_shape(value, bits, LaneShape(width)) for value in found]

        def load_rows(loads: RowLoads, rows: Rows) -> list[Value]:
            pointers = loads.pointers(rows, self.memory.base_of(shape))[:width]
            return [self._each(loads, pointers, part) for part in range(parts)]

        return self._load(index, made, on, shape, load_any, load_rows)

    def _each(self, loads: RowLoads, pointers: list[Value], part: int) -> Value:
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

        def load_rows(loads: RowLoads, rows: Rows) -> list[Value]:
            return loads.load(rows, self.memory.base_of(shape))

        return self._load(index, made, on, shape, load_any, load_rows)

    def _load(
        self,
        index: int,
        made: Instruction,
        on: Value,
        shape: Shape,
        load_any: Callable[[], list[Value]],
        load_rows: Callable[[RowLoads, Rows], list[Value]],
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
        load_rows: Callable[[RowLoads, Rows], list[Value]],
    ) -> list[Value]:
        shape, firsts = group.shape, self._places(group, made.operands[1])
        if group.form is Form.CONSECUTIVE:
            self.common.count(index, shape.space, firsts[0])
            return self.common.load(shape, firsts[0])
        self._count_kind(index, shape)
        consecutive = ir.Constant(I1, int(group.form is Form.ROWS))
        rows = Rows(firsts[0], firsts[-1], consecutive)
        return load_rows(RowLoads(self.lanes, shape), rows)

    def _places(self, group: Group, address: Operand) -> list[Value]:
        """Where the first lane, or that of each row, reaches in an access of a group. Inside of its
        space no sum begins again at 0."""
        assert isinstance(address, Address)
        return [self.b.add(first, I64(address.offset)) for first in group.firsts]

    def _count_kind(self, index: int, shape: Shape) -> None:
        row = self.memory.places.row(index, shape.space)
        at = self.b.add(self._word(row, MEMO_KIND), I64(KINDS_AT))
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
        values = [self.operands.bits(s, shape.type) for s in elements(made.operands[1])]
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
        first = self._places(group, made.operands[0])[0]
        self.common.count(index, group.shape.space, first)
        self.common.store(group.shape, first, values)
        count_change(self.lanes, self.frame.environment, I64(1))
