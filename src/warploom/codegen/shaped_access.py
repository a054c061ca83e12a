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

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.analysis.strides import Shape as LaneShape
from warploom.codegen.access import Shape, count_change
from warploom.codegen.group_ways import GroupWays
from warploom.codegen.groups import Form, Group
from warploom.codegen.lanes import I1, I64, Value
from warploom.codegen.masked_access import MaskedAccess
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.reach import Reach
from warploom.codegen.row_access import RowAccess, Rows
from warploom.ptx.ir import Instruction, Space


class ShapedAccess:
    """Emits the accesses of the convergent copy whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.operands, self.common = memory.operands, memory.common
        self.ways, self.reach = GroupWays(memory, reading), Reach(memory.lanes)
        self.masked: MaskedAccess | None = None
        """What makes the accesses of a block that some lanes run while the others wait."""

    def begin(self, block: Block) -> None:
        """Begin a block, before its code."""
        self.masked = None
        self.ways.begin(block)

    def begin_masked(self) -> None:
        """Begin a block that some lanes run while the others wait."""
        self.ways.forget()
        self.masked = MaskedAccess(self.memory, self.reading)

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
            addresses = self.operands.address(made.operands[1])
            found = self.memory.load_any(index, shape, addresses, on)
            bits = self.lanes.bits(on)
            return [self.frame.by_shape(value, bits, LaneShape(width)) for value in found]

        def load_rows(loads: RowAccess, rows: Rows) -> list[Value]:
            pointers = loads.pointers(rows, self.memory.base_of(shape))[:width]
            return [loads.each(pointers, part) for part in range(parts)]

        return self._load(index, made, on, shape, load_any, load_rows)

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """A load whose lanes read consecutive places, in each row at least: what it gives, part by
        part. None where it is none."""
        if self.masked is not None:
            return self.masked.load(index, made, on)
        if index not in self.ways.groups:
            return None
        shape = self.ways.groups[index].shape

        def load_any() -> list[Value]:
            addresses = self.operands.address(made.operands[1])
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
        group = self.ways.groups.get(index)
        if group is None:
            return load_any()
        b = self.b
        known = self.ways.known(index, group, made, on)
        if self.ways.hurries:
            return self._load_short(index, group, load_rows)
        short, other, done = (b.append_basic_block(n) for n in ("short", "other", "loaded"))
        b.cbranch(known, short, other).set_weights([99, 1])
        b.position_at_end(short)
        found = self._load_short(index, group, load_rows)
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
        load_rows: Callable[[RowAccess, Rows], list[Value]],
    ) -> list[Value]:
        shape, firsts = group.shape, self.reach.places(group, index)
        if group.form is Form.CONSECUTIVE:
            self.common.count(index, shape.space, firsts[0], I64(1))
            if self.ways.fetches_ahead and shape.space is Space.GLOBAL:
                self.common.fetch_ahead(shape, firsts[0])
            return self.common.load(shape, firsts[0])
        self.ways.count(index, group)
        consecutive = ir.Constant(I1, int(group.form is Form.ROWS))
        rows = Rows(firsts[0], firsts[-1], consecutive)
        return load_rows(RowAccess(self.lanes, shape), rows)

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
        group = self.ways.groups.get(index)
        if group is None:
            self.memory.store(index, made, on)
            return
        shape = group.shape
        type = made.operation.modifiers.scalar()
        values = [self.operands.bits(s, type) for s in elements(made.operands[1])]
        if group.form is Form.STEPPED:
            self.ways.put_off(index, group, made, on)
            self.ways.puts.keep(values[0])
            return
        known = self.ways.known(index, group, made, on)
        if self.ways.hurries:
            self._store_short(index, group, values)
            return
        with self.b.if_else(known, likely=True) as (short, other):
            with short:
                self._store_short(index, group, values)
            with other:
                addresses = self.operands.address(made.operands[0])
                self.memory.store_any(index, shape, addresses, values, on)

    def _store_short(self, index: int, group: Group, values: list[Value]) -> None:
        shape, firsts = group.shape, self.reach.places(group, index)
        if group.form is Form.CONSECUTIVE:
            self.common.count(index, shape.space, firsts[0], I64(1))
            self.common.store(shape, firsts[0], values)
        else:
            self.ways.count(index, group)
            rows = Rows(firsts[0], firsts[-1], ir.Constant(I1, 1))
            RowAccess(self.lanes, shape).store(rows, self.memory.base_of(shape), values[0])
        count_change(self.lanes, self.frame.environment, I64(1))
